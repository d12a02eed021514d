"""How much of a campaign's limits each shard may use: width, starts a second, money. Pure values.

Every shard reports repeatedly what it holds and what it has begun, and gets a lease for what it may use from then
on. What it held counts as used until it reports that it holds less: an answer may be lost, and a dispatcher that
died may have begun everything it was allowed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trialfleet_controller.backends.protocol import LIVE_PODS
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.dispatch.shards import (
    Activity,
    Answers,
    DispatcherStatus,
    Ending,
    Lease,
    oldest_open_block,
)
from trialfleet_controller.hosting.division import width
from trialfleet_ledger.plan import Plan

# A shard that ends like this ends the campaign: the others would wait for its blocks forever.
CONTAGIOUS = (Ending.INTERRUPTED, Ending.OUTAGE, Ending.OUT_OF_TIME, Ending.OUT_OF_MONEY)
_WORST_FIRST = (
    Ending.INTERRUPTED,
    Ending.OUTAGE,
    Ending.CANCELLED,
    Ending.OUT_OF_TIME,
    Ending.OUT_OF_MONEY,
    Ending.HALTED,
    Ending.DECIDED,
    Ending.INCOMPLETE,
    Ending.COMPLETE,
)


@dataclass(frozen=True, slots=True)
class Pool:
    """What all shards share. `money_usd`: the campaign's cap, None: none; `trial_usd`: the most a trial may cost,
    above 0 when there is a cap."""

    width: int
    money_usd: float | None = None
    trial_usd: float = 0.0
    creates_per_s: float | None = None
    creates_burst: int = 1

    @staticmethod
    def of(plan: Plan, options: DriveOptions, cost_usd: float | None) -> Pool:
        """`cost_usd`: the campaign's cap, with every amendment."""
        return Pool(
            width(plan, options),
            cost_usd,
            plan.limits.cost_usd or 0.0,
            options.creates_per_s,
            options.creates_burst,
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """The most that a shard may have in use, whichever lease reached it."""

    width: int = 0
    money_usd: float = 0.0

    def __or__(self, other: Claim) -> Claim:
        return Claim(max(self.width, other.width), max(self.money_usd, other.money_usd))


@dataclass(frozen=True, slots=True)
class Holder:
    """A shard's latest report that says what it has begun, and its claim."""

    report: DispatcherStatus
    claim: Claim


@dataclass(frozen=True, slots=True)
class Leasing:
    """The leases of one campaign. `shards`: how many there are; until each has reported what it has begun, no
    shard gets more than it holds."""

    pool: Pool
    shards: int
    holders: Mapping[int, Holder] = field(default_factory=dict[int, Holder])

    def asked(self, shard: int, held: Lease | None, report: DispatcherStatus) -> tuple[Leasing, Lease]:
        """`held`: the last lease that the shard received; None: it has received none."""
        if not self._known(report):
            return self, self._complete(shard, self._holding(held))
        said = self._claim(held) | self._claim(report.lease) | self._begun(report)
        heard = replace(self, holders={**self.holders, shard: Holder(report, said)})
        lease = heard._complete(shard, heard._share(shard) if heard.settled else self._holding(held))
        claim = said | self._claim(lease)
        return replace(heard, holders={**heard.holders, shard: Holder(report, claim)}), lease

    @property
    def settled(self) -> bool:
        """Whether every shard has reported what it has begun."""
        return len(self.holders) == self.shards

    @property
    def reports(self) -> list[DispatcherStatus]:
        return [holder.report for holder in self.holders.values()]

    def ending(self) -> Ending | None:
        """Why nothing more may start in any shard; None: trials may start."""
        endings = {report.ending for report in self.reports}
        for ending in CONTAGIOUS:
            if ending in endings:
                return ending
        return Ending.OUT_OF_MONEY if self._money_is_out() else None

    def _money_is_out(self) -> bool:
        """No attempt runs, and the money that is left pays for no trial."""
        going = [report for report in self.reports if report.activity is not Activity.OVER and report.open]
        idle = all(report.starved and not report.reserved for report in going)
        return self.settled and bool(going) and idle and self._affordable(self.reports) == 0

    # --- claims -------------------------------------------------------------------------------------

    def _known(self, report: DispatcherStatus) -> bool:
        """Whether the report covers everything that earlier dispatchers of the shard have begun and spent."""
        if report.activity is Activity.STARTING:
            return False
        return self.pool.money_usd is None or report.activity is not Activity.RECOVERING

    def _holding(self, held: Lease | None) -> Lease:
        return held or Lease(0, money_usd=None if self.pool.money_usd is None else 0.0)

    def _claim(self, lease: Lease | None) -> Claim:
        return Claim() if lease is None else Claim(lease.width, lease.money_usd or 0.0)

    def _begun(self, report: DispatcherStatus) -> Claim:
        """`reserved` includes attempts that are launched or settled just now; `running` includes those that only
        score."""
        return Claim(max(report.running, report.reserved), self._committed(report))

    def _committed(self, report: DispatcherStatus) -> float:
        """US dollars: spent, and what runs may still cost."""
        return report.spent_usd + report.reserved * self.pool.trial_usd

    def _others(self, shard: int) -> list[Claim]:
        return [holder.claim for index, holder in self.holders.items() if index != shard]

    # --- shares -------------------------------------------------------------------------------------

    def _share(self, shard: int) -> Lease:
        order = sorted(self.holders, key=self._urgency)
        reports = [self.holders[index].report for index in order]
        place = order.index(shard)
        others = self._others(shard)
        share = fill(self.pool.width, [min(report.open, LIVE_PODS) for report in reports])[place]
        return Lease(
            max(0, min(share, self.pool.width - sum(claim.width for claim in others))),
            money_usd=self._money(reports, place, others),
        )

    def _urgency(self, shard: int) -> tuple[float, int]:
        """The shard with the oldest open block comes first: the others may be waiting for it."""
        block = self.holders[shard].report.oldest_open_block
        return float("inf") if block is None else block, shard

    def _money(self, reports: Sequence[DispatcherStatus], place: int, others: Iterable[Claim]) -> float | None:
        """In whole trials: half a trial's money in each of two shards would pay for none."""
        if self.pool.money_usd is None:
            return None
        wanted = [max(0, report.open - report.reserved) for report in reports]
        share = fill(self._affordable(reports), wanted)[place] * self.pool.trial_usd
        left = self.pool.money_usd - sum(claim.money_usd for claim in others)
        return max(0.0, min(self._committed(reports[place]) + share, left))

    def _affordable(self, reports: Iterable[DispatcherStatus]) -> int:
        """How many more trials the campaign can pay for."""
        if self.pool.money_usd is None:
            return 1
        left = self.pool.money_usd - sum(map(self._committed, reports))
        return max(0, int(left / self.pool.trial_usd + 1e-9))

    def _complete(self, shard: int, lease: Lease) -> Lease:
        """Add what does not depend on claims: an outdated block only holds back, and a shard that is over starts
        nothing."""
        over = sum(report.activity is Activity.OVER for report in self.reports)
        drivers = max(1, self.shards - over)
        rate = self.pool.creates_per_s
        return replace(
            lease,
            creates_per_s=None if rate is None else rate / drivers,
            creates_burst=max(1, self.pool.creates_burst // drivers),
            oldest_open_block=(oldest_open_block(self.reports) or 0) if self.settled else 0,
            ending=self.ending(),
            elsewhere=self._elsewhere(shard),
        )

    def _elsewhere(self, shard: int) -> Answers | None:
        """What the other shards met at the provider. None until all have reported: first reports are not news."""
        others = [holder.report.answers for index, holder in self.holders.items() if index != shard]
        return sum(others, Answers()) if self.settled else None


def fill(amount: int, wanted: Sequence[int]) -> list[int]:
    """Max-min fair shares of `amount`: no share is more than is wanted, and the shares that are less are equal,
    except for a remainder that goes to the first.

    >>> fill(10, [2, 9, 9]), fill(10, [1, 2, 3]), fill(1, [0, 4, 4])
    ([2, 4, 4], [1, 2, 3], [0, 1, 0])
    """
    shares = [0] * len(wanted)
    while amount and (hungry := [i for i, share in enumerate(shares) if share < wanted[i]]):
        level = max(1, amount // len(hungry))
        for i in hungry:
            more = min(level, wanted[i] - shares[i], amount)
            shares[i] += more
            amount -= more
    return shares


def combined(endings: Iterable[Ending]) -> Ending:
    """How the campaign ended, from how each of its shards did."""
    return min(endings, key=_WORST_FIRST.index)
