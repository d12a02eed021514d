"""The list of trials: what a query's parameters keep, in which order. The same parameters make the page and the
CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.tables.columns import known, lists, numbers, some, texts, words
from trialfleet_analysis.tables.schema import ORDINAL, Column
from trialfleet_analysis.tables.table import Table
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
_FOUND = Column(FOUND, ORDINAL, "the turn of the first step that has the text", "", "no step has it")


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


def selected(trials: Table, query: TrialQuery) -> Table:
    """The rows that the query keeps, in its order; a row without the value that is sorted by comes last."""
    sorting = METRICS if query.sort in METRICS else ()
    needed = dict.fromkeys((*COLUMNS, *query.columns, *sorting, "fault", "bundle", "bundle_sha256"))
    kept = some(trials.select(list(needed)), _holds(trials, query))
    if query.sort == "launch":
        return kept if query.order == "up" else kept.take(slice(None, None, -1))
    keys = _keys(kept, query.sort)
    return kept.take(np.argsort(keys if query.order == "up" else -keys, kind="stable"))


def _holds(trials: Table, query: TrialQuery) -> NDArray[np.bool_]:
    holds = np.ones(trials.num_rows, np.bool_)
    for name, wanted in (("task", query.task), ("condition", query.condition)):
        if wanted:
            holds &= words(trials, name).are(wanted)
    if query.loss:
        holds &= np.array([query.loss in losses for losses in lists(trials, "losses")], np.bool_)
    if query.outcome == "refused":
        return holds & known(trials, "fault")
    if query.outcome == "lost":
        return holds & ~known(trials, "verdict")
    return holds & words(trials, "verdict").are(query.outcome) if query.outcome else holds


def _keys(table: Table, name: str) -> NDArray[np.float64]:
    """Numbers that sort as the column's values do; NaN: no value."""
    if name not in table.names:
        return numbers(table, name)
    column = words(table, name)
    ranks = np.array([*np.argsort(np.argsort(column.names)), np.nan], np.float64)
    return ranks[column.codes]


def rows_of_page(found: Table, query: TrialQuery) -> list[dict[str, Any]]:
    return found.take(slice(query.start, query.start + PAGE)).to_pylist()


def with_text(found: Table, turns: Mapping[str, int]) -> Table:
    """The rows of these trials. `turns`: of the first step that has the text, by trial."""
    told = found.replaced(_FOUND, [turns.get(trial or "") for trial in texts(found, "trial")])
    return some(told, known(told, FOUND))


def shown(found: Table, query: TrialQuery) -> Table:
    """All rows, with the columns that the page shows."""
    return found.select([*ALWAYS, *([FOUND] if query.text else ()), *query.columns])
