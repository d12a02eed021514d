"""Words of each definition by file, to match a request against the functions of a few files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Floats, Ints
from trialfleet_targets.default.request import TOKENIZER
from trialfleet_targets.snapshot import SourceFile

K1, B = 1.2, 0.75
MAX_COUNTED = 255
WORDS_OF_A_NAME = 3.0


@dataclass(frozen=True, eq=False)
class Functions:
    """Definitions of all files in the order of `FileFacts.definitions`; a term is its number in a vocabulary.

    Definitions `files[f]:files[f + 1]` are those of file f; definition d has `terms[body[d]:body[d + 1]]`, each
    `counts` times, and the words of its name, `names[name[d]:name[d + 1]]`.
    """

    files: Ints
    body: Ints
    terms: Ints
    counts: npt.NDArray[np.uint8]
    name: Ints
    names: Ints

    def scores(self, file: int, weights: Floats, mean_length: float) -> tuple[Floats, Floats]:
        """Of the definitions of a file: BM25 of their bodies, and of their names.

        `weights`: what a term is worth to the request (its weight times its idf), by number. `mean_length`: of a
        definition's body, in terms.
        """
        first, last = int(self.files[file]), int(self.files[file + 1])
        body, name = self.body[first : last + 1], self.name[first : last + 1]
        entries, words = slice(int(body[0]), int(body[-1])), slice(int(name[0]), int(name[-1]))
        ones = np.ones(words.stop - words.start)
        return (
            _bm25(
                np.diff(body), weights[self.terms[entries]], self.counts[entries].astype(np.float64), mean_length
            ),
            _bm25(np.diff(name), weights[self.names[words]], ones, WORDS_OF_A_NAME),
        )

    @property
    def mean_length(self) -> float:
        """Of a definition's body, in terms."""
        return float(self.counts.sum(dtype=np.int64)) / max(len(self.body) - 1, 1)


@dataclass(frozen=True, eq=False)
class Earlier:
    """`functions` of an earlier commit, with the `places` of the files whose content is the same. `moved`: the
    number of each term then in the vocabulary now, -1 for terms that no longer occur."""

    functions: Functions
    places: Mapping[str, int]
    moved: Ints


def _bm25(sizes: npt.NDArray[np.int32], weights: Floats, counts: Floats, mean_length: float) -> Floats:
    """BM25 of consecutive groups of these sizes; `weights` include the idf."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    lengths = np.bincount(owner, weights=counts, minlength=len(sizes))
    norm = K1 * (1 - B + B * lengths / max(mean_length, 1.0))
    each = weights * counts * (K1 + 1) / (counts + norm[owner])
    return np.bincount(owner, weights=each, minlength=len(sizes)).astype(np.float64, copy=False)


def prepare(
    files: Mapping[str, SourceFile],
    vocabulary: Sequence[str],
    earlier: Earlier | None = None,
) -> Functions:
    """Of these files, in their order; their words must all be in the vocabulary. The result is the same with and
    without `earlier`."""
    number = {word: at for at, word in enumerate(vocabulary)}
    blocks = [
        _unchanged(earlier, earlier.places[path]) if earlier and path in earlier.places else _read(file, number)
        for path, file in files.items()
    ]
    return Functions(
        files=_starts([len(block[0]) for block in blocks]),
        body=_starts([size for block in blocks for size in block[0].tolist()]),
        terms=_joined([block[1] for block in blocks], np.int32),
        counts=_joined([block[2] for block in blocks], np.uint8),
        name=_starts([size for block in blocks for size in block[3].tolist()]),
        names=_joined([block[4] for block in blocks], np.int32),
    )


_Block = tuple[
    Ints, Ints, npt.NDArray[np.uint8], Ints, Ints
]  # sizes of bodies, terms, counts, sizes of names, terms


def _read(file: SourceFile, number: Mapping[str, int]) -> _Block:
    definitions = file.facts.definitions
    lines = file.text.split("\n") if definitions else []
    bodies = [TOKENIZER.count(lines[one.line - 1 : one.end_line]) for one in definitions]
    names = [TOKENIZER.terms(one.name) for one in definitions]
    # Sorted by number, which is the order of words: the same for every vocabulary.
    rows = [sorted((number[word], times) for word, times in body.items() if word in number) for body in bodies]
    return (
        _ints(len(row) for row in rows),
        _ints(term for row in rows for term, _ in row),
        np.fromiter((min(times, MAX_COUNTED) for row in rows for _, times in row), np.uint8),
        _ints(sum(word in number for word in name) for name in names),
        _ints(number[word] for name in names for word in name if word in number),
    )


def _unchanged(earlier: Earlier, file: int) -> _Block:
    previous, moved = earlier.functions, earlier.moved
    own = slice(int(previous.files[file]), int(previous.files[file + 1]) + 1)
    body, name = previous.body[own], previous.name[own]
    entries, words = slice(int(body[0]), int(body[-1])), slice(int(name[0]), int(name[-1]))
    return (
        np.diff(body),
        moved[previous.terms[entries]],
        previous.counts[entries],
        np.diff(name),
        moved[previous.names[words]],
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int32)


def _starts(sizes: Sequence[int]) -> Ints:
    return np.concatenate((np.zeros(1, np.int32), np.cumsum(np.asarray(sizes, np.int32), dtype=np.int32)))


def _joined(parts: Sequence[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.zeros(0, dtype=kind)
