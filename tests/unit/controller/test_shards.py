"""Several dispatchers of one campaign: each trial has one of them, and none runs away from the others."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_controller.dispatch.shards import DispatcherStatus, of_shard, oldest_open_block
from trialfleet_controller.dispatch.trial_table import CampaignBudget, OpenTrial, TrialState, TrialTable
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.trial_order import Planned, base32


def make_trials(blocks: int, cells: int = 5) -> list[Planned]:
    return [
        Planned(base32(bytes.fromhex(sha256(b"%d %d" % (b, c)))), f"task-{c}", "none", b, 0, b, c)
        for b in range(blocks)
        for c in range(cells)
    ]


def abandoned(trial: Planned) -> Outcome:
    return Outcome(trial=trial.record(), attempts=1, abandoned=LossClass.EVICTED, losses=(LossClass.EVICTED,))


class Shard:
    """The book of one, and what its supervisor knows of it: which may be old."""

    def __init__(self, trials: list[Planned], ahead: int) -> None:
        budget = CampaignBudget(cap=None, trial=0.0)
        self.table = TrialTable(trials, blocks_ahead=ahead, budget=budget, metered=())
        self.table.queue.oldest_elsewhere = 0
        self.running: list[OpenTrial] = []
        self.report = DispatcherStatus()

    def start(self) -> Planned | None:
        opened = self.table.take()
        if opened is not None:
            self.table.put(opened, TrialState.RUNNING)
            self.running.append(opened)
        return None if opened is None else opened.trial

    def finish(self, which: int, *, lost: bool) -> Planned | None:
        if not self.running:
            return None
        opened = self.running.pop(which % len(self.running))
        if lost:
            self.table.wait(opened)
            return None
        self.table.put(opened, TrialState.CONCLUDING)
        self.table.conclude(opened.trial, abandoned(opened.trial))
        return opened.trial

    def tell(self) -> None:
        self.report = DispatcherStatus(oldest_open_block=self.table.queue.oldest)


steps = st.tuples(
    st.sampled_from(["start", "finish", "lose", "tell", "lease"]), st.integers(0, 3), st.integers(0, 9)
)


@settings(deadline=None, max_examples=150)
@given(st.lists(steps, max_size=150), st.integers(1, 4), st.integers(0, 3))
def test_no_shard_runs_ahead_of_the_campaign_and_none_forgets_a_trial(
    schedule: list[tuple[str, int, int]], count: int, ahead: int
) -> None:
    """Reports and leases may come late: what they allow was true once, and the oldest block only grows."""
    every = make_trials(6)
    shards = [Shard(of_shard(every, k, count), ahead) for k in range(count)]
    finished: list[str] = []
    whole = [
        (step, shard, 0)
        for _ in range(80)
        for shard in range(count)
        for step in ("start", "finish", "tell", "lease")
    ]
    for step, number, which in [*schedule, *whole]:
        shard = shards[number % count]
        if step == "start" and (trial := shard.start()) is not None:
            oldest = min(t.block for t in every if t.id not in finished)
            assert trial.block <= oldest + ahead
            assert trial.id not in finished
        elif step in ("finish", "lose"):
            over = shard.finish(which, lost=step == "lose")
            finished += [over.id] if over is not None else []
        elif step == "tell":
            shard.tell()
        elif step == "lease" and (oldest_known := oldest_open_block([s.report for s in shards])) is not None:
            shard.table.queue.oldest_elsewhere = oldest_known
    assert sorted(finished) == sorted(trial.id for trial in every)
    assert all(s.table.queue.open == 0 and s.table.busy == 0 and s.table.reserved == 0 for s in shards)


@pytest.mark.parametrize(("count", "namespaces"), [(1, 1), (2, 1), (3, 1), (7, 1), (2, 2), (6, 2), (6, 3)])
def test_every_trial_has_one_shard_and_shards_are_even(count: int, namespaces: int) -> None:
    every = make_trials(400)
    mine = [of_shard(every, k, count, namespaces) for k in range(count)]
    assert Counter(trial.id for shard in mine for trial in shard) == Counter(trial.id for trial in every)
    assert all(shard == sorted(shard, key=lambda trial: (trial.block, trial.position)) for shard in mine)
    assert all(abs(len(shard) - len(every) / count) < 0.15 * len(every) / count for shard in mine)


def test_who_has_not_reported_holds_everybody_back() -> None:
    assert oldest_open_block([DispatcherStatus(oldest_open_block=5), DispatcherStatus()]) == 0
    assert (
        oldest_open_block([DispatcherStatus(oldest_open_block=5), DispatcherStatus(oldest_open_block=None)]) == 5
    )
    assert oldest_open_block([DispatcherStatus(oldest_open_block=None)]) is None
