"""How much each of the four scores counts: λ_L · L + λ_G · G + λ_T · T + λ_B · B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from trialfleet_targets.matrices import Floats

PARTS = ("lexical", "graph", "temporal", "betweenness")
FEWEST_COMMITS = 30
RIDGE = 0.01
STEPS = 2000
STILL = 1e-7  # the gradient's norm
DIGITS = 6  # kept of a weight, so that another number of threads gives the same bytes
SURE = 1.96  # standard errors: a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class Weights:
    """λ by part, in the order of `PARTS`; at least 0, together 1."""

    values: tuple[float, float, float, float] = (0.35, 0.35, 0.15, 0.15)


DEFAULT = Weights()


@dataclass(frozen=True, eq=False)
class Group:
    """One file of a past commit, sought from the commit's other files, among files that the commit left alone.

    `features`: rows × 4 in the order of `PARTS`, each column divided by its maximum; the first row is the file
    that is sought. `commit`: how many commits ago.
    """

    commit: int
    features: Floats


@dataclass(frozen=True, slots=True)
class Training:
    """`weights`: to be used. `learned`: what the older commits taught, used or not; the defaults without enough of
    them. `commits`: that gave groups. `pairs_right`: share of the pairs (file that is sought, other file) that
    `learned` orders rightly in the newest fifth of the commits, which it was not learned from; None without any.
    `pairs_right_by_default`: the same by the default weights."""

    weights: Weights
    learned: Weights
    commits: int
    pairs_right: float | None = None
    pairs_right_by_default: float | None = None


def train(groups: Sequence[Group]) -> Training:
    """Learns on the older four fifths of the commits. What it learned is used when it orders the newest fifth
    better than the defaults by more than chance; else, and below 30 commits, the defaults are."""
    commits = sorted({group.commit for group in groups})
    if len(commits) < FEWEST_COMMITS:
        return Training(DEFAULT, DEFAULT, len(commits))
    newest = commits[len(commits) // 5]
    older = [group for group in groups if group.commit >= newest]
    features = np.concatenate([group.features for group in older])
    labels = np.concatenate([_labels(group) for group in older])
    learned = normalised(logistic(features, labels)[:-1])
    held_out = [group for group in groups if group.commit < newest]
    return Training(
        learned if is_better(learned, DEFAULT, held_out) else DEFAULT,
        learned,
        len(commits),
        pairs_right(learned, held_out),
        pairs_right(DEFAULT, held_out),
    )


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


def normalised(coefficients: Floats) -> Weights:
    """At least 0 and together 1; the defaults when none is positive."""
    positive = np.maximum(coefficients, 0.0)
    total = float(positive.sum())
    if total <= 0:
        return DEFAULT
    lexical, graph, temporal, between = (round(float(one), DIGITS) for one in positive / total)
    return Weights((lexical, graph, temporal, between))


def pairs_right(weights: Weights, groups: Sequence[Group]) -> float | None:
    """Share of pairs in which the sought file has the larger score; a tie is half a pair. None without pairs."""
    right = total = 0.0
    for group in groups:
        scores = group.features @ np.asarray(weights.values)
        others = scores[1:]
        right += float((others < scores[0]).sum()) + float((others == scores[0]).sum()) / 2
        total += len(others)
    return right / total if total else None


def is_better(one: Weights, other: Weights, groups: Sequence[Group]) -> bool:
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
