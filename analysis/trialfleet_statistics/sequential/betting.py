"""Tests that are valid at any look, under any drift, however often a campaign grows: bets on discordant pairs.

A pair is one trial per arm of a task in a block. Where rates are equal, a discordant pair favours either arm
with probability ½, so that wealth that is bet on one arm has mean 1 at any time (Ville 1939): wealth of 1 / alpha
rejects. `betting_stages` says what part of the stake is bet on each pair, so that the same holds for effects that
cancel over the tasks. Evidence of two campaigns multiplies. Sources: Shafer 2021; Waudby-Smith & Ramdas 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import optimize, special

from trialfleet_statistics.estimates import LEAST, Floats, Interval, floats, share, whole

_STAKES = 200  # points of the mixture over stakes
_NODES = 400  # of the quadrature over stakes of both signs: exact up to 799 discordant pairs
MOST_STAKED = 0.8  # of the wealth, on one pair, where a stake is raised
METHOD = "confidence_sequence"
_NO_PAIR = "no complete pair"


@dataclass(frozen=True)
class Pairs:
    """Complete pairs up to a look: `won` only by a, `lost` only passed by b, `equal` in both. On each the `part`
    of a stake is bet, times `room` as far as no pair of the same stage takes more than `MOST_STAKED`. Sums of
    two campaigns' pairs are their common evidence only where the stake was fixed before both."""

    won: int
    lost: int
    equal: int
    part: float = 1.0
    room: float = 1.0

    def __post_init__(self) -> None:
        whole([self.won, self.lost, self.equal], "pairs")
        if not 0 < self.part <= 1 <= self.room:
            raise ValueError(f"expected part in (0, 1] and room from 1, got {self.part} and {self.room}")

    @property
    def count(self) -> int:
        return self.won + self.lost + self.equal

    @property
    def weight(self) -> float:
        """Of each pair in a mean."""
        return self.part * self.room


Wagers = Pairs | Sequence[Pairs]  # all bet on with one stake, or by parts of it


def _listed(pairs: Wagers) -> Sequence[Pairs]:
    return (pairs,) if isinstance(pairs, Pairs) else pairs


def mean_margin(pairs: Wagers) -> float | None:
    """Mean of won less lost pairs by their weights; its sign is the side that the bets favour. None without a
    pair.

    >>> mean_margin([Pairs(2, 1, 1), Pairs(0, 2, 0, 0.5)])
    0.0
    """
    listed = _listed(pairs)
    weight = math.fsum(one.weight * one.count for one in listed)
    return math.fsum(one.weight * (one.won - one.lost) for one in listed) / weight if weight else None


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

    def log_evidence(self, pairs: Wagers) -> float:
        """ln E of these pairs."""
        listed = _listed(pairs)
        if any(one.weight != 1 for one in listed):
            return self._log_evidence_by_parts(listed)
        every = Pairs(*(sum(getattr(one, name) for one in listed) for name in ("won", "lost", "equal")))
        mixed = log_evidence(every, kappa=self.kappa)
        if self.stake is None:
            return mixed
        return float(np.logaddexp(log_evidence_at(every, self.stake), mixed)) - math.log(2)

    def _log_evidence_by_parts(self, pairs: Sequence[Pairs]) -> float:
        """The integral over stakes that `log_evidence` has in closed form, by Gauss and Jacobi's quadrature: as a
        mixture over its nodes it is evidence by itself."""
        stakes, weights = _quadrature(self.kappa)
        if self.stake is not None:
            stakes, weights = np.append(stakes, self.stake), np.append(weights, 0.0) - math.log(2)
        return _log_wealth(pairs, 0.0, stakes, weights)

    def on_stakes(self) -> tuple[Floats, Floats]:
        """A grid of stakes and the logarithms of their shares of the wealth, for differences other than 0."""
        stakes = (np.arange(1, _STAKES + 1) - 0.5) / _STAKES
        weights = (self.kappa - 1) * np.log1p(-(stakes**2))
        weights -= special.logsumexp(weights)
        if self.stake is not None:
            stakes, weights = np.append(stakes, self.stake), np.append(weights, 0.0) - math.log(2)
        return floats(stakes), floats(weights)


@cache
def _quadrature(kappa: float) -> tuple[Floats, Floats]:
    """Stakes above 0 with the logarithms of their weights, for θ ~ Beta(κ, κ)."""
    nodes, weights = special.roots_jacobi(_NODES, kappa - 1, kappa - 1)
    above = nodes > 0
    return floats(nodes[above]), floats(np.log(weights[above] / weights[above].sum()))


def anytime_p(largest_log_evidence: float) -> float:
    """p of the largest evidence over the looks so far: min(1, 1 / E). Holds whenever it is read.

    >>> round(anytime_p(math.log(40)), 3)
    0.025
    """
    return min(1.0, max(LEAST, math.exp(-largest_log_evidence)))


def confidence_sequence(pairs: Wagers, bets: Bets | None = None, *, level: float = 0.95) -> Interval:
    """The mean difference of rates with limits that hold at all looks at once.

    Kept are the differences m against which bets on D − m, D in {−1, 0, 1}, have not won 1 / (1 − level): stakes
    u / (1 + m) upwards and u / (1 − m) downwards, mixed over u as the `bets` are (None: κ = 3), on a grid of
    (i − ½) / 200. At m = 0 it is their evidence, up to that grid. The estimate is `mean_margin`. Undefined without
    a pair.

    >>> confidence_sequence(Pairs(15, 5, 60)).rounded(4)
    (-0.0469, 0.2991)
    """
    alpha, listed = 1 - share(level, "level"), _listed(pairs)
    estimate = mean_margin(listed)
    if estimate is None:
        return Interval(None, None, None, level, 0, METHOD, "these_tasks", _NO_PAIR)
    stakes, weights = (bets or Bets()).on_stakes()

    def beyond(m: float) -> float:
        return _log_wealth(listed, m, stakes, weights) + math.log(alpha)

    low, high = _end(beyond, estimate, -1.0), _end(beyond, estimate, 1.0)
    return Interval(estimate, low, high, level, 2 * sum(one.count for one in listed), METHOD, "these_tasks")


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


def _log_wealth(pairs: Sequence[Pairs], m: float, stakes: Floats, log_weights: Floats) -> float:
    rows = [(one.won, one.lost, one.equal, one.part, one.room) for one in pairs]
    won, lost, equal, part, room = (floats(column)[:, None] for column in zip(*rows, strict=True))
    staked = stakes * part * np.minimum(room, np.maximum(1.0, MOST_STAKED / stakes))

    def bet(on_each: Floats) -> Floats:
        of_won, of_lost = special.xlog1py(won, on_each * (1 - m)), special.xlog1py(lost, -on_each * (1 + m))
        return floats(np.sum(of_won + of_lost + special.xlog1py(equal, -on_each * m), axis=0))

    up, down = bet(floats(staked / (1 + m))), bet(floats(-staked / (1 - m)))
    return float(special.logsumexp(log_weights + np.logaddexp(up, down) - math.log(2)))


def _end(beyond: Callable[[float], float], estimate: float, side: float) -> float:
    """Where the wealth reaches what rejects, between the estimate and −1 or 1."""
    inside = 1 - 1e-9
    first, last = min(inside, max(-inside, estimate)), side * inside
    if first == last or beyond(last) < 0:
        return side
    return float(optimize.brentq(beyond, first, last, xtol=1e-12))
