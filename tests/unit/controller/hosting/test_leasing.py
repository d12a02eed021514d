"""Leases of shards that die, come back, lose messages and overlook what they hear: never more than there is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.backends.protocol import LIVE_PODS
from trialfleet_controller.dispatch.shards import Activity, Answers, DispatcherStatus, Ending, Lease
from trialfleet_controller.hosting.leasing import Leasing, Pool, combined, fill

WIDTH, CAP, TRIAL = 7, 23.0, 2.0
POOL = Pool(WIDTH, money_usd=CAP, trial_usd=TRIAL, creates_per_s=10, creates_burst=20)


def report(
    *,
    open: int = 10,
    running: int = 0,
    spent: float = 0.0,
    block: int | None = 0,
    activity: Activity = Activity.DRIVING,
    ending: Ending | None = None,
    starved: bool = False,
    lease: Lease | None = None,
) -> DispatcherStatus:
    return DispatcherStatus(
        activity=activity,
        ending=ending,
        running=running,
        open=open,
        oldest_open_block=block,
        spent_usd=spent,
        reserved=running,
        starved=starved,
        lease=lease,
    )


def settle(pool: Pool, *reports: DispatcherStatus, rounds: int = 4) -> tuple[Leasing, list[Lease]]:
    """What each shard holds when nothing else happens."""
    leasing = Leasing(pool, len(reports))
    held: list[Lease | None] = [None] * len(reports)
    for _ in range(rounds):
        for shard, said in enumerate(reports):
            leasing, held[shard] = leasing.asked(shard, held[shard], replace(said, lease=held[shard]))
    return leasing, [lease for lease in held if lease is not None]


# --- fair shares ----------------------------------------------------------------------------------


@given(st.integers(0, 200), st.lists(st.integers(0, 60), max_size=8))
def test_fair_shares(amount: int, wanted: list[int]) -> None:
    shares = fill(amount, wanted)
    assert sum(shares) == min(amount, sum(wanted))
    assert all(share <= want for share, want in zip(shares, wanted, strict=True))
    hungry = [share for share, want in zip(shares, wanted, strict=True) if share < want]
    if hungry:
        assert max(shares) <= min(hungry) + 1, "who wants more has no less than anybody, but for a rest of one"


def test_nothing_before_every_shard_has_spoken() -> None:
    leasing, lease = Leasing(POOL, 2).asked(0, None, report())
    assert (lease.width, lease.money_usd, lease.oldest_open_block) == (0, 0.0, 0)
    leasing, lease = leasing.asked(1, None, report())
    assert lease.width == 3
    _, lease = leasing.asked(0, lease, report())
    assert lease.width == 4


def test_the_width_goes_where_trials_are() -> None:
    _, (few, many) = settle(POOL, report(open=2), report(open=50))
    assert (few.width, many.width) == (2, 5)


def test_pods_of_a_dispatcher_that_died_hold_their_places_and_their_money() -> None:
    _, (theirs, mine) = settle(POOL, report(running=6), report(), rounds=1)
    assert (theirs.width, mine.width) == (0, 1)
    _, (theirs, mine) = settle(POOL, report(running=WIDTH, spent=9.0), report())
    assert (theirs.width, mine.width) == (4, 0)
    assert (theirs.money_usd, mine.money_usd) == (23.0, 0.0)


def test_a_shard_holds_no_more_pods_than_a_namespace_should() -> None:
    _, leases = settle(Pool(10_000), report(open=9_000), report(open=9_000))
    assert [lease.width for lease in leases] == [LIVE_PODS, LIVE_PODS]


def test_the_oldest_block_is_that_of_all() -> None:
    _, leases = settle(POOL, report(block=7), report(block=3), report(open=0, block=None))
    assert {lease.oldest_open_block for lease in leases} == {3}


def test_who_has_the_oldest_block_gets_the_last_money() -> None:
    """The other may be waiting for that block: with the money in its hands nobody could go on."""
    pool = replace(POOL, money_usd=3.0)
    _, (newer, older) = settle(pool, report(block=5), report(block=4))
    assert (newer.money_usd, older.money_usd) == (0.0, 2.0)


def test_money_is_leased_in_whole_trials_beyond_what_is_committed() -> None:
    _, leases = settle(POOL, report(spent=5.0, running=1), report(spent=1.0))
    # 23 less 5 and 2 committed by one, 1 by the other: seven more trials
    assert [lease.money_usd for lease in leases] == [5.0 + 2.0 + 4 * 2.0, 1.0 + 3 * 2.0]


def test_out_of_money_when_nobody_runs_and_nobody_can_pay() -> None:
    starved = report(spent=11.0, starved=True)
    leasing, leases = settle(POOL, starved, starved)
    assert leasing.ending() is Ending.OUT_OF_MONEY
    assert {lease.ending for lease in leases} == {Ending.OUT_OF_MONEY}
    assert settle(POOL, starved, report(spent=10.0, running=1))[0].ending() is None
    assert settle(POOL, report(spent=9.0, starved=True), starved)[0].ending() is None


def test_an_outage_of_one_ends_all() -> None:
    leasing, leases = settle(POOL, report(ending=Ending.OUTAGE), report())
    assert leasing.ending() is Ending.OUTAGE
    assert leases[1].ending is Ending.OUTAGE


def test_every_shard_hears_what_the_others_have_met_at_the_provider() -> None:
    troubled, well = replace(report(), answers=Answers(4, 1)), replace(report(), answers=Answers(0, 6))
    leasing, leases = settle(POOL, troubled, well, replace(report(), answers=Answers(1, 0)))
    assert [lease.elsewhere for lease in leases] == [Answers(1, 6), Answers(5, 1), Answers(4, 7)]
    _, lease = Leasing(POOL, 2).asked(0, leases[0], troubled)
    assert lease.elsewhere is None, "a new supervisor has not heard them all"
    assert leasing.ending() is None


def test_the_create_rate_is_shared_by_those_who_are_not_over() -> None:
    _, leases = settle(POOL, report(), report(), report(open=0, block=None, activity=Activity.OVER))
    assert [lease.creates_per_s for lease in leases[:2]] == [5.0, 5.0]
    assert [lease.creates_burst for lease in leases[:2]] == [10, 10]


def test_without_a_cap_there_is_no_money_to_lease() -> None:
    _, leases = settle(Pool(4), report(), report())
    assert [lease.money_usd for lease in leases] == [None, None]


@pytest.mark.parametrize(
    ("endings", "whole"),
    [
        ([Ending.COMPLETE, Ending.COMPLETE], Ending.COMPLETE),
        ([Ending.COMPLETE, Ending.HALTED], Ending.HALTED),
        ([Ending.COMPLETE, Ending.INCOMPLETE], Ending.INCOMPLETE),
        ([Ending.INCOMPLETE, Ending.HALTED], Ending.HALTED),
        ([Ending.OUTAGE, Ending.COMPLETE], Ending.OUTAGE),
        ([Ending.INTERRUPTED, Ending.OUTAGE], Ending.INTERRUPTED),
    ],
)
def test_how_a_campaign_ended(endings: list[Ending], whole: Ending) -> None:
    assert combined(endings) is whole


# --- whatever happens -----------------------------------------------------------------------------


@dataclass
class Shard:
    """A dispatcher and the pods of its shard. `force`: the lease that its core obeys; `held`: the one it was given
    last, which the core takes up when it comes round to it."""

    open: int = 12
    running: int = 0
    spent: float = 0.0
    held: Lease | None = None
    force: Lease = field(default_factory=lambda: Lease(0, money_usd=0.0))
    activity: Activity = Activity.STARTING
    told: DispatcherStatus = field(default_factory=DispatcherStatus)

    @property
    def committed(self) -> float:
        return self.spent + self.running * TRIAL

    def pays_for_one_more(self) -> bool:
        return self.committed + TRIAL <= (self.force.money_usd or 0.0) + 1e-9

    def may_launch(self) -> bool:
        known = self.activity is Activity.DRIVING
        return known and self.open > self.running < self.force.width and self.pays_for_one_more()

    def turn(self) -> None:
        """The core says how it stands; it may have done more since."""
        if self.activity is Activity.STARTING:
            self.told = DispatcherStatus(open=self.open)
        else:
            self.told = report(
                open=self.open,
                running=self.running,
                spent=self.spent,
                activity=self.activity,
                lease=self.force,
                block=0 if self.open else None,
                starved=not self.running
                and self.open > 0
                and self.spent + TRIAL > (self.force.money_usd or 0.0) + 1e-9,
            )


class World:
    """Pods go on while their dispatcher is dead; the supervisor forgets everything; answers vanish."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.shards = [Shard(open=self.dice.randint(1, 12)) for _ in range(self.dice.randint(1, 3))]
        self.leasing = Leasing(POOL, len(self.shards))

    def step(self, *, trouble: bool) -> None:
        number = self.dice.randrange(len(self.shards))
        shard, chance = self.shards[number], self.dice.random()
        if trouble and chance < 0.04:
            shard.held, shard.force, shard.activity = None, Lease(0, money_usd=0.0), Activity.STARTING
            shard.turn()
        elif trouble and chance < 0.05:
            self.leasing = Leasing(POOL, len(self.shards))
        elif chance < 0.15:
            later = {Activity.STARTING: Activity.RECOVERING, Activity.RECOVERING: Activity.DRIVING}
            shard.activity = later.get(shard.activity, shard.activity)
        elif chance < 0.45:
            self.leasing, lease = self.leasing.asked(number, shard.held, shard.told)
            if not trouble or self.dice.random() < 0.8:
                shard.held = lease
        elif chance < 0.6:
            shard.turn()
        elif chance < 0.75:
            shard.force = shard.held or shard.force
        elif chance < 0.9:
            shard.running += shard.may_launch()
        elif shard.running:
            shard.running -= 1
            shard.open -= self.dice.random() < 0.7
            shard.spent += self.dice.uniform(0.5, TRIAL)

    def check(self) -> None:
        assert sum(max(shard.running, shard.force.width) for shard in self.shards) <= WIDTH
        committed = sum(max(shard.committed, shard.force.money_usd or 0.0) for shard in self.shards)
        assert committed <= CAP + 1e-6

    @property
    def over(self) -> bool:
        return not any(shard.open or shard.running for shard in self.shards)


@pytest.mark.parametrize("seed", range(60))
def test_never_more_than_there_is_whatever_happens(seed: int) -> None:
    world = World(seed)
    for _ in range(600):
        world.step(trouble=True)
        world.check()


@pytest.mark.parametrize("seed", range(30))
def test_after_the_trouble_all_is_done_or_the_money_is_out(seed: int) -> None:
    world = World(seed)
    for _ in range(100):
        world.step(trouble=True)
    for _ in range(20_000):
        world.step(trouble=False)
        world.check()
        if world.over or world.leasing.ending() is Ending.OUT_OF_MONEY:
            break
    assert world.over or world.leasing.ending() is Ending.OUT_OF_MONEY
    left = CAP - sum(shard.spent for shard in world.shards)
    assert world.over or left < TRIAL
