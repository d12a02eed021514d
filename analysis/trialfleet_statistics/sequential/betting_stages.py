"""Which blocks are settled together, so that bets weigh every task alike also with losses.

In a stage with n_t complete pairs of task t, λ c / n_t is bet on a pair of t. Given which pairs are complete,
the mean of the wealth is Π_t (1 + (λ c / n_t) δ_t)^n_t, and Σ n_t ln(1 + (λ c / n_t) δ_t) ≤ λ c Σ δ_t, which is
0 for effects δ_t that cancel; the same at a mean difference m for δ_t − m. It holds for any c that results do
not choose, if, within a task and an arm, losses do not depend on outcomes. c is the harmonic mean of n_t, which
grows fastest, or as much of it as keeps every bet below `MOST_STAKED`, at least n_min. Where all tasks have as
many pairs, it is one bet of λ on every pair."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_statistics.estimates import Bools, Floats
from trialfleet_statistics.sequential.betting import Pairs

FEWEST, MOST = 5, 10  # blocks of a stage in which tasks differ in their complete pairs


@dataclass(frozen=True, eq=False)
class BettingStages:
    """`closed`: after how many blocks each stage was settled; `pairs`: those up to there, by the part of the stake
    that is bet on each; `tasks`: which are bet on, shape (T,): a task leaves for good at the end of a stage of
    `MOST` blocks without a complete pair of it."""

    closed: tuple[int, ...]
    pairs: tuple[tuple[Pairs, ...], ...]
    tasks: Bools


def betting_stages(
    margins: ArrayLike, *, present: Bools | None = None, planned: int = 0, may_leave: bool = True
) -> BettingStages:
    """The stages of `margins`, shape (T, B): passes of a less those of b in the pair of a task and block, NaN
    where the pair is not complete.

    A stage is settled as soon as all tasks have as many pairs; after `FEWEST` blocks, and at the `planned` end, as
    soon as each has one. None of this depends on results. `present`: where a task was still run, same shape; one
    that was not leaves. `may_leave`: False where the mean over all of these tasks is asked for: a stage then stays
    open until each has a pair.

    >>> found = betting_stages([[1, 1, 0], [0, float("nan"), -1]], planned=3)
    >>> found.closed, [(one.won, one.lost, one.equal, one.part) for one in found.pairs[-1]]
    ((1, 3), [(0, 1, 0, 1.0), (1, 0, 1, 1.0), (1, 0, 1, 0.5)])
    """
    d = np.asarray(margins, dtype=np.float64)
    staying, start = np.ones(d.shape[0], dtype=np.bool_), 0
    bets: Counter[_Bet] = Counter()
    closed: list[int] = []
    pairs: list[tuple[Pairs, ...]] = []
    for block in range(1, d.shape[1] + 1):
        if present is not None:
            staying = staying & present[:, block - 1]
        complete = np.isfinite(d[:, start:block]).sum(axis=1)
        if may_leave and block - start >= MOST:
            staying = staying & (complete > 0)
        if _is_settled(complete[staying], block - start, last=block == planned):
            bets.update(_bets(d[staying, start:block]))
            closed.append(block)
            pairs.append(_grouped(bets))
            start = block
    return BettingStages(tuple(closed), tuple(pairs), staying)


class _Bet(NamedTuple):
    part: float
    room: float
    margin: int


def _is_settled(complete: ArrayLike, blocks: int, *, last: bool) -> bool:
    n = np.asarray(complete)
    if not n.size or not n.min():
        return False
    return bool(n.min() == n.max()) or blocks >= FEWEST or last


def _bets(margins: Floats) -> Counter[_Bet]:
    """How many pairs a stage has of each kind."""
    complete = np.isfinite(margins)
    n = complete.sum(axis=1)
    room = float(n.size / np.sum(n.min() / n))
    parts = np.broadcast_to((n.min() / n)[:, None], margins.shape)[complete].tolist()
    outcomes = margins[complete].astype(int).tolist()
    return Counter(_Bet(part, room, margin) for part, margin in zip(parts, outcomes, strict=True))


def _grouped(bets: Counter[_Bet]) -> tuple[Pairs, ...]:
    kinds = sorted({(bet.part, bet.room) for bet in bets}, reverse=True)
    return tuple(
        Pairs(bets[_Bet(part, room, 1)], bets[_Bet(part, room, -1)], bets[_Bet(part, room, 0)], part, room)
        for part, room in kinds
    )
