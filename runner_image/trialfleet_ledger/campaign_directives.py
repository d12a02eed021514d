"""Records that operators write about a campaign: amendments, halts, cancellation, and looks at interim results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trialfleet_ledger import keys
from trialfleet_ledger.amendments import (
    ending_look,
    ends_at,
    in_force,
    largest_reps,
    planned_reps,
    wall_clock_s,
)
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.designs.looks import Decision
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Amendment, Cancel, Epoch, Halt, Look
from trialfleet_ledger.stored_records import RecordStore
from trialfleet_ledger.trial_order import Planned


class Directives:
    """The numbered records of one campaign, and its `cancel.json`."""

    def __init__(self, records: RecordStore) -> None:
        self._records, self._campaign = records, records.campaign

    def amendments(self) -> tuple[Amendment, ...]:
        return self._records.all("amendments", Amendment)

    def amend(
        self,
        *,
        reps: int | None,
        after_look: bool,
        lifts: tuple[int, ...],
        cost_usd: float | None = None,
        wall_clock_s: float | None = None,
    ) -> Amendment:
        amendment = Amendment(
            plan=self._records.journal.plan_sha256(),
            number=0,
            at=self._records.clock(),
            reps=reps,
            cost_usd_campaign=cost_usd,
            wall_clock_s=wall_clock_s,
            after_look=after_look,
            lifts=lifts,
            epoch=max(map(keys.number_of, self._records.numbers("epochs")), default=0),
        )
        return self._records.append("amendments", "amendment", amendment)

    def planned_reps(self, plan: Plan) -> PlannedReps:
        """With amendments, and without what looks have left out, or are certain to."""
        halts = () if plan.schedule is None else self.halts()
        return planned_reps(plan, self.amendments(), self.decisions(), halts)

    def largest_reps(self, plan: Plan) -> PlannedReps:
        """The same, with as many reps as a look may still make of them."""
        planned = self.planned_reps(plan)
        return planned if plan.schedule is None else largest_reps(plan, planned, self.decisions(), self.halts())

    def first_driven_at(self) -> float | None:
        """When the first controller claimed the campaign, in seconds since 1970 on its clock."""
        first = self._records.read(keys.numbered(self._campaign, "epochs", 1), Epoch)
        return None if first is None else first.at

    def out_of_time(self, plan: Plan, amendments: Sequence[Amendment]) -> bool:
        """Whether the wall-clock limit, amendments included, is reached by the store's clock."""
        if wall_clock_s(plan, amendments) is None:
            return False
        end = ends_at(plan, amendments, self.first_driven_at())
        return end is not None and self._records.store.now() >= end

    def looks(self) -> tuple[Look, ...]:
        return self._records.all("looks", Look)

    def look(
        self,
        *,
        planned: int,
        terminal: int,
        complete_blocks: int,
        by: str,
        known: Sequence[Look] | None = None,
    ) -> Look | None:
        """Record that somebody saw results before all were in: what shows outcomes calls this, and here alone it
        is decided whether that was a look. Seeing the numbers of the newest look again is the same look; seeing
        those of a campaign that has ended, or of which no trial has, is none. `known`: the looks that the caller
        had read when it saw the results; None: the store's."""
        if not 0 < terminal < planned:
            return None
        newest = (self.looks() if known is None else known)[-1:]
        if [(look.terminal, look.complete_blocks) for look in newest] == [(terminal, complete_blocks)]:
            return newest[0]

        look = Look(
            plan=self._records.journal.plan_sha256(),
            number=0,
            at=self._records.clock(),
            planned=planned,
            terminal=terminal,
            complete_blocks=complete_blocks,
            by=by,
        )
        return self._records.append("looks", "look", look)

    def decisions(self) -> tuple[Decision, ...]:
        """What declared looks decided, in order."""
        return self._records.all("decisions", Decision)

    def decide(self, decision: Decision) -> Decision:
        """Write what a look decided; or, when another controller was first, return what that one wrote."""
        key = keys.numbered(self._campaign, "decisions", decision.number)
        decision = decision.model_copy(update={"plan": self._records.journal.plan_sha256()})
        if self._records.create("decision", key, decision):
            self._records.journal.flush()
            return decision
        there = self._records.read(key, Decision, listed=True)
        if there is None:
            raise OperatorError("a decision vanished: somebody deletes from the ledger", where=key)
        return there

    def halts(self) -> tuple[Halt, ...]:
        """Those in force: a lifted one is history."""
        return in_force(self._records.all("halts", Halt), self.amendments())

    def halt_known(self, task: str | None, *, epoch: int) -> bool:
        """Whether a halt of this scope is in force, or one was lifted by a later controller than that of `epoch`.
        Clocks of controllers and runners do not agree, so no times are compared."""
        lifted = {number: amendment.epoch for amendment in self.amendments() for number in amendment.lifts}
        return any(
            halt.number not in lifted or lifted[halt.number] > epoch
            for halt in self._records.all("halts", Halt)
            if (halt.task, halt.condition) == (task, None)
        )

    def halt(self, task: str | None, reason: str) -> Halt:
        return self._records.append("halts", "halt", self._halt_of(reason, task=task))

    def halt_condition(self, condition: str, reason: str) -> None:
        """Unless it was halted before: a halt that was lifted does not return."""
        if all(halt.condition != condition for halt in self._records.all("halts", Halt)):
            self._records.append("halts", "halt", self._halt_of(reason, condition=condition))

    def _halt_of(self, reason: str, *, task: str | None = None, condition: str | None = None) -> Halt:
        plan, at = self._records.journal.plan_sha256(), self._records.clock()
        return Halt(plan=plan, number=0, at=at, task=task, condition=condition, reason=reason)

    def nothing_starts(self, open_trials: Iterable[Planned]) -> bool:
        """Whether records keep all these trials from starting: a cancellation, a look that ended the campaign and
        after which no reps were added, or halts. True without open trials."""
        rest, halts = list(open_trials), self.halts()
        if all(any(halt.covers(trial.task, trial.condition) for halt in halts) for trial in rest):
            return True
        return ending_look(self.decisions(), self.amendments()) is not None or self.cancelled() is not None

    def cancelled(self) -> Cancel | None:
        now = self._records.read(keys.cancel(self._campaign, now=True), Cancel)
        return now or self._records.read(keys.cancel(self._campaign), Cancel)

    def cancel(self, *, now: bool, by: str) -> Cancel:
        plan = self._records.journal.plan_sha256()
        wanted = Cancel(plan=plan, at=self._records.clock(), now=now, by=by)
        if not self._records.create("cancel", keys.cancel(self._campaign), wanted) and now:
            there = self._records.read(keys.cancel(self._campaign), Cancel)
            if there is not None and not there.now:
                self._records.create("cancel", keys.cancel(self._campaign, now=True), wanted)
        self._records.journal.flush()
        return self.cancelled() or wanted
