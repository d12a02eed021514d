"""From rows to tables, and back without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import AttemptRun
from trialfleet_analysis.tables.rows import AttemptRow, TaskRow, TrialRow
from trialfleet_analysis.tables.schema import ATTEMPT_COLUMNS, METRIC_COLUMNS, MOMENT, TRIAL_COLUMNS, Column
from trialfleet_analysis.tables.table import Table, fits, table_of
from trialfleet_deliveries.registry import list_channels
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.measurements import Delivery

R = TypeVar("R", TrialRow, AttemptRow)
Getter = Callable[[Any], object]


def trials_table(rows: Sequence[TrialRow], tasks: Iterable[TaskRow]) -> Table:
    """Of `TRIAL_COLUMNS`, in the order of `rows`. Raises `OperatorError` for a number that no table holds."""
    known = {task.task: task for task in tasks}
    of_task: dict[str, Getter] = {
        "use": lambda row: known[row.task].use.value,
        "covered": lambda row: known[row.task].covered,
        "prompt_source": lambda row: known[row.task].prompt_source,
        "category": lambda row: known[row.task].category,
        "difficulty": lambda row: known[row.task].difficulty,
    }
    return _table(TRIAL_COLUMNS, rows, _TRIAL_GETTERS | of_task)


def attempts_table(rows: Sequence[AttemptRow]) -> Table:
    """Of `ATTEMPT_COLUMNS`, in the order of `rows`. Raises as `trials_table`."""
    return _table(ATTEMPT_COLUMNS, rows, _ATTEMPT_GETTERS)


def _table(columns: Sequence[Column], rows: Sequence[R], getters: Mapping[str, Getter]) -> Table:
    values = {column.name: _values(column, rows, getters.get(column.name)) for column in columns}
    try:
        return table_of(columns, values)
    except OverflowError:
        raise _impossible(columns, rows, values) from None


def _values(column: Column, rows: Sequence[R], getter: Getter | None) -> list[Any]:
    get = attrgetter(column.name) if getter is None else getter
    values: list[Any] = [get(row) for row in rows]
    return [None if at is None else round(at * 1e6) for at in values] if column.type == MOMENT else values


def _impossible(columns: Sequence[Column], rows: Sequence[R], values: Mapping[str, list[Any]]) -> OperatorError:
    """Names the first value that is the trouble, and its row."""
    column, row, value = next(
        (column, row, value)
        for column in columns
        for row, value in zip(rows, values[column.name], strict=True)
        if not fits(column.type, value)
    )
    number = row.attempt if isinstance(row, AttemptRow) else row.attempts
    return OperatorError(
        f"{column.name}: {value!r} is no number that can be counted",
        where=f"attempts/{row.trial}/{number}/end.json",
        hint="the record is damaged, or the program that wrote it has a bug",
    )


def _metric(name: str) -> Getter:
    def get(row: TrialRow) -> object:
        return None if row.metrics is None else vars(row.metrics)[name]

    return get


def _delivered(value: Callable[[Delivery], object]) -> Getter:
    return lambda row: None if row.delivery is None else value(row.delivery)


def _reached(channel: str) -> Getter:
    return _delivered(lambda delivery: delivery.reached_model.get(channel))


def _sent(channel: str) -> Getter:
    return _delivered(lambda delivery: delivery.sent_share.get(channel))


def _of(name: str) -> Getter:
    return lambda row: None if row.of is None else getattr(row.of, name)


def _run(name: str) -> Getter:
    return lambda row: getattr(row.run, name)


def _found(value: Callable[[Evidence], object], otherwise: object = None) -> Getter:
    return lambda row: otherwise if row.evidence is None else value(row.evidence)


_TRIAL_GETTERS: dict[str, Getter] = {
    **{column.name: _metric(column.name) for column in METRIC_COLUMNS},
    **{f"reached_{channel}": _reached(channel) for channel in list_channels()},
    **{f"sent_{channel}": _sent(channel) for channel in list_channels()},
    "first_request_sha256": _delivered(lambda d: d.first_request_sha256),
    "context_files": _delivered(lambda d: d.files),
    "inline_tokens": _delivered(lambda d: d.inline_tokens),
    "inline_truncated": _delivered(lambda d: d.inline_truncated),
    "covering_node": _delivered(lambda d: d.node),
    "coverage": _delivered(lambda d: d.coverage),
    "tokenizer": _delivered(lambda d: d.tokenizer),
    "named_targets": _delivered(lambda d: d.targets),
    "abstained": _delivered(lambda d: d.abstained),
    "preflight": _delivered(lambda d: d.preflight),
}

_ATTEMPT_GETTERS: dict[str, Getter] = {
    **{name: _of(name) for name in ("task", "condition", "rep", "block")},
    **{
        name: _run(name)
        for name in ("score_only", "by", "started_at", "ended_at", "host", "node", "pod", "image", "bundle_bytes")
    },
    "bundle": _found(lambda e: e.key or None),
    "bundle_sha256": _found(lambda e: e.sha256),
    "verified": _found(lambda e: e.verified, otherwise=False),
    "fault": _found(lambda e: e.fault),
    "isolation": _found(lambda e: e.isolation),
    "warnings": _found(lambda e: e.warnings, otherwise=()),
    "versions": _found(lambda e: [{"name": n, "version": v} for n, v in e.versions], otherwise=()),
}


def evidence_of(attempts: Table) -> dict[str, Evidence]:
    """What was found of each trial that `attempts` has a finding of."""
    return {
        cells["trial"]: Evidence(
            trial=cells["trial"],
            key=cells["bundle"] or "",
            sha256=cells["bundle_sha256"],
            verified=cells["verified"],
            fault=cells["fault"],
            isolation=cells["isolation"],
            warnings=tuple(cells["warnings"]),
            versions=tuple((item["name"], item["version"]) for item in cells["versions"]),
            run=_run_of(cells),
        )
        for cells in _records(attempts)
        if cells["verdict"] is not None or cells["fault"] is not None
    }


_RUN = tuple(field.name for field in fields(AttemptRun))


def _records(table: Table) -> Iterator[dict[str, Any]]:
    """One row at a time as a mapping; moments as seconds since the epoch."""
    for row in table.to_pylist():
        yield {name: value.timestamp() if isinstance(value, datetime) else value for name, value in row.items()}


def _run_of(cells: dict[str, Any]) -> AttemptRun:
    return AttemptRun(**{name: cells[name] for name in _RUN})
