"""What a method must beat: rankings of the same files from the same index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from trialfleet_targets.default.features import Floats, Knowledge, relative
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


def shuffled(knowledge: Knowledge, prompt: str) -> Floats:
    """Random, the same for the same prompt."""
    order = list(range(len(knowledge.paths)))
    Random(prompt).shuffle(order)  # noqa: S311 (a baseline, no secret)
    return np.asarray(order, dtype=np.float64)


def path_and_content(knowledge: Knowledge, prompt: str) -> Floats:
    """BM25 of path and content."""
    return BM25F.of(knowledge.postings, PATH_AND_CONTENT).scores(_once(prompt))


def by_hand(knowledge: Knowledge, prompt: str) -> Floats:
    """i′: BM25F with content, .3 of the messages of earlier commits, .2 of the subject's path, .1 of recency, each
    divided by its maximum."""
    words, memory = _once(prompt), knowledge.memory
    lexical = BM25F.of(knowledge.postings, WITH_CONTENT).scores(words)
    messages = memory.of_best(memory.messages(words))
    path = knowledge.fields["path"].scores(Request.of(prompt).subject)
    recency = 1.0 / (1.0 + np.searchsorted(np.sort(memory.last), memory.last))
    return relative(lexical) + 0.3 * relative(messages) + 0.2 * relative(path) + 0.1 * recency


def _once(prompt: str) -> dict[str, float]:
    return dict.fromkeys(Request.of(prompt).all, 1.0)


BASELINES: Mapping[str, Callable[[Knowledge, str], Floats]] = {
    "random": shuffled,
    "BM25 path + content": path_and_content,
    "i′": by_hand,
}
