"""Bets where trials are lost: every task weighs the same whatever is complete, by rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from trialfleet_statistics.sequential import Bets, Pairs, betting_stages, confidence_sequence, mean_margin
from trialfleet_statistics.sequential.betting import MOST_STAKED

NAN = float("nan")


def test_without_losses_every_block_is_settled_with_the_whole_stake() -> None:
    d = np.array([[1, 0, -1], [1, 1, 0]])
    found = betting_stages(d)
    assert found.closed == (1, 2, 3)
    assert found.pairs[-1] == (Pairs(3, 1, 2),)
    bets = Bets.half(0.3)
    assert bets.log_evidence(found.pairs[-1]) == bets.log_evidence(Pairs(3, 1, 2))


def test_a_stage_waits_for_a_pair_of_every_task() -> None:
    d = np.ones((2, 8))
    d[1, :6] = NAN
    assert betting_stages(d).closed == (7, 8)
    assert betting_stages(d[:, :6]).closed == ()
    assert betting_stages(d[:, :4], planned=4).closed == ()
    d[1, 2] = 1
    assert betting_stages(d[:, :4], planned=4).closed == (4,)


def test_a_task_that_loses_ten_blocks_leaves_and_the_others_go_on() -> None:
    d = np.ones((3, 14))
    d[2] = NAN
    found = betting_stages(d)
    assert found.tasks.tolist() == [True, True, False]
    assert found.closed == (10, 11, 12, 13, 14)
    assert found.pairs[-1] == (Pairs(28, 0, 0),)
    present = np.ones((3, 14), dtype=bool)
    present[2, 3:] = False  # halted: it no longer holds the others up
    assert betting_stages(d, present=present).closed == (4, *range(5, 15))


def test_each_task_weighs_the_same_in_the_mean_margin() -> None:
    """Task 0 has 5 pairs that a alone passed, task 1 one that b alone passed: pooled 5 to 1, by tasks 1 to 1."""
    d = np.full((2, 5), NAN)
    d[0], d[1, 2] = 1, -1
    [pairs] = betting_stages(d).pairs
    assert mean_margin(pairs) == pytest.approx(0)
    interval = confidence_sequence(pairs)
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low < 0 < interval.high


@pytest.mark.parametrize("stake", [Fraction(1, 5), Fraction(3, 5), Fraction(19, 20)])
@pytest.mark.parametrize("complete", [(5, 1), (4, 2), (3, 3), (5, 2, 1)])
def test_for_effects_that_cancel_the_mean_of_the_wealth_is_at_most_one(
    complete: tuple[int, ...], stake: Fraction
) -> None:
    """Over all outcomes of a stage with so many complete pairs, of one stake on a: what pooling breaks."""
    effects = [Fraction(-2, 5), Fraction(2, 5)] if len(complete) == 2 else [Fraction(-1, 5)] * 2 + [Fraction(2, 5)]
    d = np.full((len(complete), 5), NAN)
    for task, n in enumerate(complete):
        d[task, :n] = 0
    bets = Bets(1.0, float(stake))
    mean = mixed = 0.0
    places = [(t, b) for t, n in enumerate(complete) for b in range(n)]
    for outcome in product((1, -1), repeat=len(places)):  # margins of rates p and 1 − p have mean 2 p − 1
        chance = math.prod(
            float((1 + sign * effects[t]) / 2) for (t, _), sign in zip(places, outcome, strict=True)
        )
        for (t, b), sign in zip(places, outcome, strict=True):
            d[t, b] = sign
        [pairs] = betting_stages(d, planned=5).pairs[-1:]
        mean += chance * _wealth(pairs, float(stake))
        mixed += chance * math.exp(bets.log_evidence(pairs))
    assert mean <= 1 + 1e-12
    assert mixed <= 1 + 1e-12


def _wealth(pairs: tuple[Pairs, ...], stake: float) -> float:
    """Of one stake on a, by multiplication."""
    found = 1.0
    for one in pairs:
        bet = stake * one.part * min(one.room, max(1.0, MOST_STAKED / stake))
        found *= (1 + bet) ** one.won * (1 - bet) ** one.lost
    return found


def test_evidence_by_parts_is_the_closed_form_where_all_parts_are_one() -> None:
    for bets in (Bets.half(0.3), Bets()):
        whole = bets.log_evidence(Pairs(30, 12, 20))
        by_parts = bets.log_evidence((Pairs(30, 12, 20), Pairs(0, 0, 3, 0.5)))  # equal pairs win nothing
        assert by_parts == pytest.approx(whole, abs=1e-11)
