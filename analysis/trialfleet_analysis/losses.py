"""Losses: attempts without a verdict, by class, stage and condition. Missing data, never a zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from trialfleet_analysis.ledger import LostAttempt, Stage
from trialfleet_analysis.tables import TrialRow
from trialfleet_runner.contract import LossClass

UNASSIGNED = "(unfinished trials)"


@dataclass(frozen=True)
class LossCount:
    """Lost attempts of one class at one stage under one condition, all blocks included."""

    condition: str
    loss: LossClass
    stage: Stage
    attempts: int


@dataclass(frozen=True)
class LossRate:
    """How often a condition's running agents were lost. `rate` = informative / started; None without starts.

    `informative`: attempts lost between the agent's start and its patch. `started`: those, and the runs that
    left a patch. `elapsed_s`: median time to such a loss. `abandoned`: trials without a verdict.
    """

    condition: str
    informative: int
    started: int
    rate: float | None
    elapsed_s: float | None
    ignorable: int
    abandoned: int


@dataclass(frozen=True)
class LossMessage:
    """What one kind of loss said, with one attempt to look at."""

    loss: LossClass
    stage: Stage
    message: str
    attempts: int
    example: str


def loss_counts(
    names: Sequence[str], lost: Sequence[LostAttempt], conditions: Mapping[str, str]
) -> tuple[LossCount, ...]:
    """In the order of `names`. `conditions`: trial id → condition; a trial without an outcome cannot be placed:
    it comes last, as `UNASSIGNED`."""
    order = {name: place for place, name in enumerate((*names, UNASSIGNED))}
    counts = Counter((conditions.get(item.trial, UNASSIGNED), item.loss, item.stage) for item in lost)
    return tuple(
        LossCount(condition, loss, stage, number)
        for (condition, loss, stage), number in sorted(
            counts.items(), key=lambda entry: (order[entry[0][0]], entry[0])
        )
    )


def loss_rates(
    names: Sequence[str], rows: Sequence[TrialRow], lost: Sequence[LostAttempt]
) -> tuple[LossRate, ...]:
    """One per condition, over all trials with an outcome."""
    by_trial: dict[str, list[LostAttempt]] = {}
    for item in lost:
        by_trial.setdefault(item.trial, []).append(item)
    return tuple(_rate(name, [row for row in rows if row.condition == name], by_trial) for name in names)


def loss_messages(lost: Sequence[LostAttempt], *, most: int = 12) -> tuple[LossMessage, ...]:
    """The commonest messages first."""
    groups: dict[tuple[LossClass, Stage, str], list[LostAttempt]] = {}
    for item in lost:
        groups.setdefault((item.loss, item.stage, item.message), []).append(item)
    ordered = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return tuple(
        LossMessage(loss, stage, message, len(items), items[0].trial)
        for (loss, stage, message), items in ordered[:most]
    )


def _rate(name: str, rows: Sequence[TrialRow], by_trial: Mapping[str, list[LostAttempt]]) -> LossRate:
    lost = [item for row in rows for item in by_trial.get(row.trial, [])]
    informative = [item for item in lost if item.stage is Stage.MID_RUN]
    patched = sum(_left_a_patch(row, by_trial.get(row.trial, [])) for row in rows)
    elapsed = [item.elapsed_s for item in informative if item.elapsed_s is not None]
    started = len(informative) + patched
    return LossRate(
        condition=name,
        informative=len(informative),
        started=started,
        rate=len(informative) / started if started else None,
        elapsed_s=median(elapsed) if elapsed else None,
        ignorable=sum(item.stage is Stage.BEFORE_AGENT for item in lost),
        abandoned=sum(row.verdict is None for row in rows),
    )


def _left_a_patch(row: TrialRow, lost: Sequence[LostAttempt]) -> bool:
    return row.verdict is not None or any(item.stage is Stage.AFTER_PATCH for item in lost)
