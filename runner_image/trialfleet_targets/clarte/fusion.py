"""How much each of the four scores counts: λ_L · L + λ_G · G + λ_T · T + λ_B · B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from trialfleet_targets.arrays import Floats

PARTS = ("lexical", "graph", "temporal", "betweenness")
MIN_COMMITS = 30
RIDGE = 0.01
STEPS = 2000
STILL = 1e-7  # the gradient's norm
DIGITS = 6  # of a stored weight, so that another number of threads gives the same bytes
SURE = 1.96  # standard errors: a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """λ by part, in the order of `PARTS`; at least 0, together 1."""

    values: tuple[float, float, float, float] = (0.35, 0.35, 0.15, 0.15)


DEFAULT = FusionWeights()


@dataclass(frozen=True, eq=False)
class Group:
    """One file of an earlier commit (the positive) and files that the commit did not change (the negatives).

    `features`: rows × 4 in the order of `PARTS`, each column divided by its maximum; the first row is the
    positive. `commit`: how many commits ago.
    """

    commit: int
    features: Floats


@dataclass(frozen=True, slots=True)
class Training:
    """`weights`: the weights to use. `learned`: the weights trained on the older commits, used or not; the
    defaults when there are too few."""

    weights: FusionWeights
    learned: FusionWeights


def train(groups: Sequence[Group]) -> Training:
    """Trains on the older four fifths of the commits. The trained weights are used when they order the newest
    fifth significantly better than the defaults; otherwise, and below 30 commits, the defaults are used."""
    commits = sorted({group.commit for group in groups})
    if len(commits) < MIN_COMMITS:
        return Training(DEFAULT, DEFAULT)
    newest = commits[len(commits) // 5]
    older = [group for group in groups if group.commit >= newest]
    features = np.concatenate([group.features for group in older])
    labels = np.concatenate([_labels(group) for group in older])
    learned = normalised(logistic(features, labels)[:-1])
    held_out = [group for group in groups if group.commit < newest]
    return Training(learned if is_better(learned, DEFAULT, held_out) else DEFAULT, learned)


def logistic(features: Floats, labels: Floats, *, ridge: float = RIDGE) -> Floats:
    """Coefficients and, last, the bias, that minimise mean log loss + ridge/2 · Σ coefficient², by gradient steps
    over all rows; the bias is not shrunk."""
    rows = np.column_stack((features, np.ones(len(features))))
    shrunk = np.append(np.full(features.shape[1], ridge), 0.0)
    step = 1 / (float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1]) / 4 + ridge)
    found = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        predicted = 1 / (1 + np.exp(-(rows @ found)))
        gradient = rows.T @ (predicted - labels) / len(rows) + shrunk * found
        if float(np.linalg.norm(gradient)) < STILL:
            break
        found -= step * gradient
    return found


def normalised(coefficients: Floats) -> FusionWeights:
    """At least 0 and together 1; the defaults when none is positive."""
    positive = np.maximum(coefficients, 0.0)
    total = float(positive.sum())
    if total <= 0:
        return DEFAULT
    lexical, graph, temporal, between = (round(float(one), DIGITS) for one in positive / total)
    return FusionWeights((lexical, graph, temporal, between))


def pairs_right(weights: FusionWeights, groups: Sequence[Group]) -> float | None:
    """Share of pairs in which the positive has the larger score; a tie counts half. None without pairs."""
    right = total = 0.0
    for group in groups:
        scores = group.features @ np.asarray(weights.values)
        others = scores[1:]
        right += float((others < scores[0]).sum()) + float((others == scores[0]).sum()) / 2
        total += len(others)
    return right / total if total else None


def is_better(one: FusionWeights, other: FusionWeights, groups: Sequence[Group]) -> bool:
    """Whether `one` orders a larger share of pairs rightly: mean of the commits' differences more than 1.96 of its
    standard errors above 0. False with fewer than two commits, which have none."""
    by_commit: dict[int, list[Group]] = {}
    for group in groups:
        by_commit.setdefault(group.commit, []).append(group)
    gains = [(pairs_right(one, own) or 0.0) - (pairs_right(other, own) or 0.0) for own in by_commit.values()]
    if len(gains) < 2:
        return False
    return float(np.mean(gains)) > SURE * float(np.std(gains, ddof=1)) / sqrt(len(gains))


def _labels(group: Group) -> Floats:
    labels = np.zeros(len(group.features))
    labels[0] = 1
    return labels
