"""From rows to Arrow tables, and back without loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import pyarrow as pa

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import AttemptRun
from trialfleet_analysis.tables.rows import AttemptRow, TaskRow, TrialRow
from trialfleet_analysis.tables.schema import (
    ATTEMPT_COLUMNS,
    ATTEMPTS,
    METRIC_COLUMNS,
    MOMENT,
    REAL,
    TRIAL_COLUMNS,
    TRIALS,
    Column,
)
from trialfleet_deliveries.registry import list_channels
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.measurements import Delivery

R = TypeVar("R", TrialRow, AttemptRow)
Getter = Callable[[Any], object]


def trials_table(rows: Sequence[TrialRow], tasks: Iterable[TaskRow]) -> pa.Table:
    """`TRIALS`, in the order of `rows`. Raises `OperatorError` for a number that no table holds."""
    known = {task.task: task for task in tasks}
    of_task: dict[str, Getter] = {
        "use": lambda row: known[row.task].use.value,
        "covered": lambda row: known[row.task].covered,
        "prompt_source": lambda row: known[row.task].prompt_source,
        "category": lambda row: known[row.task].category,
        "difficulty": lambda row: known[row.task].difficulty,
    }
    return _table(TRIALS, TRIAL_COLUMNS, rows, _TRIAL_GETTERS | of_task)


def attempts_table(rows: Sequence[AttemptRow]) -> pa.Table:
    """`ATTEMPTS`, in the order of `rows`. Raises as `trials_table`."""
    return _table(ATTEMPTS, ATTEMPT_COLUMNS, rows, _ATTEMPT_GETTERS)


def _table(
    schema: pa.Schema, columns: Sequence[Column], rows: Sequence[R], getters: Mapping[str, Getter]
) -> pa.Table:
    return pa.Table.from_arrays(
        [_array(column, rows, getters.get(column.name)) for column in columns], schema=schema
    )


def _array(column: Column, rows: Sequence[R], getter: Getter | None) -> pa.Array[Any]:
    name = column.name
    values: list[Any] = [getattr(row, name) for row in rows] if getter is None else [getter(row) for row in rows]
    if column.type == MOMENT:
        values = [None if at is None else round(at * 1e6) for at in values]
    if column.type == REAL and not all(_fits(column, value) for value in values):
        raise _impossible(column, rows, values)
    try:
        return pa.array(values, type=column.type)
    except (OverflowError, pa.ArrowInvalid):
        raise _impossible(column, rows, values) from None


def _impossible(column: Column, rows: Sequence[R], values: Sequence[Any]) -> OperatorError:
    """Names the first row whose value is the trouble."""
    row, value = next((row, value) for row, value in zip(rows, values, strict=True) if not _fits(column, value))
    number = row.attempt if isinstance(row, AttemptRow) else row.attempts
    return OperatorError(
        f"{column.name}: {value!r} is no number that can be counted",
        where=f"attempts/{row.trial}/{number}/end.json",
        hint="the record is damaged, or the program that wrote it has a bug",
    )


def _fits(column: Column, value: Any) -> bool:  # Any: a cell of any column
    if column.type == REAL:
        return value is None or math.isfinite(value)
    try:
        pa.array([value], type=column.type)
    except (OverflowError, pa.ArrowInvalid):
        return False
    return True


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


def evidence_of(attempts: pa.Table) -> dict[str, Evidence]:
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


def _records(table: pa.Table) -> Iterator[dict[str, Any]]:
    """One row at a time as a mapping; moments as seconds since the epoch."""
    columns = [_values(table.column(name)) for name in table.column_names]
    for values in zip(*columns, strict=True):
        yield dict(zip(table.column_names, values, strict=True))


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    if column.type != MOMENT:
        return column.to_pylist()
    return [None if at is None else at / 1e6 for at in column.cast(pa.int64()).to_pylist()]


def _run_of(cells: dict[str, Any]) -> AttemptRun:
    return AttemptRun(**{name: cells[name] for name in _RUN})
