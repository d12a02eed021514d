"""Tests that are valid at any look, under any drift, however often a campaign grows: bets on discordant pairs.

A pair is one trial per arm of a task in a block. Where rates are equal, a discordant pair favours either arm
with probability ½, so that the wealth of whoever bets on one arm has mean 1 at any time (Ville 1939): wealth of
1 / alpha rejects. Over complete blocks of fixed tasks it also holds for effects that cancel: given the past the
pairs of a block are independent, and Π (1 + λ δ_t) ≤ (1 + λ δ̄)^T by the inequality of means. Evidence of two
campaigns multiplies. Sources: Shafer 2021; Waudby-Smith & Ramdas 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from trialfleet_analysis.statistics.estimates import LEAST, Floats, Interval, floats, share, whole

_STAKES = 200  # points of the mixture over stakes
METHOD = "confidence_sequence"
_NO_PAIR = "no complete pair"


@dataclass(frozen=True)
class Pairs:
    """Complete pairs up to a look: `won` only by a, `lost` only passed by b, `equal` in both. Sums of two
    campaigns' pairs are their common evidence only where the stake was fixed before both."""

    won: int
    lost: int
    equal: int

    def __post_init__(self) -> None:
        whole([self.won, self.lost, self.equal], "pairs")


def log_evidence(pairs: Pairs, *, kappa: float = 3.0) -> float:
    """ln E of the bets on both arms, mixed over stakes λ = 2 θ − 1 with θ ~ Beta(κ, κ): larger κ, smaller effects.

    E = 2^(won + lost) B(κ + won, κ + lost) / B(κ, κ).

    >>> round(math.exp(log_evidence(Pairs(10, 0, 5), kappa=1)), 4)
    93.0909
    """
    if not kappa > 0:
        raise ValueError(f"kappa must be above 0, got {kappa}")
    discordant = (pairs.won + pairs.lost) * math.log(2)
    return discordant + float(special.betaln(kappa + pairs.won, kappa + pairs.lost) - special.betaln(kappa, kappa))


def log_evidence_at(pairs: Pairs, stake: float) -> float:
    """ln E of one fixed stake λ, on a and on b with half of the wealth each.

    >>> round(math.exp(log_evidence_at(Pairs(15, 5, 0), 0.35)), 4)
    5.234
    """
    if not 0 < stake < 1:
        raise ValueError(f"stake must lie between 0 and 1, got {stake}")
    gain, cost = math.log1p(stake), math.log1p(-stake)
    on_a, on_b = pairs.won * gain + pairs.lost * cost, pairs.won * cost + pairs.lost * gain
    return float(np.logaddexp(on_a, on_b)) - math.log(2)


def planned_stake(rates_a: Floats, rates_b: Floats) -> float:
    """The stake that grows fastest at the planned rates, shape (T,) each: (o − 1) / (o + 1) of the odds o of a
    discordant pair in favour of the better arm, held to .01 … .95."""
    only_a, only_b = float((rates_a * (1 - rates_b)).sum()), float((rates_b * (1 - rates_a)).sum())
    better, worse = max(only_a, only_b), min(only_a, only_b)
    return min(0.95, max(0.01, (better - worse) / (better + worse))) if better > 0 else 0.01


@dataclass(frozen=True)
class Bets:
    """How wealth is bet, fixed before a campaign starts: mixed over stakes by `kappa`, half of it on `stake` where
    one was planned."""

    kappa: float = 3.0
    stake: float | None = None

    @staticmethod
    def half(effect: float) -> Bets:
        """Half for a planned difference of rates, .5 − Δ/2 against .5 + Δ/2, half on all stakes alike (κ = 1).

        >>> round(Bets.half(0.12).stake or 0, 4)  # 2 Δ / (1 + Δ²)
        0.2366
        """
        better, worse = np.array([0.5 + effect / 2]), np.array([0.5 - effect / 2])
        return Bets(1.0, planned_stake(better, worse))

    def log_evidence(self, pairs: Pairs) -> float:
        """ln E of these pairs."""
        mixed = log_evidence(pairs, kappa=self.kappa)
        if self.stake is None:
            return mixed
        return float(np.logaddexp(log_evidence_at(pairs, self.stake), mixed)) - math.log(2)

    def on_stakes(self) -> tuple[Floats, Floats]:
        """A grid of stakes and the logarithms of their shares of the wealth, for differences other than 0."""
        stakes = (np.arange(1, _STAKES + 1) - 0.5) / _STAKES
        weights = (self.kappa - 1) * np.log1p(-(stakes**2))
        weights -= special.logsumexp(weights)
        if self.stake is not None:
            stakes, weights = np.append(stakes, self.stake), np.append(weights, 0.0) - math.log(2)
        return floats(stakes), floats(weights)


def anytime_p(largest_log_evidence: float) -> float:
    """p of the largest evidence over the looks so far: min(1, 1 / E). Holds whenever it is read.

    >>> round(anytime_p(math.log(40)), 3)
    0.025
    """
    return min(1.0, max(LEAST, math.exp(-largest_log_evidence)))


def confidence_sequence(pairs: Pairs, bets: Bets | None = None, *, level: float = 0.95) -> Interval:
    """The mean difference of rates with limits that hold at all looks at once.

    Kept are the differences m against which bets on D − m, D in {−1, 0, 1}, have not won 1 / (1 − level): stakes
    u / (1 + m) upwards and u / (1 − m) downwards, mixed over u as the `bets` are (None: κ = 3), on a grid of
    (i − ½) / 200. At m = 0 it is their evidence, up to that grid. Undefined without a pair.

    >>> confidence_sequence(Pairs(15, 5, 60)).rounded(4)
    (-0.0469, 0.2991)
    """
    alpha = 1 - share(level, "level")
    count = pairs.won + pairs.lost + pairs.equal
    if not count:
        return Interval(None, None, None, level, 0, METHOD, "these_tasks", _NO_PAIR)
    estimate = (pairs.won - pairs.lost) / count
    stakes, weights = (bets or Bets()).on_stakes()

    def beyond(m: float) -> float:
        return _log_wealth(pairs, m, stakes, weights) + math.log(alpha)

    low, high = _end(beyond, estimate, -1.0), _end(beyond, estimate, 1.0)
    return Interval(estimate, low, high, level, 2 * count, METHOD, "these_tasks")


def at_all_looks(sequence: Sequence[Interval]) -> Interval:
    """The last look's estimate with the limits that all looks so far leave: as valid, and never wider."""
    last = sequence[-1]
    lows = [one.low for one in sequence if one.low is not None]
    highs = [one.high for one in sequence if one.high is not None]
    if not lows or not highs:
        return last
    low, high = max(lows), min(highs)
    if low > high:  # by chance in no more than 1 − level of campaigns, or since the difference drifts
        return replace(last, low=None, high=None, reason="no difference is within the limits of every look")
    return replace(last, low=low, high=high)


def _log_wealth(pairs: Pairs, m: float, stakes: Floats, log_weights: Floats) -> float:
    def bet(stake: Floats) -> Floats:
        return floats(
            special.xlog1py(pairs.won, stake * (1 - m))
            + special.xlog1py(pairs.lost, -stake * (1 + m))
            + special.xlog1py(pairs.equal, -stake * m)
        )

    up, down = bet(floats(stakes / (1 + m))), bet(floats(-stakes / (1 - m)))
    return float(special.logsumexp(log_weights + np.logaddexp(up, down) - math.log(2)))


def _end(beyond: Callable[[float], float], estimate: float, side: float) -> float:
    """Where the wealth reaches what rejects, between the estimate and −1 or 1."""
    inside = 1 - 1e-9
    first, last = min(inside, max(-inside, estimate)), side * inside
    if first == last or beyond(last) < 0:
        return side
    return float(optimize.brentq(beyond, first, last, xtol=1e-12))
