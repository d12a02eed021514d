"""What the analysis reads: one entry per trial in compact columns, and what the plan froze."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Protocol, TypeAlias

import numpy as np

from trialfleet_designs.comparison.compared import ComparedTasks, compare_tasks
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.declaration import Declaration
from trialfleet_ledger.designs.looks import Decision, halving_of
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_statistics.estimates import Bools, Floats, Integers

FourCounts: TypeAlias = tuple[Integers, Integers, Integers, Integers]


class Pair(Protocol):
    """A treatment and its control, by name."""

    @property
    def treatment(self) -> str: ...

    @property
    def control(self) -> str: ...


class ComparedPair(Pair, Protocol):
    """A pair with what its comparison is made of."""

    @property
    def compared(self) -> ComparedTasks: ...


@dataclass(frozen=True)
class Scheme:
    """What was fixed before anything ran. `factors`: of each factor of the tasks, one level per task of `tasks`
    (None: not known). `limit_s`: the agent's time budget. `monitored`: the campaign is not over. `cap_usd`: the
    most that one run of the agent may cost; None: no limit. `planned_reps`: before any amendment; `decisions`: of
    declared looks. `declared`: the contrast, with the alpha of a single test. `in_place`: what is declared
    in place of a contrast. `repositories`: of each task; empty where one is not known. `no_look`: why no look
    is taken any more; None: they are taken, or none is declared."""

    seed: int
    tasks: tuple[str, ...]
    conditions: tuple[str, ...]
    composed: Mapping[str, Condition]
    agents: Mapping[str, AgentSpec]
    declared: Primary | None
    factors: Mapping[str, tuple[str | None, ...]]
    limit_s: float
    reps: int
    monitored: bool
    cap_usd: float | None = None
    planned_reps: int = 0
    decisions: tuple[Decision, ...] = ()
    in_place: Declaration | None = None
    repositories: tuple[str, ...] = ()
    no_look: str | None = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Conditions that the halving has left out of later blocks."""
        done = halving_of(self.decisions)
        return done[1].left_out if done else ()

    @property
    def alpha(self) -> float:
        return 0.05 if self.declaration is None else self.declaration.test_alpha

    @property
    def declaration(self) -> Declaration | None:
        """The one declared result."""
        return self.declared or self.in_place

    @property
    def reference(self) -> str | None:
        """The condition that every other is compared with, where no contrast is declared."""
        return None if self.in_place is None else self.in_place.reference

    @property
    def keeps_thin(self) -> bool:
        """Whether tasks of few valid trials stay: which tasks a campaign's looks are made of is decided by
        stage."""
        schedule = None if self.declaration is None else self.declaration.schedule
        return schedule is not None and schedule.compares_by_stage

    def pair(self, contrast: Pair) -> tuple[int, int]:
        """Positions of the two conditions in `conditions`."""
        return self.conditions.index(contrast.treatment), self.conditions.index(contrast.control)

    def seed_of(self, *names: str) -> int:
        """A seed for one use of chance: other uses and other campaigns have others.

        Below 2⁶³; a pure function of the campaign's seed and the names.
        """
        raw = hashlib.sha256("\0".join((str(self.seed), *names)).encode()).digest()
        return int.from_bytes(raw[:8], "big") >> 1


@dataclass(frozen=True, eq=False)
class Columns:
    """Trials with an outcome, of all primary tasks and the blocks in use; all arrays of shape (n,).

    `task`, `condition`: positions in the scheme's names. `started_s`: since the epoch, NaN where not known.
    `valid`: it has a verdict. `first_missing`: its first attempt whose agent started gave nothing to count,
    even if a retry did. `first_lost`: so, and not only because the operator stopped it.
    `forged`: a pass that was found forged: it counts as not passed, and where losses are varied, as lost.
    `own_memory`: the agent's own memory ended it. `undelivered`: a declared delivery was
    not seen to reach the model. `cut_off`: it hit a budget, so that its times and tokens are lower bounds.
    `measures`: metrics by key, NaN where there is none.
    """

    task: Integers
    condition: Integers
    block: Integers
    position: Integers
    started_s: Floats
    valid: Bools
    passed: Bools
    first_missing: Bools
    first_lost: Bools
    forged: Bools
    own_memory: Bools
    undelivered: Bools
    cut_off: Bools
    measures: Mapping[str, Floats]

    def of_tasks(self, tasks: Bools) -> Columns:
        """The trials of these tasks, by position."""
        return self.select_trials(tasks[self.task])

    def select_trials(self, kept: Bools) -> Columns:
        """Those of `kept`, shape (n,)."""
        arrays = {f.name: getattr(self, f.name)[kept] for f in fields(self) if f.name != "measures"}
        return Columns(**arrays, measures={name: values[kept] for name, values in self.measures.items()})

    def without(self, lost: Bools) -> Columns:
        """The same trials, those in `lost` without a verdict."""
        return replace(self, valid=self.valid & ~lost, passed=self.passed & ~lost)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Passes, valid trials and all that ended per cell, all of shape (tasks, conditions)."""

    passes: Integers
    valid: Integers
    trials: Integers

    def compare_conditions(self, scheme: Scheme, *places: int) -> ComparedTasks:
        """What a comparison of these conditions, by position, is made of."""
        at = list(places)
        return compare_tasks(scheme.tasks, self.valid[:, at], self.trials[:, at], keep_thin=scheme.keeps_thin)

    def tasks_of(self, scheme: Scheme, contrast: ComparedPair) -> Bools:
        """The tasks of a contrast, by position, as far as both of its conditions still have valid trials: records
        of a look may hold others, which were halted or refused since."""
        at = list(scheme.pair(contrast))
        return contrast.compared.mask_among(scheme.tasks) & np.asarray((self.valid[:, at] > 0).all(axis=1))

    def arms(self, a: int, b: int, tasks: Bools) -> FourCounts:
        """Of two conditions, by position, over these tasks."""
        return self.passes[tasks, a], self.valid[tasks, a], self.passes[tasks, b], self.valid[tasks, b]


def counted(columns: Columns, scheme: Scheme) -> CellCounts:
    """The counts of every cell."""
    return CellCounts(
        per_cell(columns, scheme, columns.passed & columns.valid),
        per_cell(columns, scheme, columns.valid),
        per_cell(columns, scheme, np.ones_like(columns.valid)),
    )


@dataclass(frozen=True)
class TrialsTaken:
    """Trials with an outcome, and what they cost: None where no cost is known; `unpriced` of them left none."""

    trials: int
    cost_usd: float | None
    unpriced: int


@dataclass(frozen=True, eq=False)
class TrialsRun:
    """All trials with an outcome that were run for the answer, of every task and condition, with every end of
    them: shape (n,) each. `cost_usd`: NaN where none is known. `tasks`: how many were planned."""

    block: Integers
    cost_usd: Floats
    tasks: int

    def count_up_to(self, blocks: int | None) -> TrialsTaken:
        """Those of the first `blocks` (None: of all)."""
        used = np.ones_like(self.block, dtype=np.bool_) if blocks is None else self.block < blocks
        costs = self.cost_usd[used]
        known = np.isfinite(costs)
        cost = float(costs[known].sum()) if known.any() else None
        return TrialsTaken(int(used.sum()), cost, int(np.sum(~known)))


def trials_run(columns: Columns, scheme: Scheme) -> TrialsRun:
    """Where these are all."""
    costs = columns.measures.get("cost_usd", np.full(columns.task.shape, np.nan))
    return TrialsRun(columns.block, costs, len(scheme.tasks))


def per_cell(columns: Columns, scheme: Scheme, which: Bools) -> Integers:
    """How many of `which` lie in each cell, shape (tasks, conditions)."""
    width = len(scheme.conditions)
    cell = columns.task[which] * width + columns.condition[which]
    return np.bincount(cell, minlength=len(scheme.tasks) * width).reshape(len(scheme.tasks), width)


def rates(passes: Integers, valid: Integers) -> Floats:
    """Passes over valid trials, which must be above 0."""
    return np.asarray(passes / valid, dtype=np.float64)
