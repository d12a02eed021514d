"""Earlier commits: their messages as documents, and which current files each of them changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Floats, Ints, Stored, Value
from trialfleet_targets.default.request import TOKENIZER
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.text.bm25f import BM25F, FieldWeight
from trialfleet_targets.text.postings import Document, Postings, updated

FIELD = "message"
LONGEST = 4000  # characters of a message
NEVER = 5000  # commits since a file's last change, when none is known
BEST = 20  # commits whose messages count


@dataclass(frozen=True, eq=False)
class HistoryIndex:
    """Commits by age, 0 the newest. `document`: of each commit, its place in the postings of messages. A change k
    is of file `file[k]` by the commit of age `commit[k]`, ascending. `share`: of each commit, 1/√(paths that it
    changed): a commit that changed everything says little about each file."""

    messages: Postings
    document: Ints
    commit: Ints
    file: Ints
    share: npt.NDArray[np.float32]

    def stored(self, prefix: str) -> dict[str, Value]:
        """As arrays and lists for the index file; the inverse of `restored`."""
        return {f"{prefix}.{part}": getattr(self, part) for part in _PARTS} | self.messages.stored(
            f"{prefix}.messages"
        )

    @classmethod
    def restored(cls, values: Stored, prefix: str) -> HistoryIndex:
        """What `stored` gave. Raises KeyError when a part is missing."""
        parts = (cast(Any, values[f"{prefix}.{part}"]) for part in _PARTS)
        return cls(Postings.restored(values, f"{prefix}.messages"), *parts)


_PARTS = ("document", "commit", "file", "share")


def prepare(
    history: Sequence[PastCommit], files: Mapping[str, int], *, previous: Postings | None = None
) -> HistoryIndex:
    """`history`: newest first. `files`: today's, by path. `previous`: messages that need not be read again."""
    messages = _messages(history, previous)
    place = messages.positions
    commit, file = _changes(history, files)
    return HistoryIndex(
        messages=messages,
        document=np.fromiter((place[one.sha] for one in history), np.int32, count=len(history)),
        commit=commit,
        file=file,
        share=np.fromiter((max(len(one.changed), 1) ** -0.5 for one in history), np.float32, count=len(history)),
    )


def _messages(history: Sequence[PastCommit], previous: Postings | None) -> Postings:
    texts = {one.sha: f"{one.subject}\n{one.body}"[:LONGEST] for one in history}

    def read(sha: str) -> Document:
        return Document(sha, "", {FIELD: TOKENIZER.count([texts[sha]])})

    return updated(dict.fromkeys(texts, ""), (FIELD,), read, previous)


def _changes(history: Sequence[PastCommit], files: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Age of the commit and number of the file. A path that a commit took away while it added one of the same
    file name lives on there."""
    today = dict(files)
    ages: list[int] = []
    changed: list[int] = []
    for age, one in enumerate(history):
        if one.deleted:
            _follow(one, today)
        found = [today[path] for path in one.changed if path in today]
        ages += [age] * len(found)
        changed += found
    return np.asarray(ages, dtype=np.int32), np.asarray(changed, dtype=np.int32)


def _follow(one: PastCommit, today: dict[str, int]) -> None:
    arrived: dict[str, list[str]] = {}
    for path in one.added:
        if path in today:
            arrived.setdefault(PurePosixPath(path).name, []).append(path)
    for path in one.deleted:
        targets = arrived.get(PurePosixPath(path).name, [])
        if len(targets) == 1:
            today.setdefault(path, today[targets[0]])


class HistoryScorer:
    """Scores of files from the history of one index."""

    def __init__(self, past: HistoryIndex, files: int) -> None:
        self.past, self.files = past, files
        self.bm25 = BM25F.of(past.messages, (FieldWeight(FIELD, 1.0, 0.75),))
        share = past.share.astype(np.float64)
        self._share = share[past.commit]
        self.times = np.bincount(past.file, minlength=files)
        self.last = np.full(files, NEVER)
        np.minimum.at(self.last, past.file, past.commit)
        self._ages = np.argsort(past.document, kind="stable")  # of each document
        self._starts = np.searchsorted(past.commit, np.arange(len(past.document) + 1))  # of each commit's changes
        self._length = np.bincount(past.file, weights=self._share, minlength=files)

    def decayed(self, half_life: float) -> Floats:
        """Changes of each file, halved with every `half_life` commits."""
        return self._summed(self._share * 0.5 ** (self.past.commit / half_life))

    def messages(self, weights: Mapping[str, float]) -> Floats:
        """BM25 of each commit's message, by age."""
        return self.bm25.scores(weights)[self.past.document]

    def of_best(self, scores: Floats, best: int = BEST, power: float = 1.0) -> Floats:
        """Scores of the best commits, shared out to the files that they changed."""
        top = np.argsort(-scores, kind="stable")[:best]
        selected = np.zeros(len(scores))
        selected[top] = scores[top] ** power
        return self._to_files(selected)

    def best(self, scores: Floats) -> Floats:
        """The best share that one commit gives to each file."""
        found = np.zeros(self.files)
        np.maximum.at(found, self.past.file, scores[self.past.commit] * self._share)
        return found

    def profile(self, weights: Mapping[str, float], k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 of each file as the document of all messages that changed it, each counted by its share."""
        score = np.zeros(self.files)
        if not self.files:
            return score
        norm = k1 * (1 - b + b * self._length / max(float(self._length.mean()), 1e-9))
        postings = self.past.messages
        field = postings.fields[FIELD]
        for word, weight in weights.items():
            term = postings.term(word)
            if term is None:
                continue
            tf = self._changed_by(self._ages[field.documents[field.starts[term] : field.starts[term + 1]]])
            having = int(np.count_nonzero(tf))
            if having:
                idf = np.log(1 + (self.files - having + 0.5) / (having + 0.5))
                score += weight * idf * tf * (k1 + 1) / (tf + norm)
        return score

    def _changed_by(self, ages: npt.NDArray[np.int64]) -> Floats:
        """Shares of these commits by file, without a look at any other commit."""
        first, sizes = self._starts[ages], self._starts[ages + 1] - self._starts[ages]
        before = np.cumsum(sizes) - sizes
        at = np.repeat(first - before, sizes) + np.arange(int(sizes.sum()))
        return np.bincount(self.past.file[at], weights=self._share[at], minlength=self.files).astype(np.float64)

    def _to_files(self, by_age: Floats) -> Floats:
        return self._summed(by_age[self.past.commit] * self._share)

    def _summed(self, of_changes: Floats) -> Floats:
        return np.bincount(self.past.file, weights=of_changes, minlength=self.files).astype(np.float64, copy=False)
