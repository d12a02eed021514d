"""The features of each file for one request, which the trained weights combine.

Training, evaluation and queries all use this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Floats, Ints, Stored, restored
from trialfleet_targets.default.functions import Functions
from trialfleet_targets.default.history_index import HistoryIndex, HistoryScorer
from trialfleet_targets.default.request import TOKENIZER, Request
from trialfleet_targets.text.bm25f import BM25F, FieldWeight
from trialfleet_targets.text.postings import Postings

BLEND = (
    FieldWeight("path", 4.0, 0.3),
    FieldWeight("definitions", 2.0, 0.4),
    FieldWeight("methods", 2.0, 0.4),
    FieldWeight("imports", 0.3, 0.5),
    FieldWeight("content", 0.2, 0.75),
)
FIELDS = {
    "path": (FieldWeight("path", 1.0, 0.3),),
    "names": (FieldWeight("definitions", 1.0, 0.4), FieldWeight("methods", 1.0, 0.4)),
    "imports": (FieldWeight("imports", 1.0, 0.5),),
    "content": (FieldWeight("content", 1.0, 0.75),),
}
FIRST_STAGE = 50  # files that reach the second stage
MAX_CERTAIN_COMMITS = 100

PARTS: Mapping[str, tuple[str, ...]] = {
    "words": ("blend", "blend_core", "cover", "cover_core", "first_stage"),
    "path": ("path", "path_subject", "area", "stem", "stem_subject", "folders", "last_folder", "joined_path"),
    "names": ("names", "names_subject", "whole_names", "joined_names"),
    "content": ("content", "content_subject", "whole_content", "joined_content", "quoted", "imports"),
    "functions": ("function", "function_name", "function_body"),
    "messages": ("messages", "messages_subject", "messages_many", "message_best", "profile"),
    "recency": ("recency", "age", "changes", "decayed_fast", "decayed_slow"),
    "size": ("length", "length_relative", "definitions"),
}
"""Features by the part of a score that is displayed; the ablation removes one part at a time."""
NAMES = tuple(name for names in PARTS.values() for name in names)


@dataclass(frozen=True, eq=False)
class Candidates:
    """`files`: numbers of the files that passed the first stage, its best first. `values`: (file, feature) in the
    order of `NAMES`. `functions`: of each file, the score of each of its definitions."""

    files: Ints
    values: Floats
    functions: Sequence[Floats]


class FeatureExtractor:
    """Computes features from one index. Holds everything that does not depend on the request. Immutable."""

    def __init__(self, stored: Stored) -> None:
        """`stored`: what `prepare` gave. Raises KeyError when a part is missing."""
        self.postings = Postings.restored(stored, "files")
        self.functions = restored(Functions, stored, "functions")
        self.paths: Sequence[str] = self.postings.names
        files = len(self.paths)
        self.history_scorer = HistoryScorer(HistoryIndex.restored(stored, "past"), files)
        self.blend = BM25F.of(self.postings, BLEND)
        self.fields = {name: BM25F.of(self.postings, weights) for name, weights in FIELDS.items()}
        self.mean_length = self.functions.mean_length
        self._of_all = self._static(files)
        self._path_words: dict[int, tuple[list[str], list[str]]] = {}

    def candidates(self, text: str) -> Candidates:
        """The files that a request may be about, at most `FIRST_STAGE`, with their features."""
        request = Request.of(text)
        of_all = self._scores(request) | self._of_all
        first = _first_stage(of_all)
        files = self._order(first)[:FIRST_STAGE]
        columns = {name: values[files] for name, values in of_all.items()} | {"first_stage": first[files]}
        columns |= self._of_paths(request, files)
        of_functions, scores = self._of_functions(request, files)
        columns |= of_functions
        return Candidates(files, np.column_stack([columns[name] for name in NAMES]).astype(np.float64), scores)

    def _scores(self, request: Request) -> dict[str, Floats]:
        path, names = self.fields["path"].scores, self.fields["names"].scores
        imports, content = self.fields["imports"].scores, self.fields["content"].scores
        history_scorer = self.history_scorer
        messages, of_subject = history_scorer.messages(request.all), history_scorer.messages(request.subject)
        found = {
            "blend": self.blend.scores(request.all),
            "blend_core": self.blend.scores(request.core),
            "path": path(request.all),
            "path_subject": path(request.subject),
            "area": path(request.area),
            "joined_path": path(request.joined),
            "names": names(request.all),
            "names_subject": names(request.subject),
            "whole_names": names(request.whole),
            "joined_names": names(request.joined),
            "imports": imports(request.all),
            "content": content(request.all),
            "content_subject": content(request.subject),
            "whole_content": content(request.whole),
            "joined_content": content(request.joined),
            "quoted": content(request.quoted),
            "messages": history_scorer.of_best(messages),
            "messages_subject": history_scorer.of_best(of_subject),
            "messages_many": history_scorer.of_best(relative(messages), MAX_CERTAIN_COMMITS, 2.0),
            "message_best": history_scorer.best(messages),
            "profile": history_scorer.profile(request.all),
        }
        return {name: relative(values) for name, values in found.items()} | {
            "cover": self._covered(request.all),
            "cover_core": self._covered(request.core),
        }

    def _static(self, files: int) -> dict[str, Floats]:
        history_scorer = self.history_scorer
        length = np.log1p(self.postings.fields["content"].lengths(files))
        return {
            "recency": 1.0 / (1.0 + self._rank(history_scorer.last)),
            "age": np.log1p(history_scorer.last),
            "changes": np.log1p(history_scorer.times),
            "decayed_fast": relative(history_scorer.decayed(50.0)),
            "decayed_slow": relative(history_scorer.decayed(400.0)),
            "length": length,
            "length_relative": length - (np.median(length) if files else 0.0),
            "definitions": np.log1p(np.diff(self.functions.files)),
        }

    def _rank(self, values: npt.NDArray[np.int64]) -> Floats:
        """For each value, how many values are smaller."""
        return np.searchsorted(np.sort(values), values, side="left").astype(np.float64)

    def _order(self, score: Floats) -> Ints:
        """Files by descending score; ties by path."""
        return np.argsort(-score, kind="stable").astype(np.int32)

    def _covered(self, weights: Mapping[str, float]) -> Floats:
        """Share of the request's terms, by idf, that a file has in any field."""
        files = len(self.paths)
        found, possible = np.zeros(files), 0.0
        for word, weight in weights.items():
            term = self.postings.term(word)
            if term is not None:
                first, last = int(self.blend.starts[term]), int(self.blend.starts[term + 1])
                worth = weight * _idf(files, last - first)
                found[self.blend.documents[first:last]] += worth
                possible += worth
        return found / max(possible, 1e-9)

    def _of_paths(self, request: Request, files: Ints) -> dict[str, Floats]:
        rows = [self._words_of(int(file)) for file in files]
        return {
            "stem": np.asarray([_share(stem, request.all) for stem, _ in rows]),
            "stem_subject": np.asarray([_share(stem, request.subject) for stem, _ in rows]),
            "folders": np.asarray([_share(folders, request.all) for _, folders in rows]),
            "last_folder": np.asarray([_share(folders[-1:], request.subject) for _, folders in rows]),
        }

    def _words_of(self, file: int) -> tuple[list[str], list[str]]:
        if file not in self._path_words:
            path = PurePosixPath(self.paths[file])
            folders = [word for folder in path.parent.parts for word in TOKENIZER.terms(folder)]
            self._path_words[file] = TOKENIZER.terms(path.stem), folders
        return self._path_words[file]

    def _of_functions(self, request: Request, files: Ints) -> tuple[dict[str, Floats], list[Floats]]:
        weights = np.zeros(len(self.postings.vocabulary))
        content = self.postings.fields["content"].starts
        for word, weight in request.all.items():
            term = self.postings.term(word)
            if term is not None:
                weights[term] = weight * _idf(len(self.paths), int(content[term + 1] - content[term]))
        pairs = [self.functions.scores(int(file), weights, self.mean_length) for file in files]
        both = [body + name for body, name in pairs]
        best = {
            "function": [float(scores.max(initial=0.0)) for scores in both],
            "function_body": [float(body.max(initial=0.0)) for body, _ in pairs],
            "function_name": [float(name.max(initial=0.0)) for _, name in pairs],
        }
        return {name: relative(np.asarray(values)) for name, values in best.items()}, both


def relative(values: Floats) -> Floats:
    """Divided by the largest; zeros stay.

    >>> relative(np.array([1.0, 4.0])).tolist()
    [0.25, 1.0]
    """
    largest = float(values.max(initial=0.0))
    return values / largest if largest > 0 else values


def _first_stage(of_all: Mapping[str, Floats]) -> Floats:
    """Words, messages of earlier commits, the subject's path and recency, with hand-set weights. Only selects the
    candidates of the second stage."""
    return (
        of_all["blend"] + 0.3 * of_all["messages"] + 0.2 * of_all["path_subject"] + 0.1 * of_all["recency"]
    )  # fmt: skip


def _share(words: Sequence[str], wanted: Mapping[str, float]) -> float:
    return sum(word in wanted for word in words) / len(words) if words else 0.0


def _idf(files: int, having: int) -> float:
    return float(np.log(1 + (files - having + 0.5) / (having + 0.5)))
