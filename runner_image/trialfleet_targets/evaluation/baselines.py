"""What a method must beat: rankings of the same files from the same index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from trialfleet_targets.arrays import Floats
from trialfleet_targets.default.features import FeatureExtractor, relative
from trialfleet_targets.default.request import Request
from trialfleet_targets.text.bm25f import BM25F, FieldWeight

PATH_AND_CONTENT = (FieldWeight("path", 1.0, 0.75), FieldWeight("content", 1.0, 0.75))
WITH_CONTENT = (
    FieldWeight("path", 2.0, 0.3),
    FieldWeight("definitions", 1.0, 0.4, 5.0),
    FieldWeight("methods", 1.0, 0.4, 5.0),
    FieldWeight("imports", 0.5, 0.5, 5.0),
    FieldWeight("content", 0.2, 0.75),
)


def shuffled(extractor: FeatureExtractor, prompt: str) -> Floats:
    """Random, the same for the same prompt."""
    order = list(range(len(extractor.paths)))
    Random(prompt).shuffle(order)  # noqa: S311 (a baseline, no secret)
    return np.asarray(order, dtype=np.float64)


def path_and_content(extractor: FeatureExtractor, prompt: str) -> Floats:
    """BM25 of path and content."""
    return BM25F.of(extractor.postings, PATH_AND_CONTENT).scores(_once(prompt))


def by_hand(extractor: FeatureExtractor, prompt: str) -> Floats:
    """i′: BM25F with content, .3 of the messages of earlier commits, .2 of the subject's path, .1 of recency, each
    divided by its maximum."""
    words, history_scorer = _once(prompt), extractor.history_scorer
    lexical = BM25F.of(extractor.postings, WITH_CONTENT).scores(words)
    messages = history_scorer.of_best(history_scorer.messages(words))
    path = extractor.fields["path"].scores(Request.of(prompt).subject)
    recency = 1.0 / (1.0 + np.searchsorted(np.sort(history_scorer.last), history_scorer.last))
    return relative(lexical) + 0.3 * relative(messages) + 0.2 * relative(path) + 0.1 * recency


def _once(prompt: str) -> dict[str, float]:
    return dict.fromkeys(Request.of(prompt).all, 1.0)


BASELINES: Mapping[str, Callable[[FeatureExtractor, str], Floats]] = {
    "random": shuffled,
    "BM25 path + content": path_and_content,
    "i′": by_hand,
}
