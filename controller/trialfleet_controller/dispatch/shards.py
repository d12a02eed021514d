"""A campaign in shards: which trials each has, what it may use, what it reports. Plain values that are pickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.dispatch.tally import ConditionCounts
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.trial_order import Planned


class Ending(StrEnum):
    """Why a dispatcher stopped."""

    COMPLETE = "complete"  # every planned trial is measured
    INCOMPLETE = "incomplete"  # every trial is over, and some were abandoned
    CANCELLED = "cancelled"
    DECIDED = "decided"  # a declared look has ended it
    HALTED = "halted"  # the campaign is halted, or all that is open is halted with its task or condition
    OUT_OF_MONEY = "out of money"
    OUT_OF_TIME = "out of time"  # the campaign's wall-clock limit; running attempts were finished
    OUTAGE = "outage"  # attempts were lost in a row to machine or store; open trials wait for a resume
    INTERRUPTED = "interrupted"


class Activity(StrEnum):
    """What a dispatcher does."""

    STARTING = "starting"  # does not know yet what earlier controllers left
    RECOVERING = "recovering"  # reads it; a trial that is not read yet counts as running
    DRIVING = "driving"
    DRAINING = "draining"  # nothing more starts
    OVER = "over"

    @property
    def starts_nothing(self) -> bool:
        return self in (Activity.DRAINING, Activity.OVER)


@dataclass(frozen=True, slots=True)
class Answers:
    """Ends of attempts that tell how the model provider does: `lost` to it, `given`: verdicts. Counted by a
    dispatcher since it began."""

    lost: int = 0
    given: int = 0

    def __add__(self, more: Answers) -> Answers:
        return Answers(self.lost + more.lost, self.given + more.given)


@dataclass(frozen=True, slots=True)
class Lease:
    """What a dispatcher may use until it gets another lease.

    `money_usd`: what all its trials may cost, with what earlier controllers spent on them; None: no cap.
    `oldest_open_block`: of the whole campaign, for `blocks_ahead`; an outdated value only holds back. None: the
    dispatcher has the whole campaign, and ends when the money is spent; any other reports `starved` and waits for
    another lease. `ending`: if set, nothing more starts. `elsewhere`: what the other shards met at the provider,
    which all share; None: not known.
    """

    width: int
    creates_per_s: float | None = None
    creates_burst: int = 1
    money_usd: float | None = None
    oldest_open_block: int | None = None
    ending: Ending | None = None
    elsewhere: Answers | None = None

    @staticmethod
    def whole(options: DriveOptions, cost_usd: float | None) -> Lease:
        """The lease of the only dispatcher of a campaign with the cost cap `cost_usd`."""
        return Lease(options.parallel, options.creates_per_s, options.creates_burst, money_usd=cost_usd)


@dataclass(frozen=True, slots=True)
class DispatcherStatus:
    """What a dispatcher reports. `oldest_open_block`: of its own trials; None: all are over. `spent_usd`: on its
    trials, by all controllers; `reserved`: runs of agents that are not charged yet; `lease`: in force at the time;
    `running`: attempts that were launched; `pending`: those of them that still wait for a place, by reason."""

    activity: Activity = Activity.STARTING
    ending: Ending | None = None
    running: int = 0
    pending: Mapping[Wait, int] = field(default_factory=dict[Wait, int])
    open: int = 0
    oldest_open_block: int | None = 0
    spent_usd: float = 0.0
    reserved: int = 0
    starved: bool = False
    conditions: Mapping[str, ConditionCounts] = field(default_factory=dict[str, ConditionCounts])
    losses: Mapping[LossClass, int] = field(default_factory=dict[LossClass, int])
    before: int = 0  # trials that were over when it began
    left_out: int = 0  # as in its tally, of the whole campaign
    lease: Lease | None = None
    answers: Answers = Answers()


def shard_of(trial_id: str, shards: int, namespaces: int = 1) -> int:
    """Which of `shards` drives a trial: the same on every machine. All namespaces have the same number of shards,
    with consecutive numbers. The namespace depends on the trial alone, so a resume that divides the campaign
    differently finds the trial's pod.

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


def oldest_open_block(reports: Sequence[DispatcherStatus]) -> int | None:
    """Of the campaign, from one report of each shard, for their next leases. None: all trials are over."""
    return min((block for report in reports if (block := report.oldest_open_block) is not None), default=None)
