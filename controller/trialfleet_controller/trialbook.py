"""The book of a dispatcher's trials: which are open and where, what they have cost, which is next. No input or
output: one thread keeps it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trialfleet_controller.backend import AttemptId
from trialfleet_controller.fold import Attempt, score_from
from trialfleet_controller.money import Purse
from trialfleet_controller.plan import Planned
from trialfleet_controller.queue import Queue
from trialfleet_controller.shards import Report
from trialfleet_controller.tally import Tally
from trialfleet_runner.contract import Outcome


@dataclass(frozen=True, slots=True)
class Opened:
    """A trial with attempts and no outcome. `charged`: US dollars of `chain` that are in the purse; `since`: when
    its watch began, on the monotonic clock."""

    trial: Planned
    chain: tuple[Attempt, ...] = ()
    charged: float = 0.0
    since: float = 0.0

    @property
    def id(self) -> AttemptId:
        return AttemptId(self.trial.id, len(self.chain))

    @property
    def last(self) -> Attempt:
        return self.chain[-1]

    @property
    def scores_only(self) -> bool:
        """Its agent has run: the attempt that runs, or comes next, buys nothing."""
        return score_from(self.chain) is not None

    def with_last(self, attempt: Attempt) -> Opened:
        return replace(self, chain=(*self.chain[:-1], attempt))


class At(StrEnum):
    """Where an open trial is just now."""

    READING = "reading"  # an earlier controller's; what became of it is not known yet
    LAUNCHING = "launching"
    RUNNING = "running"  # the backend will tell when it is over
    WATCHED = "watched"  # somebody else's: the ledger will tell
    SETTLING = "settling"  # over; its end is looked for
    WAITING = "waiting"  # for another attempt
    CONCLUDING = "concluding"


BUSY = frozenset({At.READING, At.LAUNCHING, At.RUNNING, At.WATCHED})  # may have a runner
UNPAID = BUSY | {At.SETTLING}  # what it costs is not known yet
SHOWN = frozenset({At.RUNNING, At.WATCHED})


class Trialbook:
    """`done`: trials that have an outcome already."""

    def __init__(
        self, trials: Sequence[Planned], done: Collection[str], *, blocks_ahead: int, purse: Purse, metered: bool
    ) -> None:
        self.queue = Queue(trials, done, blocks_ahead)
        self.tally = Tally.of(trials)
        self.purse = purse
        self._metered = metered  # the agent costs money
        self._open: dict[str, tuple[Opened, At]] = {}
        self._count: Counter[At] = Counter()
        self._busy: set[str] = set()
        self._unpaid: set[str] = set()

    @property
    def busy(self) -> int:
        """Trials that may have a runner."""
        return len(self._busy)

    @property
    def reserved(self) -> int:
        """Runs of agents that are not paid for yet."""
        return len(self._unpaid)

    def count(self, place: At) -> int:
        return self._count[place]

    def get(self, trial: str) -> Opened | None:
        return self._open[trial][0] if trial in self._open else None

    def where(self, trial: str) -> At | None:
        return self._open[trial][1] if trial in self._open else None

    def all_at(self, *places: At) -> list[Opened]:
        return [self._open[trial][0] for trial in self._busy if self._open[trial][1] in places]

    def put(self, opened: Opened, at: At) -> None:
        trial, before = opened.trial, self.where(opened.trial.id)
        self._open[trial.id] = opened, at
        self._count[at] += 1
        if before is not None:
            self._count[before] -= 1
        _set(self._busy, trial.id, present=at in BUSY)
        _set(self._unpaid, trial.id, present=at in UNPAID and not opened.scores_only)
        if (change := (at in SHOWN) - (before in SHOWN)) != 0:
            self.tally.running(trial.condition, change)

    def held(self, trials: Iterable[Planned]) -> None:
        """They have attempts already; what became of those will be read."""
        for trial in trials:
            self.queue.hold(trial)
            self.put(Opened(trial), At.READING)

    def wait(self, opened: Opened) -> None:
        """For another attempt, in front of all that have none."""
        self.put(opened, At.WAITING)
        self.queue.again(opened.trial)

    def take(self) -> Opened | None:
        """The next trial that may start and can be paid: scoring alone costs nothing, and reserves nothing."""
        paid = self.purse.allows(self.reserved)
        trial = self.queue.take() if paid else self.queue.take_again(self._scores_only)
        return None if trial is None else self.get(trial.id) or Opened(trial)

    @property
    def broke(self) -> bool:
        """Trials are open, and none of them can be paid."""
        return not self.purse.allows(0) and self.queue.open > 0 and self.queue.again_if(self._scores_only) is None

    def _scores_only(self, trial: Planned) -> bool:
        return self._open[trial.id][0].scores_only

    def charged(self, opened: Opened) -> Opened:
        """The whole chain's cost at once, as a resume will see it: a verdict tells what a lost run had cost."""
        cost = self.purse.cost(opened.chain) if self._metered else 0.0
        self.purse = self.purse.charged(cost - opened.charged)
        return replace(opened, charged=cost)

    def conclude(self, trial: Planned, outcome: Outcome) -> None:
        self.tally.concluded(outcome)
        self.queue.finish(trial)
        self._count[self._open.pop(trial.id)[1]] -= 1
        self._busy.discard(trial.id)
        self._unpaid.discard(trial.id)

    def report(self) -> Report:
        """As far as the book tells."""
        return Report(
            running=self.count(At.RUNNING) + self.count(At.WATCHED),
            open=self.queue.open,
            oldest_open_block=self.queue.oldest,
            spent_usd=self.purse.spent,
            reserved=self.reserved,
            conditions=dict(self.tally.conditions),
            losses=dict(self.tally.losses),
            before=self.tally.before,
        )

    def earlier(self, outcome: Outcome, cost: float) -> None:
        """An outcome of an earlier controller."""
        self.tally.earlier(outcome)
        self.purse = self.purse.charged(cost)


def _set(members: set[str], member: str, *, present: bool) -> None:
    if present:
        members.add(member)
    else:
        members.discard(member)
