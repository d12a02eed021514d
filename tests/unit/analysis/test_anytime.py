"""Bets on pairs: their size by enumeration, a second implementation over single pairs, and what a look records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from pydantic import ValidationError

from trialfleet_designs.monitoring import bets_of, look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import AnytimeResult, AnytimeRule, Decision, StageCounts, StopRule
from trialfleet_statistics.sequential import Bets, Pairs, at_all_looks, confidence_sequence

HALF = Bets(1.0, 0.3)
ZERO = "0" * 64


def rational_evidence(won: int, lost: int, stake: Fraction) -> Fraction:
    """½ planned + ½ beta(1), the latter as its integral over θ: ∫ θʷ (1 − θ)ˡ dθ = w! l! / (w + l + 1)!."""
    up = (1 + stake) ** won * (1 - stake) ** lost
    down = (1 - stake) ** won * (1 + stake) ** lost
    mixed = Fraction(
        2 ** (won + lost) * math.factorial(won) * math.factorial(lost), math.factorial(won + lost + 1)
    )
    return (up + down) / 4 + mixed / 2


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (9, 2), (3, 30), (25, 25)])
def test_half_agrees_with_rational_numbers(won: int, lost: int) -> None:
    expected = float(rational_evidence(won, lost, Fraction(3, 10)))
    assert math.exp(HALF.log_evidence(Pairs(won, lost, 4))) == pytest.approx(expected, rel=1e-12)


def test_the_stake_of_a_declared_effect() -> None:
    assert Bets.half(0.12).stake == pytest.approx(0.24 / 1.0144)  # 2 Δ / (1 + Δ²)
    declared = Primary(treatment="a", control="b", effect=0.12, stop=AnytimeRule(anytime="half"))
    assert bets_of(declared) == Bets.half(0.12)
    assert bets_of(Primary(treatment="a", control="b", stop=AnytimeRule(anytime="mixture"))) == Bets(3.0)
    with pytest.raises(ValueError, match="fixed end"):
        bets_of(Primary(treatment="a", control="b", stop=StopRule()))


# --- validity, by enumeration of every campaign -----------------------------------------------------

PAIR = (1, 0, -1)  # a alone, equal, b alone


def chance(rates: Sequence[tuple[Fraction, Fraction]], block: Sequence[int]) -> Fraction:
    """Of one block: a pair per task."""
    found = Fraction(1)
    for (a, b), pair in zip(rates, block, strict=True):
        found *= {1: a * (1 - b), -1: b * (1 - a), 0: a * b + (1 - a) * (1 - b)}[pair]
    return found


def ever(
    rates: Sequence[tuple[Fraction, Fraction]], blocks: int, stake: Fraction, most: Fraction
) -> tuple[Fraction, Fraction]:
    """The chance that E reaches `most` after any block, and the mean of E after the last, over all campaigns."""
    reached, mean = Fraction(0), Fraction(0)
    every = list(product(PAIR, repeat=len(rates)))
    open_now: dict[tuple[int, int, bool], Fraction] = {(0, 0, False): Fraction(1)}
    for _ in range(blocks):
        after: dict[tuple[int, int, bool], Fraction] = {}
        for (won, lost, already), before in open_now.items():
            for block in every:
                now = won + block.count(1), lost + block.count(-1)
                state = (*now, already or rational_evidence(*now, stake) >= most)
                after[state] = after.get(state, Fraction(0)) + before * chance(rates, block)
        open_now = after
    for (won, lost, already), probability in open_now.items():
        mean += probability * rational_evidence(won, lost, stake)
        reached += probability * already
    return reached, mean


HALVES, TENTHS = Fraction(1, 2), Fraction(1, 10)


@pytest.mark.parametrize("rates", [[(HALVES, HALVES)] * 2, [(3 * TENTHS, 3 * TENTHS), (9 * TENTHS, 9 * TENTHS)]])
def test_where_rates_are_equal_the_mean_is_one_and_the_size_is_kept(
    rates: list[tuple[Fraction, Fraction]],
) -> None:
    reached, mean = ever(rates, 6, Fraction(1, 2), Fraction(5))
    assert mean == 1  # exactly: rational numbers
    assert 0 < reached <= Fraction(1, 5)


@pytest.mark.parametrize("shift", [TENTHS, 4 * TENTHS])
def test_effects_that_cancel_reject_no_more_often(shift: Fraction) -> None:
    rates = [(HALVES + shift, HALVES - shift), (HALVES - shift, HALVES + shift)]
    reached, mean = ever(rates, 5, Fraction(1, 2), Fraction(5))
    assert mean < 1
    assert reached <= Fraction(1, 5)


# --- the confidence sequence ------------------------------------------------------------------------


def wealth(outcomes: Sequence[int], m: float, bets: Bets) -> float:
    """Pair by pair, with the weights of the specification, no logarithms."""
    grid = [((i - 0.5) / 200, (1 - ((i - 0.5) / 200) ** 2) ** (bets.kappa - 1)) for i in range(1, 201)]
    total = sum(weight for _, weight in grid)
    stakes = [(u, weight / total) for u, weight in grid]
    if bets.stake is not None:
        stakes = [*((u, weight / 2) for u, weight in stakes), (bets.stake, 0.5)]
    found = 0.0
    for u, weight in stakes:
        up = math.prod(1 + u / (1 + m) * (d - m) for d in outcomes)
        down = math.prod(1 - u / (1 - m) * (d - m) for d in outcomes)
        found += weight * (up + down) / 2
    return found


@pytest.mark.parametrize("bets", [HALF, Bets(3.0), Bets(1.0)])
@pytest.mark.parametrize("counts", [(12, 2, 20), (5, 9, 30), (0, 0, 8)])
def test_a_second_implementation_finds_the_same_limits(bets: Bets, counts: tuple[int, int, int]) -> None:
    outcomes = [1] * counts[0] + [-1] * counts[1] + [0] * counts[2]
    found = confidence_sequence(Pairs(*counts), bets, level=0.9)
    assert found.low is not None
    assert found.high is not None
    for limit in (found.low, found.high):
        if abs(limit) < 1:
            assert wealth(outcomes, limit, bets) == pytest.approx(10, rel=1e-6)
    kept = [m for m in np.linspace(-0.99, 0.99, 100) if wealth(outcomes, float(m), bets) < 10]
    assert min(kept) == pytest.approx(found.low, abs=0.021)
    assert max(kept) == pytest.approx(found.high, abs=0.021)
    inside = [m for m in np.linspace(-0.99, 0.99, 100) if found.low < m < found.high]
    assert kept == inside  # one interval, with no gap


def test_interval_and_evidence_decide_alike() -> None:
    for won, lost, equal in [(10, 2, 8), (9, 2, 8), (30, 14, 60), (33, 12, 60), (2, 11, 0)]:
        evidence = HALF.log_evidence(Pairs(won, lost, equal))
        for alpha in (0.05, 0.2):
            found = confidence_sequence(Pairs(won, lost, equal), HALF, level=1 - alpha)
            assert found.low is not None
            assert found.high is not None
            assert (found.low > 0 or found.high < 0) == (evidence >= math.log(1 / alpha))


def test_limits_of_all_looks() -> None:
    looks = [confidence_sequence(one) for one in (Pairs(20, 0, 2), Pairs(20, 3, 4))]
    found = at_all_looks(looks)
    assert found.estimate == looks[1].estimate
    assert (found.low, found.high) == (looks[0].low, looks[1].high)
    apart = at_all_looks([confidence_sequence(one) for one in (Pairs(90, 0, 0), Pairs(90, 900, 0))])
    assert (apart.low, apart.high) == (None, None)
    assert apart.reason == "no difference is within the limits of every look"


# --- what a look records ----------------------------------------------------------------------------

BETTING = Primary(treatment="a", control="b", effect=0.3, stop=AnytimeRule(anytime="half"))


def counts(*tasks: tuple[int, int, int, int]) -> tuple[StageCounts, ...]:
    return tuple(
        StageCounts(task=f"task-{n}", treatment_passed=x, treatment_valid=n_a, control_passed=y, control_valid=n_b)
        for n, (x, n_a, y, n_b) in enumerate(tasks)
    )


def decision(number: int, stage: tuple[StageCounts, ...], result: AnytimeResult) -> Decision:
    return Decision(
        number=number, at=0.0, epoch=1, blocks=number, stage=stage, outcomes=ZERO, amendments=0, result=result
    )


def test_a_look_counts_pairs_and_keeps_the_best_p() -> None:
    first = counts((1, 1, 0, 1), (1, 1, 1, 1), (0, 1, 0, 1), (0, 1, 0, 1))
    result = look_result(BETTING, 4, [], first)
    assert isinstance(result, AnytimeResult)
    assert (result.won, result.lost, result.equal, result.broken) == (1, 0, 3, 0)
    stake = Fraction(60, 109)  # 2 · .3 / 1.09
    assert math.exp(result.log_evidence) == pytest.approx(float(rational_evidence(1, 0, stake)), rel=1e-12)
    taken = [decision(1, first, result)]
    won = counts(*[(1, 1, 0, 1)] * 4)
    for number in (2, 3):
        result = look_result(BETTING, 4, taken, won)
        assert isinstance(result, AnytimeResult)
        taken.append(decision(number, won, result))
    assert (result.won, result.verdict) == (9, "benefit")
    assert result.p_value == pytest.approx(1 / float(rational_evidence(9, 0, stake)), rel=1e-12)
    later = look_result(BETTING, 9, taken, counts(*[(0, 1, 1, 1)] * 4))
    assert isinstance(later, AnytimeResult)
    assert later.log_evidence < result.log_evidence
    assert later.p_value == result.p_value


def test_a_block_with_a_lost_trial_waits_until_tasks_can_weigh_alike() -> None:
    """One of four pairs is broken: blocks stay open until the fifth, and are settled together."""
    broken, whole = counts((1, 1, 0, 1), (1, 1, 1, 1), (1, 1, 0, 0), (0, 1, 0, 1)), counts(*[(1, 1, 0, 1)] * 4)
    taken: list[Decision] = []
    for number in range(1, 6):
        stage = broken if number == 1 else whole
        result = look_result(BETTING, 25, taken, stage)
        assert isinstance(result, AnytimeResult)
        taken.append(decision(number, stage, result))
        open_blocks, settled = (0, 19) if number == 5 else (number, 0)
        assert (result.open_blocks, result.won + result.lost + result.equal) == (open_blocks, settled)
        assert (result.p_value < 1, result.broken) == (number == 5, 1)
    assert look_result(BETTING, 1, [], broken).p_value == 1  # nor at the planned end: a task has no pair


def test_harm() -> None:
    result = look_result(BETTING, 4, [], counts(*[(0, 1, 1, 1)] * 12))
    assert result.verdict == "harm"


def test_counts_of_several_blocks_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="of several"):
        look_result(BETTING, 4, [], counts((2, 2, 0, 2)))


def test_half_needs_an_effect() -> None:
    with pytest.raises(ValidationError, match="none is declared"):
        Primary(treatment="a", control="b", stop=AnytimeRule(anytime="half"))
    with pytest.raises(ValidationError, match="estimand: these_tasks"):
        Primary(
            treatment="a",
            control="b",
            estimand="tasks_like_these",
            stop=AnytimeRule(anytime="mixture"),
        )
    found = Primary.model_validate({"treatment": "a", "control": "b", "stop": {"anytime": "mixture"}})
    assert found.anytime == AnytimeRule(anytime="mixture")
    with pytest.raises(ValidationError) as refused:
        Primary.model_validate({"treatment": "a", "control": "b", "stop": {"anytime": "mixture", "looks": 5}})
    assert [one["type"] for one in refused.value.errors()] == ["extra_forbidden"]  # about that rule alone
