"""The list of trials: what a query's parameters keep, in which order. The same parameters make the page and the
CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from trialfleet_analysis.tables.columns import texts
from trialfleet_ledger.metric_table import REPORTED
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.verdicts import Verdict

OUTCOMES = (*(verdict.value for verdict in Verdict), "lost", "refused")
ALWAYS = ("trial", "task", "condition", "rep", "verdict", "stop", "missing")
DEFAULT = ("losses", "attempts", "turns", "first_edit_turn", "cost_usd", "agent_s")
METRICS = tuple(metric.name for metric in REPORTED if metric.name in Metrics.model_fields)
CHOICES = (*DEFAULT, *(name for name in METRICS if name not in DEFAULT))
COLUMNS = (*ALWAYS, *DEFAULT)
SORTS = ("launch", "task", "condition", "verdict", "attempts", *METRICS)
PAGE = 500  # rows of a page
LONGEST_TEXT = 200  # characters that are searched for
FOUND = "found_turn"  # the column that a search for a text adds

_compute: Any = pc  # whose stubs leave much unknown


@dataclass(frozen=True)
class TrialQuery:
    """Which trials, as an address says. Empty: all of them. `start`: the first row of the page. `columns`: of
    `CHOICES`, beyond those that are always there. `text`: what a step of the agent holds, see `text_search`."""

    task: str = ""
    condition: str = ""
    outcome: str = ""
    loss: str = ""
    sort: str = "launch"
    order: Literal["up", "down"] = "up"
    start: int = 0
    columns: tuple[str, ...] = DEFAULT
    text: str = ""

    def parameters(self, **changed: str) -> dict[str, str]:
        """As an address has them, without those that say nothing."""
        said = {"task": self.task, "condition": self.condition, "outcome": self.outcome, "loss": self.loss}
        said |= {
            "text": self.text,
            "sort": self.sort if self.sort != "launch" else "",
            "order": self.order if self.order != "up" else "",
            "columns": ",".join(self.columns) if self.columns != DEFAULT else "",
        }
        return {name: value for name, value in {**said, **changed}.items() if value}


def query_of(parameters: Mapping[str, str]) -> TrialQuery:
    """A word that does not exist is no filter; a name that does not exist keeps nothing.

    >>> found = query_of({"sort": "turns", "order": "down", "start": "-3", "columns": "wall_s,x,losses"})
    >>> found.sort, found.order, found.start, found.columns
    ('turns', 'down', 0, ('losses', 'wall_s'))
    """
    said = parameters.get("columns", "").split(",")
    outcome, sort, start = parameters.get("outcome", ""), parameters.get("sort", ""), parameters.get("start", "")
    return TrialQuery(
        task=parameters.get("task", ""),
        condition=parameters.get("condition", ""),
        outcome=outcome if outcome in OUTCOMES else "",
        loss=parameters.get("loss", ""),
        sort=sort if sort in SORTS else "launch",
        order="down" if parameters.get("order") == "down" else "up",
        start=int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 0,
        columns=tuple(name for name in CHOICES if name in said) or DEFAULT,
        text=parameters.get("text", "").strip()[:LONGEST_TEXT],
    )


def selected(trials: pa.Table, query: TrialQuery) -> pa.Table:
    """The rows that the query keeps, in its order; a row without the value that is sorted by comes last."""
    sorting = METRICS if query.sort in METRICS else ()
    needed = dict.fromkeys((*COLUMNS, *query.columns, *sorting, "fault", "bundle", "bundle_sha256"))
    kept: Any = trials.select(list(needed))
    for name in ("task", "condition"):
        if wanted := getattr(query, name):
            kept = kept.filter(_compute.equal(kept.column(name).cast(pa.string()), wanted))
    if query.loss:
        holds = [query.loss in (losses or ()) for losses in kept.column("losses").to_pylist()]
        kept = kept.filter(pa.array(holds, pa.bool_()))
    kept = _of_outcome(kept, query.outcome)
    if query.sort == "launch":
        return cast("pa.Table", kept if query.order == "up" else kept.take(list(range(kept.num_rows))[::-1]))
    direction = "ascending" if query.order == "up" else "descending"
    values = kept.column(query.sort)
    keyed = kept.set_column(
        kept.column_names.index(query.sort),
        query.sort,
        values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values,
    )
    return cast("pa.Table", kept.take(_compute.sort_indices(keyed, sort_keys=[(query.sort, direction)])))


def _of_outcome(kept: Any, outcome: str) -> Any:
    if outcome == "refused":
        return kept.filter(_compute.is_valid(kept.column("fault")))
    if outcome == "lost":
        return kept.filter(_compute.is_null(kept.column("verdict")))
    return kept.filter(_compute.equal(kept.column("verdict").cast(pa.string()), outcome)) if outcome else kept


def rows_of_page(found: pa.Table, query: TrialQuery) -> list[dict[str, Any]]:
    return found.slice(query.start, PAGE).to_pylist()


def with_text(found: pa.Table, turns: Mapping[str, int]) -> pa.Table:
    """The rows of these trials. `turns`: of the first step that has the text, by trial."""
    at = [turns.get(trial or "") for trial in texts(found, "trial")]
    table: Any = found.append_column(pa.field(FOUND, pa.int32()), pa.array(at, pa.int32()))
    return cast("pa.Table", table.filter(_compute.is_valid(table.column(FOUND))))


def shown(found: pa.Table, query: TrialQuery) -> pa.Table:
    """All rows, with the columns that the page shows."""
    return found.select([*ALWAYS, *([FOUND] if query.text else ()), *query.columns])
