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
from trialfleet_ledger.amendments import planned_reps, select_halted_cells
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.designs.halving import HalvingResult, halved, halving_block
from trialfleet_ledger.designs.looks import (
    AnytimeResult,
    AnytimeRule,
    Decision,
    FutilityRule,
    LookResult,
    StageCounts,
    StopRule,
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
from trialfleet_ledger.records.verdicts import Verdict as TrialVerdict
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
        primary = plan.primary
        self._declared = primary is not None and primary.decides
        self._halving_after = halving_block(plan.reps) if primary is not None and primary.halve else 0
        self._plan, self.trials, self._ledger = plan, trials, ledger
        self._epoch, self._obey_futility, self._anytime = epoch, obey_futility, False
        self._reps, self.news = reps or plan.reps, LookNews()
        self.left_out: frozenset[str] = frozenset()
        self._rule: StopRule | None = None
        if primary is not None and primary.decides:
            self._anytime, self._primary = primary.anytime is not None, primary
            from trialfleet_designs.monitoring import look_result  # numpy and scipy: of campaigns that need them

            self._test = None if primary.halve else look_result
            self._rule = None if isinstance(primary.stop, AnytimeRule) else primary.stop
        if self._changes_plan:
            self.news = LookNews(planned=PlannedReps(self._reps))

    def counted_trials(self) -> list[Planned]:
        """Without those that are left out."""
        return [trial for trial in self.trials() if trial.id not in self.left_out]

    @property
    def futility(self) -> FutilityRule | None:
        """The rule by which a look may give the campaign up; None: there is none."""
        return None if self._rule is None or self._rule.futility == "none" else self._rule.futility

    @property
    def _changes_plan(self) -> bool:
        return bool(self._halving_after) or (self._rule is not None and self._rule.changes_plan)

    @property
    def at(self) -> tuple[int, ...]:
        """After how many complete blocks each look is."""
        return self._looks_at(self.news.decisions)

    def _looks_at(self, decisions: Sequence[Decision]) -> tuple[int, ...]:
        if self._rule is not None:
            return self._rule.blocks(self._plan.reps, revised_reps(decisions))
        if self._halving_after:
            return (self._halving_after,)
        return tuple(range(1, self._reps + 1)) if self._declared else ()

    @property
    def next_at(self) -> int | None:
        """How many blocks are complete at the next look; None: there is none."""
        taken, news, at = len(self.news.decisions), self.news, self.at
        return None if news.extended or news.void or news.stop or taken >= len(at) else at[taken]

    @property
    def barrier(self) -> int | None:
        """The first block that may not start yet; None: all may."""
        return None if self._anytime else self.next_at

    def due(self, oldest_open_block: int | None) -> bool:
        """Whether a look is open and this shard has nothing left before it. `oldest_open_block`: of its trials."""
        at = self.next_at
        return at is not None and (oldest_open_block is None or oldest_open_block >= at)

    def follow(self, news: LookNews) -> Decision | None:
        """Returns the decision that ends the campaign."""
        self.news = news
        return news.stop

    def read(self) -> LookNews:
        """The decisions; looks are taken while their blocks are over and nothing has ended the campaign."""
        if not self._declared:
            return LookNews()
        directives = self._ledger.directives
        decisions, amendments = directives.decisions(), directives.amendments()
        at = self._looks_at(decisions)
        extended = _extended(decisions, at, [a.reps for a in amendments], anytime=self._anytime)
        if len(decisions) < len(at):  # no look may use trials whose condition is to be halted
            CrashWatch(self._ledger, self.counted_trials).write_halts()
        halts = directives.halts()
        void = self._is_void(halts)
        while not (extended or void or stopped(decisions)) and len(decisions) < len(self._looks_at(decisions)):
            made = self._decide(decisions, len(amendments), halts)
            if made is None:
                break
            decisions = (*decisions, made)
        planned = planned_reps(self._plan, amendments, decisions) if self._changes_plan else None
        return LookNews(decisions, extended=extended, void=void, planned=planned)

    def _is_void(self, halts: Collection[Halt]) -> bool:
        """Whether a side of the comparison is halted, or so many treatments that there is nothing to halve."""
        left = set(self._plan.condition_names) - {halt.condition for halt in halts}
        sides = {self._primary.treatment, self._primary.control}
        return not sides <= left or (self._primary.halve and len(left - sides) < 2)

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
    ) -> LookResult | AnytimeResult | HalvingResult:
        if self._test is not None:
            return self._test(self._primary, self._plan.reps, earlier, stage)
        tasks, sides = {one.task for one in stage}, self._primary
        compared = [one for one in ended if one.trial.task in tasks]
        halted = {halt.condition for halt in halts}
        names = [name for name in self._plan.condition_names if name not in halted]
        return halved(compared, names, treatment=sides.treatment, control=sides.control)

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
        if self._rule is None or decision.blocks != self._rule.drop_saturated or decision.stops:
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
            _counts(self._primary, task, [one for one in ended if one.trial.task == task]) for task in tasks
        )


def _counts(primary: Primary, task: str, outcomes: Sequence[Outcome]) -> StageCounts:
    def passed_and_valid(condition: str) -> tuple[int, int]:
        scored = [one.scored for one in outcomes if one.trial.condition == condition and one.scored is not None]
        return sum(one.verdict is TrialVerdict.PASSED for one in scored), len(scored)

    treated, control = passed_and_valid(primary.treatment), passed_and_valid(primary.control)
    return StageCounts(
        task=task,
        treatment_passed=treated[0],
        treatment_valid=treated[1],
        control_passed=control[0],
        control_valid=control[1],
    )


def _extended(
    decisions: Sequence[Decision], looks: Sequence[int], reps: Sequence[int | None], *, anytime: bool
) -> bool:
    """Whether reps were added after the last look, or after the one that ended the campaign. Without a fixed end,
    no look is the last."""
    if not decisions or not (stopped(decisions) or (not anytime and len(decisions) == len(looks))):
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


def told(decision: Decision, of: int, futility: FutilityRule | None) -> str:
    """For the operator."""
    result = decision.result
    if isinstance(result, HalvingResult):
        return f"halved after {plural(decision.blocks, 'block')}"
    if isinstance(result, AnytimeResult):
        return (
            f"decided for {result.verdict} after {plural(decision.blocks, 'block')}: p at any "
            f"look {result.p_value:.4f}"
        )
    detail = f"p {result.p_value:.4f}, of which {2 * result.level:.4f} could be spent"
    if result.verdict == "futility" and futility is not None:
        detail = f"{futility.reason}: the power to show it at the end is {result.chance:.1%}"
    after = f"look {decision.number} of {of} after {plural(decision.blocks, 'block')}"
    return f"{after}: decided for {result.verdict} ({detail})"
