"""The method `default` on one index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_targets.arrays import Floats
from trialfleet_targets.default import weights
from trialfleet_targets.default.features import NAMES, PARTS, Candidates, FeatureExtractor
from trialfleet_targets.default.weights import FeatureWeights
from trialfleet_targets.index import Index
from trialfleet_targets.prediction import Symbol, Target

MAX_RANKED = 20
MAX_SYMBOLS = 3
LIKELY = 0.5  # of the best definition's score in its file
SHOWN = 0.01  # of a part, in units of the score

_COVER = NAMES.index("cover")
_MATCHING = [NAMES.index(name) for name in ("blend", "messages", "function")]
_COLUMNS = {part: [NAMES.index(name) for name in names] for part, names in PARTS.items()}


@dataclass(frozen=True, slots=True)
class Ranking:
    """`targets`: at most 20, best first; `probabilities`: of each to be what must be edited. `confidence`: that
    one of the first five must be; None without targets."""

    targets: tuple[Target, ...]
    probabilities: tuple[float, ...] = ()
    confidence: float | None = None


class Default:
    """Ranks files by trained weights. Immutable. `extractor` computes the features."""

    name = "default"

    def __init__(self, index: Index, trained: FeatureWeights | None = None) -> None:
        """`trained`: weights that replace the shipped ones. Raises KeyError when the index lacks this method."""
        self._index, self._numbers = index, {path: number for number, path in enumerate(index.paths)}
        self.extractor = FeatureExtractor(index.section(self.name))
        self._weights = trained or weights.shipped()

    def rank(self, prompt: str) -> tuple[Target, ...]:
        """At most 20 files, best first; none when no word of the prompt is known."""
        return self.ranking(prompt).targets

    def ranking(self, prompt: str) -> Ranking:
        """`rank` with what is needed to select and to abstain."""
        if not self.extractor.paths:
            return Ranking(())
        found = self.extractor.candidates(prompt)
        if not found.values[:, _MATCHING].any():
            return Ranking(())
        scores = self._weights.scores(found.values)
        order = np.argsort(-scores, kind="stable")
        probabilities = weights.softmax(scores)[order]
        parts = (found.values - found.values.mean(axis=0)) * self._weights.by_feature
        cover = float(found.values[order[0], _COVER])
        top = order[:MAX_RANKED]
        return Ranking(
            targets=tuple(self._target(found, int(at), float(scores[at]), parts[at]) for at in top),
            probabilities=tuple(float(one) for one in probabilities[: len(top)]),
            confidence=self._weights.hit_probability(probabilities, cover, len(self.extractor.paths)),
        )

    def _target(self, found: Candidates, at: int, score: float, parts: Floats) -> Target:
        path = self.extractor.paths[int(found.files[at])]
        return Target(path, score, _parts(parts), self._symbols(path, found.functions[at]))

    def _symbols(self, path: str, scores: Floats) -> tuple[Symbol, ...]:
        """The definitions that match the request best."""
        best = float(scores.max(initial=0.0))
        if best <= 0:
            return ()
        symbols = self._index.symbols(self._numbers[path])
        found: dict[str, Symbol] = {}
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        for at in order:
            if scores[at] >= LIKELY * best:
                found.setdefault(symbols[at].name, symbols[at])
        return tuple(found.values())[:MAX_SYMBOLS]


def _parts(contributions: Floats) -> tuple[tuple[str, float], ...]:
    """What speaks for a file more than for the other candidates."""
    sums: Sequence[tuple[str, float]] = [
        (part, float(contributions[columns].sum())) for part, columns in _COLUMNS.items()
    ]
    return tuple(
        sorted(((part, value) for part, value in sums if value >= SHOWN), key=lambda row: (-row[1], row[0]))
    )
