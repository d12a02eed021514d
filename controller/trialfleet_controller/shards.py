"""A campaign in shards: which trials are whose, what a shard may do, what it says. Plain values that travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trialfleet_controller.plan import Planned
from trialfleet_controller.tally import Counts
from trialfleet_runner.campaign import Plan
from trialfleet_runner.canonical import sha256
from trialfleet_runner.contract import LossClass


class Ending(StrEnum):
    """Why a dispatcher stopped."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    HALTED = "halted"  # by a campaign-wide halt, or because what is open belongs to halted tasks
    OUT_OF_MONEY = "out of money"
    OUTAGE = "outage"  # attempts were lost in a row to the machine or the store: what is open waits for a resume
    INTERRUPTED = "interrupted"


class Activity(StrEnum):
    """What a dispatcher does."""

    STARTING = "starting"  # knows nothing of what earlier controllers left
    RECOVERING = "recovering"  # reads it: what has not been read counts as running
    DRIVING = "driving"
    DRAINING = "draining"  # nothing more starts
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Answers:
    """What ends of attempts have said of the model's provider: `lost` to it, `given` when there was a verdict.
    Counted by a dispatcher since it began."""

    lost: int = 0
    given: int = 0

    def __add__(self, more: Answers) -> Answers:
        return Answers(self.lost + more.lost, self.given + more.given)


@dataclass(frozen=True, slots=True)
class Lease:
    """What a dispatcher may do, until the next one.

    `money_usd`: what all its trials may cost, what earlier controllers spent on them included; None: no cap.
    `oldest_open_block`: of the whole campaign, for `blocks_ahead`; an old value only holds back. None: it is the
    whole campaign itself, and ends when the money does; under a lease it reports `starved` and waits for another.
    `ending`: set, nothing more starts. `elsewhere`: what the other shards have heard of the provider, which is one
    for all; None: not known.
    """

    width: int
    creates_per_s: float | None = None
    creates_burst: int = 1
    money_usd: float | None = None
    oldest_open_block: int | None = None
    ending: Ending | None = None
    elsewhere: Answers | None = None

    @staticmethod
    def whole(plan: Plan) -> Lease:
        """Of the only dispatcher of a campaign."""
        pods = plan.kubernetes
        if pods is None:
            return Lease(plan.parallel, money_usd=plan.cost_usd_campaign)
        return Lease(plan.parallel, pods.creates_per_s, pods.creates_burst, money_usd=plan.cost_usd_campaign)


@dataclass(frozen=True, slots=True)
class Report:
    """What a dispatcher says of itself. `oldest_open_block`: of its own trials, None when all are over.
    `spent_usd`: on its trials, by whoever drove them; `reserved`: runs of agents that are not paid for yet;
    `lease`: in force when it was made."""

    activity: Activity = Activity.STARTING
    ending: Ending | None = None
    running: int = 0
    open: int = 0
    oldest_open_block: int | None = 0
    spent_usd: float = 0.0
    reserved: int = 0
    starved: bool = False
    conditions: Mapping[str, Counts] = field(default_factory=dict[str, Counts])
    losses: Mapping[LossClass, int] = field(default_factory=dict[LossClass, int])
    before: int = 0  # of its trials, those that were over when it began
    lease: Lease | None = None
    answers: Answers = Answers()


def shard_of(trial_id: str, shards: int, namespaces: int = 1) -> int:
    """Which of `shards` drives a trial: the same on every machine. Every namespace has as many shards as any
    other, and they follow each other. The namespace depends on the trial alone: however a resume divides, the
    trial's pod is where it was.

    >>> [shard_of(letter * 26, 4) for letter in "abcdefg"]
    [1, 1, 0, 2, 2, 2, 3]
    >>> [shard_of(letter * 26, 4, namespaces=2) for letter in "abcdefg"]
    [2, 2, 0, 1, 1, 1, 3]
    """
    among, namespace = divmod(int(sha256(trial_id.encode())[:12], 16), namespaces)
    each = shards // namespaces
    return namespace * each + among % each


def of_shard(trials: Iterable[Planned], shard: int, shards: int, namespaces: int = 1) -> list[Planned]:
    """The shard's own trials, in launch order."""
    return [trial for trial in trials if shard_of(trial.id, shards, namespaces) == shard]


def oldest_open_block(reports: Sequence[Report]) -> int | None:
    """Of the campaign, from one report of each of its shards: what their next leases carry. None: all is over."""
    return min((block for report in reports if (block := report.oldest_open_block) is not None), default=None)
