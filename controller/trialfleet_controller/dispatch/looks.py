"""Declared looks of a running campaign: while a look is open, a barrier holds later blocks back. The
first dispatcher that finds the look's blocks complete writes the decision, once.

Every dispatcher reads the same decisions, so a barrier needs no message between shards. Nothing runs beyond it,
so a campaign that a look ends has no running trial. The halving of four treatments is one such look, which tests
nothing and ends nothing. A campaign without a fixed end is looked at after every block
and has no barrier: its decision counts complete blocks, and trials that run beyond them finish.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from trialfleet_controller.dispatch.crash_watch import CrashWatch
from trialfleet_controller.dispatch.journal_check import read_unchanged
from trialfleet_ledger.amendments import explain_void, planned_reps, select_halted_cells
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.designs.looks import (
    Decision,
    DecisionResult,
    StageCounts,
    dropped_tasks,
    halving_of,
    planned_after,
    revised_reps,
    saturated,
    stopped,
)
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.stored_journal import stand_in_outcome
from trialfleet_ledger.trial_order import Planned


@dataclass(frozen=True)
class LookNews:
    """`decisions` so far; `extended`: reps were added after the campaign was decided, and nothing holds them
    back; `void`: a condition that every look needs is halted: none is taken, and nothing waits for one; `planned`:
    the trials of the campaign as it is now planned; None: no look changes that."""

    decisions: tuple[Decision, ...] = ()
    extended: bool = False
    void: bool = False
    planned: PlannedReps | None = None

    @property
    def stop(self) -> Decision | None:
        """The decision that ends the campaign."""
        return None if self.extended else stopped(self.decisions)


class Looks:
    """`trials`: of the whole campaign, whichever shard drives them. `reps`: with amendments; None: the plan's.
    `obey_futility`: whether a verdict of futility ends the campaign. `left_out`: trials without an outcome that
    never run again, because their records were changed or deleted: no look waits for them. Only `read` may be
    called by another thread."""

    def __init__(
        self,
        plan: Plan,
        trials: Callable[[], Sequence[Planned]],
        ledger: Ledger,
        *,
        epoch: int,
        reps: int | None = None,
        obey_futility: bool = True,
    ) -> None:
        declared = plan.declared
        self._schedule = plan.schedule
        self._plan, self.trials, self._ledger = plan, trials, ledger
        self._epoch, self._obey_futility = epoch, obey_futility
        self._reps, self.news = reps or plan.reps, LookNews()
        self.left_out: frozenset[str] = frozenset()
        if declared is not None and self._schedule is not None:  # numpy and scipy: of campaigns that need them
            from trialfleet_designs.registry import find_design

            self._declared, self._design = declared, find_design(declared)
        if self._changes_plan:
            self.news = LookNews(planned=PlannedReps(self._reps))

    def counted_trials(self) -> list[Planned]:
        """Without those that are left out."""
        return [trial for trial in self.trials() if trial.id not in self.left_out]

    @property
    def _changes_plan(self) -> bool:
        return self._schedule is not None and self._schedule.changes_plan

    @property
    def at(self) -> tuple[int, ...]:
        """After how many complete blocks each look is."""
        return self._looks_at(self.news.decisions)

    def _looks_at(self, decisions: Sequence[Decision]) -> tuple[int, ...]:
        if self._schedule is None:
            return ()
        return self._schedule.blocks_at(self._plan.reps, self._reps, decisions)

    @property
    def next_at(self) -> int | None:
        """How many blocks are complete at the next look; None: there is none."""
        taken, news, at = len(self.news.decisions), self.news, self.at
        return None if news.extended or news.void or news.stop or taken >= len(at) else at[taken]

    @property
    def barrier(self) -> int | None:
        """The first block that may not start yet; None: all may."""
        return self.next_at if self._schedule is not None and self._schedule.holds_back else None

    def due(self, oldest_open_block: int | None) -> bool:
        """Whether a look is open and this shard has nothing left before it. `oldest_open_block`: of its trials."""
        at = self.next_at
        return at is not None and (oldest_open_block is None or oldest_open_block >= at)

    def describe(self, decision: Decision) -> str:
        """For the operator."""
        return self._schedule.describe(decision, len(self.at)) if self._schedule is not None else ""

    def follow(self, news: LookNews) -> Decision | None:
        """Returns the decision that ends the campaign."""
        self.news = news
        return news.stop

    def read(self) -> LookNews:
        """The decisions; looks are taken while their blocks are over and nothing has ended the campaign."""
        if self._schedule is None:
            return LookNews()
        directives = self._ledger.directives
        decisions, amendments = directives.decisions(), directives.amendments()
        at = self._looks_at(decisions)
        extended = _extended(decisions, at, [a.reps for a in amendments], fixed_end=self._schedule.has_fixed_end)
        if len(decisions) < len(at):  # no look may use trials whose condition is to be halted
            CrashWatch(self._ledger, self.counted_trials).write_halts()
        halts = directives.halts()
        void = explain_void(self._plan, self._reps, decisions, halts) is not None
        while not (extended or void or stopped(decisions)) and len(decisions) < len(self._looks_at(decisions)):
            made = self._decide(decisions, len(amendments), halts)
            if made is None:
                break
            decisions = (*decisions, made)
        planned = planned_reps(self._plan, amendments, decisions, halts) if self._changes_plan else None
        return LookNews(decisions, extended=extended, void=void, planned=planned)

    def _decide(self, earlier: tuple[Decision, ...], amendments: int, halts: Collection[Halt]) -> Decision | None:
        """The next look; None while its blocks are not over. Losses of a cancellation are no ends: what was cut
        off were the slow ones."""
        halted = {halt.task for halt in halts if halt.task is not None}
        wanted = self._wanted(earlier, halts)
        if not {trial.id for trial in wanted} <= {*self._ledger.attempts.outcome_ids(), *self.left_out}:
            return None
        since = earlier[-1].blocks if earlier else 0
        ended = self._outcomes([trial for trial in wanted if trial.block >= since])
        if any(outcome.abandoned is LossClass.CANCELLED for outcome in ended):
            return None
        stage = self._stage(ended, halted)
        result = self._result(earlier, stage, ended, halts)
        decision = Decision(
            number=len(earlier) + 1,
            at=self._ledger.clock(),
            epoch=self._epoch,
            blocks=self._looks_at(earlier)[len(earlier)],
            stage=stage,
            halted=tuple(sorted(halted)),
            outcomes=digest(sorted([outcome.trial.id, outcome.bundle_sha256] for outcome in ended)),
            amendments=amendments,
            result=result,
            obeyed=self._obey_futility or result.verdict != "futility",
        )
        return self._ledger.directives.decide(self._dropping(decision, wanted))

    def _result(
        self,
        earlier: Sequence[Decision],
        stage: Sequence[StageCounts],
        ended: Sequence[Outcome],
        halts: Collection[Halt],
    ) -> DecisionResult:
        from trialfleet_designs.protocol import SeenAtLook

        halted = {halt.condition for halt in halts}
        names = tuple(name for name in self._plan.condition_names if name not in halted)
        seen = SeenAtLook(self._plan.reps, earlier, stage, ended, names, self._plan.seed)
        return self._design.decide(self._declared, seen)

    def _wanted(self, earlier: Sequence[Decision], halts: Collection[Halt]) -> list[Planned]:
        """The trials of all blocks up to the next look."""
        planned = planned_after(earlier, self._looks_at(earlier)[len(earlier)])
        halted = select_halted_cells(self._plan.cell_names, halts)
        return [
            trial
            for trial in self.trials()
            if planned.includes(cell := (trial.task, trial.condition), trial.block) and cell not in halted
        ]

    def _dropping(self, decision: Decision, wanted: Sequence[Planned]) -> Decision:
        """At the declared look, if the campaign continues, saturated tasks are left out from here on. Tasks that
        are in no primary result are run as planned."""
        if self._schedule is None or decision.blocks != self._schedule.drop_block or decision.stops:
            return decision
        primary = {task.order.id for task in self._plan.tasks if task.primary}
        trials = [trial for trial in wanted if trial.task in primary]
        return decision.model_copy(update={"dropped": saturated(self._outcomes(trials))})

    def _outcomes(self, trials: Sequence[Planned]) -> list[Outcome]:
        """Of trials that have ended; those that are left out count as lost, as in tables."""
        gone = [stand_in_outcome(trial.record()) for trial in trials if trial.id in self.left_out]
        return read_unchanged(self._ledger, [one.id for one in trials if one.id not in self.left_out]) + gone

    def _stage(self, ended: Sequence[Outcome], halted: Collection[str]) -> tuple[StageCounts, ...]:
        tasks = [task.order.id for task in self._plan.tasks if task.primary and task.order.id not in halted]
        return tuple(
            self._declared.count_stage(task, [one for one in ended if one.trial.task == task]) for task in tasks
        )


def _extended(
    decisions: Sequence[Decision], looks: Sequence[int], reps: Sequence[int | None], *, fixed_end: bool
) -> bool:
    """Whether reps were added after the last look, or after the one that ended the campaign. Without a fixed end,
    no look is the last."""
    if not decisions or not (stopped(decisions) or (fixed_end and len(decisions) == len(looks))):
        return False
    return any(more is not None for more in reps[decisions[-1].amendments :])


def replanned(news: LookNews) -> str:
    """For the operator: what looks have changed in the plan; empty: nothing."""
    found: list[str] = []
    if (reps := revised_reps(news.decisions)) is not None:
        found.append(f"re-estimated: {plural(reps, 'rep')}")
    if dropped := dropped_tasks(news.decisions):
        found.append(f"left out, saturated: {', '.join(sorted(dropped))}")
    if halving := halving_of(news.decisions):
        found.append(f"left out, by their pass rates: {', '.join(halving[1].left_out)}")
    return "; ".join(found)
