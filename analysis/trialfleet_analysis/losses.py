"""Losses: attempts without a verdict, by class, stage and condition. Missing data, never a zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from trialfleet_analysis.tables.columns import among, codes, integers, known, some, texts
from trialfleet_analysis.tables.table import Table
from trialfleet_designs.comparison.plain import plain_test
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.stage_reached import Stage
from trialfleet_statistics.estimates import Test
from trialfleet_statistics.missing import loss_by_condition

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

    `informative`: attempts lost between the agent's start and its patch, without those that the operator stopped,
    which are `interrupted`. `started`: these two, and the runs that left a patch. `elapsed_s`: median time to an
    informative loss. `abandoned`: trials without a verdict.
    """

    condition: str
    informative: int
    interrupted: int
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


@dataclass(frozen=True)
class AttemptLoss:
    """One attempt without a verdict. `condition` None: its trial has no outcome yet."""

    trial: str
    condition: str | None
    loss: LossClass
    stage: Stage
    message: str
    elapsed_s: float | None


def lost_attempts(attempts: Table) -> tuple[AttemptLoss, ...]:
    """Those of the attempts' table that were lost, or refused, in its order."""
    gone = some(attempts, known(attempts, "loss")).select(
        ["trial", "condition", "loss", "stage", "message", "elapsed_s"]
    )
    rows: list[dict[str, Any]] = gone.to_pylist()
    return tuple(
        AttemptLoss(
            row["trial"],
            row["condition"],
            LossClass(row["loss"]),
            Stage(row["stage"]),
            row["message"] or "",
            row["elapsed_s"],
        )
        for row in rows
    )


def loss_counts(names: Sequence[str], lost: Sequence[AttemptLoss]) -> tuple[LossCount, ...]:
    """In the order of `names`. A trial without an outcome cannot be placed: it comes last, as `UNASSIGNED`."""
    order = {name: place for place, name in enumerate((*names, UNASSIGNED))}
    counts = Counter((item.condition or UNASSIGNED, item.loss, item.stage) for item in lost)
    return tuple(
        LossCount(condition, loss, stage, number)
        for (condition, loss, stage), number in sorted(
            counts.items(), key=lambda entry: (order[entry[0][0]], entry[0])
        )
    )


def loss_rates(names: Sequence[str], trials: Table, lost: Sequence[AttemptLoss]) -> tuple[LossRate, ...]:
    """One per condition, over all trials with an outcome."""
    condition, measured = codes(trials, "condition", names), among(trials, "verdict", list(Verdict))
    scored_again = {item.trial for item in lost if item.stage is Stage.AFTER_PATCH}
    patched = measured | np.array([trial in scored_again for trial in texts(trials, "trial")], dtype=np.bool_)
    return tuple(
        _rate(
            name,
            [item for item in lost if item.condition == name],
            patched=int(np.sum(patched & (condition == place))),
            abandoned=int(np.sum(~measured & (condition == place))),
        )
        for place, name in enumerate(names)
    )


@dataclass(frozen=True)
class OperatorStops:
    """Trials whose running agent the operator stopped, by condition, with the exact test of equal shares.
    `trials`: with an outcome; `cells`: (task, condition, stopped trials) of those that have any;
    `monte_carlo_se`: of a sampled p; None: exact."""

    conditions: tuple[str, ...]
    cells: tuple[tuple[str, str, int], ...]
    stopped: tuple[int, ...]
    trials: tuple[int, ...]
    test: Test
    monte_carlo_se: float | None


def operator_stops(names: Sequence[str], trials: Table, *, seed: int) -> OperatorStops:
    """Over all trials with an outcome. Who watches a campaign could stop the trials that look bad."""
    hit = integers(trials, "interrupted_runs") > 0
    condition = codes(trials, "condition", names)
    counts = [int(np.sum(hit & (condition == place))) for place in range(len(names))]
    totals = [int(np.sum(condition == place)) for place in range(len(names))]
    rows: list[dict[str, str]] = some(trials, hit).select(["task", "condition"]).to_pylist()
    cells = Counter((row["task"], row["condition"]) for row in rows)
    found = loss_by_condition(counts, totals, seed=seed)
    return OperatorStops(
        conditions=tuple(names),
        cells=tuple((task, name, number) for (task, name), number in sorted(cells.items())),
        stopped=tuple(counts),
        trials=tuple(totals),
        test=plain_test(found),
        monte_carlo_se=found.standard_error,
    )


def loss_messages(lost: Sequence[AttemptLoss], *, most: int = 12) -> tuple[LossMessage, ...]:
    """The commonest messages first."""
    groups: dict[tuple[LossClass, Stage, str], list[AttemptLoss]] = {}
    for item in lost:
        groups.setdefault((item.loss, item.stage, item.message), []).append(item)
    ordered = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return tuple(
        LossMessage(loss, stage, message, len(items), items[0].trial)
        for (loss, stage, message), items in ordered[:most]
    )


def _rate(name: str, lost: Sequence[AttemptLoss], *, patched: int, abandoned: int) -> LossRate:
    stopped = [item for item in lost if item.stage is Stage.MID_RUN]
    informative = [item for item in stopped if not item.loss.by_operator]
    elapsed = [item.elapsed_s for item in informative if item.elapsed_s is not None]
    started = len(stopped) + patched
    return LossRate(
        condition=name,
        informative=len(informative),
        interrupted=len(stopped) - len(informative),
        started=started,
        rate=len(informative) / started if started else None,
        elapsed_s=median(elapsed) if elapsed else None,
        ignorable=sum(item.stage is Stage.BEFORE_AGENT and not item.loss.by_operator for item in lost),
        abandoned=abandoned,
    )
