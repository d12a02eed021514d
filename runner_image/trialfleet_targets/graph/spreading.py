"""Spreading activation: files that match a request raise the scores of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Flags, Floats, Ints

TO_IMPORTERS = 0.4
TO_IMPORTED = 0.2
TO_COUPLED = 0.4
COUPLED_FROM = 0.5
HOPS = 3
DECAY = 0.5
FROM_TEST = 0.6
CEILING = 0.5


@dataclass(frozen=True, eq=False)
class Links:
    """Link e passes on `weights[e]` of the activation of file `sources[e]`; the links to file `targets[i]` start
    at `starts[i]`."""

    sources: Ints
    weights: Floats
    targets: Ints
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, sources: Ints, targets: Ints, weights: Floats) -> Links:
        """From links in any order."""
        order = np.lexsort((sources, targets))
        starts = np.flatnonzero(np.diff(targets[order], prepend=-1))
        return cls(sources[order], weights[order], targets[order][starts], starts)

    def carried(self, activation: Floats) -> Floats:
        """The activation that each file receives in one step: the largest over its links."""
        arrived = np.zeros_like(activation)
        if len(self.starts):
            arrived[self.targets] = np.maximum.reduceat(activation[self.sources] * self.weights, self.starts)
        return arrived


def dependencies(sources: Ints, targets: Ints) -> Links:
    """Each pair "source depends on target" as two links: .2 to an imported file, .4 to an importing file."""
    return Links.of(
        np.concatenate((sources, targets)),
        np.concatenate((targets, sources)),
        np.concatenate((np.full(len(sources), TO_IMPORTED), np.full(len(sources), TO_IMPORTERS))),
    )


def couplings(first: Ints, second: Ints, confidence: Floats) -> Links:
    """Each pair that changes together, from a confidence of .5 on, as two links of .4."""
    sure = confidence >= COUPLED_FROM
    one, other = first[sure], second[sure]
    return Links.of(
        np.concatenate((one, other)), np.concatenate((other, one)), np.full(2 * int(sure.sum()), TO_COUPLED)
    )


def spread(scores: Floats, imports: Links, coupled: Links, *, hops: int = HOPS) -> Floats:
    """Scores after spreading; none falls.

    What is h links away gets the score times the links' weights times .5^(h-1), h up to `hops`; what arrives
    counts by its largest, and a file keeps the larger of its score and that. Coupled files get theirs in the first
    hop.
    """
    result = np.maximum(scores, coupled.carried(scores))
    wave = scores
    for hop in range(hops):
        wave = imports.carried(wave)
        result = np.maximum(result, wave * DECAY**hop)
    return result


def from_tests(scores: Floats, tests: Ints, covered: Ints) -> Floats:
    """A file that `tests[i]` covers has at least .6 of that test's score; pairs in any order."""
    result = scores.copy()
    np.maximum.at(result, covered, FROM_TEST * scores[tests])
    return result


def under_ceiling(scores: Floats, direct: Flags, import_only: Flags) -> Floats:
    """Files that match by their imports alone are scaled down together, so that the best of them has at most half
    of the worst file that matches by path or symbol. Without either kind nothing changes."""
    result = scores.copy()
    matched = direct & (scores > 0)
    if not matched.any() or not import_only.any():
        return result
    allowed = CEILING * scores[matched].min()
    highest = scores[import_only].max()
    if highest > allowed:
        result[import_only] *= allowed / highest
    return result
