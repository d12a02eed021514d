"""In-memory table of open trials: their state, what they have cost, which trial is next.

Single-threaded, no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trialfleet_controller.backends.protocol import AttemptId, Wait
from trialfleet_controller.dispatch.queue import Queue
from trialfleet_controller.dispatch.shards import DispatcherStatus
from trialfleet_controller.dispatch.tally import CampaignTally
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.fold import StoredAttempt, score_from
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.spent_money import price_chain
from trialfleet_ledger.trial_order import Planned


@dataclass(frozen=True, slots=True)
class CampaignBudget:
    """US dollars. `cap`: of the campaign; None: there is none. `trial`: the most that an agent's run may cost."""

    cap: float | None
    trial: float
    spent: float = 0.0

    def allows(self, running: int) -> bool:
        """Whether one more may start while `running` others run."""
        return self.cap is None or self.spent + (running + 1) * self.trial <= self.cap + 1e-9

    def charged(self, cost: float) -> CampaignBudget:
        return replace(self, spent=self.spent + cost)


@dataclass(frozen=True, slots=True)
class OpenTrial:
    """A trial with attempts and no outcome. `charged`: US dollars of `chain` that are charged to the budget."""

    trial: Planned
    chain: tuple[StoredAttempt, ...] = ()
    charged: float = 0.0

    @property
    def id(self) -> AttemptId:
        return AttemptId(self.trial.id, len(self.chain))

    @property
    def last(self) -> StoredAttempt:
        return self.chain[-1]

    @property
    def scores_only(self) -> bool:
        """Its agent has run: the current or next attempt costs nothing."""
        return score_from(self.chain) is not None

    def with_last(self, attempt: StoredAttempt) -> OpenTrial:
        return replace(self, chain=(*self.chain[:-1], attempt))


class TrialState(StrEnum):
    """Of an open trial."""

    READING = "reading"  # an earlier controller began it; its records are not read yet
    LAUNCHING = "launching"
    RUNNING = "running"  # the backend will say when its runner has gone
    WATCHED = "watched"  # another controller launched it; only the ledger says when it ends
    SETTLING = "settling"  # its runner has gone; its end is read or written
    WAITING = "waiting"  # for another attempt
    CONCLUDING = "concluding"


BUSY = frozenset(
    {TrialState.READING, TrialState.LAUNCHING, TrialState.RUNNING, TrialState.WATCHED}
)  # may have a runner
UNPAID = BUSY | {TrialState.SETTLING}  # its cost is not known yet
SHOWN = frozenset({TrialState.RUNNING, TrialState.WATCHED})


class TrialTable:
    """`metered`: conditions whose agent costs money."""

    def __init__(
        self,
        trials: Sequence[Planned],
        *,
        blocks_ahead: int,
        budget: CampaignBudget,
        metered: Collection[str],
    ) -> None:
        self.queue = Queue(trials, blocks_ahead)
        self.tally = CampaignTally.of(trials)
        self.budget = budget
        self._metered = metered
        self._open: dict[str, tuple[OpenTrial, TrialState]] = {}
        self._at: dict[TrialState, dict[str, None]] = {state: {} for state in TrialState}  # in order of arrival
        self._unpaid: set[str] = set()

    @property
    def busy(self) -> int:
        """Trials that may have a runner."""
        return sum(self.count(state) for state in BUSY)

    @property
    def reserved(self) -> int:
        """Runs of agents that are not paid for yet."""
        return len(self._unpaid)

    def count(self, state: TrialState) -> int:
        return len(self._at[state])

    def get(self, trial: str) -> OpenTrial | None:
        return self._open[trial][0] if trial in self._open else None

    def state(self, trial: str) -> TrialState | None:
        return self._open[trial][1] if trial in self._open else None

    def in_state(self, *states: TrialState) -> list[OpenTrial]:
        return [self._open[trial][0] for state in states for trial in self._at[state]]

    def put(self, opened: OpenTrial, state: TrialState) -> None:
        trial, before = opened.trial, self.state(opened.trial.id)
        self._open[trial.id] = opened, state
        if before is not None and before is not state:
            del self._at[before][trial.id]
        self._at[state][trial.id] = None
        unpaid = state in UNPAID and not opened.scores_only
        (self._unpaid.add if unpaid else self._unpaid.discard)(trial.id)
        if (change := (state in SHOWN) - (before in SHOWN)) != 0:
            self.tally.running(trial.condition, change)

    def resume(self, done: Iterable[Planned], begun: Iterable[Planned]) -> None:
        """`done`: trials that have an outcome; `begun`: trials whose records are still to be read."""
        for trial in done:
            self.queue.finish(trial)
        for trial in begun:
            self.queue.hold(trial)
            self.put(OpenTrial(trial), TrialState.READING)

    def wait(self, opened: OpenTrial) -> None:
        """Let the trial wait for another attempt, before all trials that have none."""
        self.put(opened, TrialState.WAITING)
        self.queue.again(opened.trial)

    def take(self) -> OpenTrial | None:
        """The next trial that may start and that the budget allows. A trial that is only scored costs nothing."""
        paid = self.budget.allows(self.reserved)
        trial = self.queue.take() if paid else self.queue.take_again(self._scores_only)
        return None if trial is None else self.get(trial.id) or OpenTrial(trial)

    @property
    def broke(self) -> bool:
        """Trials are open, and the budget allows none of them."""
        return not self.budget.allows(0) and self.queue.open > 0 and self.queue.again_if(self._scores_only) is None

    def _scores_only(self, trial: Planned) -> bool:
        return self._open[trial.id][0].scores_only

    def charged(self, opened: OpenTrial) -> OpenTrial:
        """Charge the cost of the whole chain, as a resume would: a verdict also says what a lost run had cost."""
        metered = opened.trial.condition in self._metered
        cost = price_chain(opened.chain, self.budget.trial) if metered else 0.0
        self.budget = self.budget.charged(cost - opened.charged)
        return replace(opened, charged=cost)

    def conclude(self, trial: Planned, outcome: Outcome) -> None:
        self.tally.concluded(outcome)
        self.queue.finish(trial)
        del self._at[self._open.pop(trial.id)[1]][trial.id]
        self._unpaid.discard(trial.id)

    def plan(self, planned: PlannedReps) -> int:
        """From now on these trials are planned; returns how many go or come."""
        gone, come = self.queue.plan(planned)
        for changed, change in ((gone, -1), (come, 1)):
            for trial in changed:
                self.tally.planned(trial.condition, change)
        return len(gone) + len(come)

    def report(self, waiting: Mapping[AttemptId, Wait]) -> DispatcherStatus:
        """The counts of this table. `waiting`: the attempts that do not run yet, and why, from the backend."""
        begun = {attempt: wait for attempt, wait in waiting.items() if self._begun(attempt)}
        pending = Counter(self._open[attempt.trial][0].trial.condition for attempt in begun)
        return DispatcherStatus(
            running=self.count(TrialState.RUNNING) + self.count(TrialState.WATCHED),
            pending=dict(Counter(begun.values())),
            open=self.queue.open,
            oldest_open_block=self.queue.oldest,
            spent_usd=self.budget.spent,
            reserved=self.reserved,
            conditions={
                name: counts.with_pending(pending[name]) for name, counts in self.tally.conditions.items()
            },
            losses=dict(self.tally.losses),
            before=self.tally.before,
            left_out=self.tally.left_out,
        )

    def _begun(self, attempt: AttemptId) -> bool:
        opened, state = self._open.get(attempt.trial, (None, None))
        return opened is not None and state in SHOWN and opened.id == attempt

    def earlier(self, outcome: Outcome, cost: float) -> None:
        """Count an outcome of an earlier controller."""
        self.tally.earlier(outcome)
        self.budget = self.budget.charged(cost if outcome.trial.condition in self._metered else 0.0)
