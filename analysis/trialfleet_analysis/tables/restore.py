"""From Arrow tables back to the rows and findings that they were made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar

import pyarrow as pa

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import LostAttempt, Run
from trialfleet_analysis.tables.rows import CHANNELS, TrialRow
from trialfleet_analysis.tables.schema import METRICS, MOMENT
from trialfleet_runner.contract import (
    Coverage,
    Delivery,
    LossClass,
    Metrics,
    Outcome,
    PreflightResult,
    Scored,
    Stop,
    Trial,
    Verdict,
)
from trialfleet_runner.stages import Stage

W = TypeVar("W", bound=StrEnum)


def trial_rows_of(trials: pa.Table) -> tuple[TrialRow, ...]:
    """The rows that `trials` was made of."""
    return tuple(_trial_row(record) for record in _records(trials))


def outcome_of(row: TrialRow) -> Outcome:
    """The outcome that gave `row`, of a trial that was not refused."""
    scored = None
    if row.verdict and row.stop and row.metrics and row.delivery:
        scored = Scored.model_construct(
            verdict=row.verdict,
            stop=row.stop,
            tests_passed=row.tests_passed is True,
            metrics=row.metrics,
            delivery=row.delivery,
        )
    return Outcome.model_construct(
        trial=Trial.model_construct(**{name: getattr(row, name) for name in _IDENTITY}, id=row.trial),
        attempts=row.attempts,
        scored=scored,
        abandoned=row.abandoned,
        bundle=row.bundle,
        bundle_sha256=row.bundle_sha256,
        losses=row.losses,
    )


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
            run=_run(cells),
        )
        for cells in _records(attempts)
        if cells["verdict"] is not None or cells["fault"] is not None
    }


def lost_of(attempts: pa.Table) -> tuple[LostAttempt, ...]:
    """Every lost attempt but those that the reading itself refused."""
    return tuple(
        LostAttempt(
            trial=cells["trial"],
            attempt=cells["attempt"],
            loss=LossClass(cells["loss"]),
            stage=Stage(cells["stage"]),
            message=cells["message"],
            elapsed_s=cells["elapsed_s"],
            run=_run(cells),
        )
        for cells in _records(attempts)
        if cells["loss"] is not None and cells["fault"] is None
    )


_METRICS = tuple(column.name for column in METRICS)
_IDENTITY = ("task", "condition", "rep", "seed", "block", "position")
_RUN = tuple(field.name for field in fields(Run))
_PLAIN = tuple(
    field.name
    for field in fields(TrialRow)
    if field.name not in ("verdict", "stop", "abandoned", "losses", "metrics", "delivery")
)


def _records(table: pa.Table) -> Iterator[dict[str, Any]]:
    """One row at a time as a mapping; moments as seconds since the epoch."""
    columns = [_values(table.column(name)) for name in table.column_names]
    for values in zip(*columns, strict=True):
        yield dict(zip(table.column_names, values, strict=True))


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    if column.type != MOMENT:
        return column.to_pylist()
    return [None if at is None else at / 1e6 for at in column.cast(pa.int64()).to_pylist()]


def _trial_row(cells: dict[str, Any]) -> TrialRow:
    measured = cells["verdict"] is not None
    return TrialRow(
        **{name: cells[name] for name in _PLAIN},
        verdict=_word(Verdict, cells["verdict"]),
        stop=_word(Stop, cells["stop"]),
        abandoned=_word(LossClass, cells["abandoned"]),
        losses=tuple(LossClass(loss) for loss in cells["losses"]),
        metrics=Metrics.model_construct(**{name: cells[name] for name in _METRICS}) if measured else None,
        delivery=_delivery(cells) if measured else None,
    )


def _delivery(cells: dict[str, Any]) -> Delivery:
    claims = {name: cells[f"reached_{name}"] for name in CHANNELS}
    return Delivery.model_construct(
        files=tuple(cells["context_files"]),
        inline_tokens=cells["inline_tokens"],
        inline_truncated=cells["inline_truncated"],
        node=cells["covering_node"],
        coverage=Coverage(cells["coverage"]),
        tokenizer=cells["tokenizer"],
        targets=tuple(cells["named_targets"]),
        abstained=cells["abstained"],
        preflight=_word(PreflightResult, cells["preflight"]),
        reached_model={name: claim for name, claim in claims.items() if claim is not None},
    )


def _run(cells: dict[str, Any]) -> Run:
    return Run(**{name: cells[name] for name in _RUN})


def _word(kind: type[W], value: str | None) -> W | None:
    return None if value is None else kind(value)
