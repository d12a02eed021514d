"""Postings: how often each term occurs in each field of each document. All lexical scores use them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trialfleet_targets.arrays import Ints, Offsets, Stored, Value, restored, stored


@dataclass(frozen=True, eq=False)
class FieldPostings:
    """One field of all documents, by term: term t occurs in `documents[starts[t]:starts[t + 1]]`, ascending, and
    `counts` times in each. `starts`: one more than there are terms."""

    starts: Offsets
    documents: Ints
    counts: Ints

    def lengths(self, documents: int) -> npt.NDArray[np.float64]:
        """Terms in each of the documents."""
        return np.bincount(self.documents, weights=self.counts, minlength=documents).astype(np.float64)


_LISTS = ("names", "versions", "vocabulary", "fields")


@dataclass(frozen=True, eq=False)
class Postings:
    """`names` of the documents, ascending; `versions`: of each one's content, so that the next build reads only
    what changed; `vocabulary`: the terms of all fields, ascending."""

    names: list[str]
    versions: list[str]
    vocabulary: list[str]
    fields: Mapping[str, FieldPostings]

    def term(self, word: str) -> int | None:
        """The position of a term in the vocabulary."""
        at = bisect_left(self.vocabulary, word)
        return at if at < len(self.vocabulary) and self.vocabulary[at] == word else None

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Documents by name."""
        return {name: at for at, name in enumerate(self.names)}

    def documents_with(self, words: Sequence[str], fields: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which documents have any of the words in any of these fields; one entry for each document."""
        found = np.zeros(len(self.names), dtype=np.bool_)
        for word in words:
            term = self.term(word)
            if term is not None:
                for field in fields:
                    one = self.fields[field]
                    found[one.documents[one.starts[term] : one.starts[term + 1]]] = True
        return found

    def stored(self, prefix: str) -> dict[str, Value]:
        """As arrays and lists for the index file; the inverse of `restored`."""
        lists = (self.names, self.versions, self.vocabulary, list(self.fields))
        values: dict[str, Value] = {f"{prefix}.{name}": own for name, own in zip(_LISTS, lists, strict=True)}
        for name, field in self.fields.items():
            values |= stored(field, f"{prefix}.{name}")
        return values

    @classmethod
    def restored(cls, values: Stored, prefix: str) -> Postings:
        """What `stored` gave. Raises KeyError when a part is missing."""
        lists = (values[f"{prefix}.{name}"] for name in _LISTS)
        names, versions, vocabulary, fields = cast("Iterator[list[str]]", lists)
        found = {name: restored(FieldPostings, values, f"{prefix}.{name}") for name in fields}
        return cls(names, versions, vocabulary, found)


@dataclass(frozen=True, slots=True)
class Document:
    """`counts`: by field, how often each term occurs. `version`: of the content."""

    name: str
    version: str
    counts: Mapping[str, Mapping[str, int]]


def unchanged(names: Sequence[str], versions: Sequence[str], now: Mapping[str, str]) -> dict[str, int]:
    """The names that have the same version `now`, with their places."""
    rows = enumerate(zip(names, versions, strict=True))
    return {name: at for at, (name, version) in rows if now.get(name) == version}


def updated(
    versions: Mapping[str, str], fields: Sequence[str], read: Callable[[str], Document], previous: Postings | None
) -> Postings:
    """Postings of the documents with these names and versions. Only those that `previous`, with the same fields,
    lacks are read; the result is the same to the byte."""
    if previous is None:
        return build([read(name) for name in versions], fields)
    same = unchanged(previous.names, previous.versions, versions).keys()
    stays = without(previous, set(previous.names) - same)
    return build([read(name) for name in versions if name not in same], fields, unchanged=stays)


def build(documents: Sequence[Document], fields: Sequence[str], *, unchanged: Postings | None = None) -> Postings:
    """Postings of `documents` and of the documents in `unchanged`; byte for byte the same as one build of all.

    Raises ValueError when a name occurs twice.
    """
    versions = {document.name: document.version for document in documents}
    older = dict(zip(unchanged.names, unchanged.versions, strict=True)) if unchanged is not None else {}
    if len(versions) != len(documents) or versions.keys() & older.keys():
        raise ValueError("a document's name occurs twice")
    names = sorted([*versions, *older])
    position = {name: at for at, name in enumerate(names)}
    triples = {field: _triples(documents, field, position) for field in fields}
    words = {word for field in fields for word in triples[field][0]}
    words.update(unchanged.vocabulary if unchanged is not None else ())
    vocabulary = sorted(words)
    number = {word: at for at, word in enumerate(vocabulary)}
    moves = None if unchanged is None else _moves(unchanged, number, position)
    built: dict[str, FieldPostings] = {}
    for field in fields:
        own, at, counts = triples[field]
        terms = np.fromiter((number[word] for word in own), dtype=np.int32, count=len(own))
        if unchanged is not None and moves is not None:
            terms, at, counts = (
                np.concatenate(pair)
                for pair in zip((terms, at, counts), _moved(unchanged.fields[field], *moves), strict=True)
            )
        built[field] = _by_term(terms, at, counts, len(vocabulary))
    versions |= older
    return Postings(names, [versions[name] for name in names], vocabulary, built)


def without(postings: Postings, names: set[str]) -> Postings:
    """The postings without these documents, the same as a build without them."""
    gone = np.fromiter((name in names for name in postings.names), dtype=np.bool_, count=len(postings.names))
    moved = (np.cumsum(~gone) - 1).astype(np.int32)
    terms = len(postings.vocabulary)
    left: dict[str, tuple[Ints, Ints, Ints]] = {}
    used = np.zeros(terms, dtype=np.bool_)
    for name, field in postings.fields.items():
        stays = ~gone[field.documents]
        of_term = np.repeat(np.arange(terms, dtype=np.int32), np.diff(field.starts))[stays]
        used[of_term] = True
        left[name] = (of_term, moved[field.documents[stays]], field.counts[stays])
    renumbered = (np.cumsum(used) - 1).astype(np.int32)
    return Postings(
        names=[name for name in postings.names if name not in names],
        versions=[v for name, v in zip(postings.names, postings.versions, strict=True) if name not in names],
        vocabulary=[word for word, stays in zip(postings.vocabulary, used.tolist(), strict=True) if stays],
        fields={
            name: _in_order(renumbered[of_term], at, counts, int(used.sum()))
            for name, (of_term, at, counts) in left.items()
        },
    )


def _triples(
    documents: Sequence[Document], field: str, position: Mapping[str, int]
) -> tuple[list[str], Ints, Ints]:
    """Word, document and count of each posting, in any order."""
    words: list[str] = []
    counts: list[int] = []
    sizes: list[int] = []
    for document in documents:
        found = document.counts.get(field, {})
        words += found.keys()
        counts += found.values()
        sizes.append(len(found))
    places = np.fromiter((position[document.name] for document in documents), np.int32, count=len(documents))
    return words, np.repeat(places, sizes), np.asarray(counts, dtype=np.int32)


def _moves(unchanged: Postings, number: Mapping[str, int], position: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Numbers of the unchanged terms and documents in another vocabulary and another list of documents."""
    terms = np.fromiter((number[word] for word in unchanged.vocabulary), np.int32, count=len(unchanged.vocabulary))
    places = np.fromiter((position[name] for name in unchanged.names), np.int32, count=len(unchanged.names))
    return terms, places


def _moved(one: FieldPostings, terms: Ints, places: Ints) -> tuple[Ints, Ints, Ints]:
    """An unchanged field's postings in those numbers."""
    return np.repeat(terms, np.diff(one.starts)), places[one.documents], one.counts


def _in_order(terms: Ints, documents: Ints, counts: Ints, vocabulary: int) -> FieldPostings:
    """`_by_term` of what is in the order of terms, and of documents within each."""
    ends = np.cumsum(np.bincount(terms, minlength=vocabulary), dtype=np.int64)
    return FieldPostings(np.concatenate((np.zeros(1, np.int64), ends)), documents, counts)


def _by_term(terms: Ints, documents: Ints, counts: Ints, vocabulary: int) -> FieldPostings:
    shape = (vocabulary, int(documents.max(initial=-1)) + 1)
    matrix = sparse.coo_array((counts, (terms, documents)), shape=shape).tocsr()
    matrix.sort_indices()
    return FieldPostings(
        np.asarray(matrix.indptr, dtype=np.int64), np.asarray(matrix.indices, dtype=np.int32), matrix.data
    )
