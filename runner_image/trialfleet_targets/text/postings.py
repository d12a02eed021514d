"""Which term stands how often in which field of which document: what every lexical score is computed from."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Stored = Mapping[str, npt.NDArray[np.generic] | list[str]]
"""What an index keeps: arrays and lists of words, by name."""


@dataclass(frozen=True, eq=False)
class FieldPostings:
    """One field of all documents, by term: term t stands in `documents[starts[t]:starts[t + 1]]`, ascending, and
    `counts` times in each. `starts`: one more than there are terms."""

    starts: Offsets
    documents: Ints
    counts: Ints

    def lengths(self, documents: int) -> npt.NDArray[np.float64]:
        """Terms in each of the documents."""
        return np.bincount(self.documents, weights=self.counts, minlength=documents).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Postings:
    """`names` of the documents, ascending; `versions`: of each one's content, so that the next build reads only
    what changed; `vocabulary`: the terms of all fields, ascending."""

    names: list[str]
    versions: list[str]
    vocabulary: list[str]
    fields: Mapping[str, FieldPostings]

    def term(self, word: str) -> int | None:
        """Where a term stands in the vocabulary."""
        at = bisect_left(self.vocabulary, word)
        return at if at < len(self.vocabulary) and self.vocabulary[at] == word else None

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Documents by name."""
        return {name: at for at, name in enumerate(self.names)}

    def having(self, words: Sequence[str], fields: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which documents have any of the words in any of these fields; one entry for each document."""
        found = np.zeros(len(self.names), dtype=np.bool_)
        for word in words:
            term = self.term(word)
            if term is not None:
                for field in fields:
                    one = self.fields[field]
                    found[one.documents[one.starts[term] : one.starts[term + 1]]] = True
        return found

    def stored(self, prefix: str) -> dict[str, npt.NDArray[np.generic] | list[str]]:
        """As arrays and lists to be kept; `restored` takes them back."""
        kept: dict[str, npt.NDArray[np.generic] | list[str]] = {
            f"{prefix}.names": self.names,
            f"{prefix}.versions": self.versions,
            f"{prefix}.vocabulary": self.vocabulary,
            f"{prefix}.fields": list(self.fields),
        }
        for name, field in self.fields.items():
            kept[f"{prefix}.{name}.starts"] = field.starts
            kept[f"{prefix}.{name}.documents"] = field.documents
            kept[f"{prefix}.{name}.counts"] = field.counts
        return kept

    @classmethod
    def restored(cls, kept: Stored, prefix: str) -> Postings:
        """What `stored` gave. Raises KeyError when a part is missing."""

        def words(name: str) -> list[str]:
            return cast("list[str]", kept[f"{prefix}.{name}"])

        return cls(
            names=words("names"),
            versions=words("versions"),
            vocabulary=words("vocabulary"),
            fields={
                name: FieldPostings(
                    starts=cast(Offsets, kept[f"{prefix}.{name}.starts"]),
                    documents=cast(Ints, kept[f"{prefix}.{name}.documents"]),
                    counts=cast(Ints, kept[f"{prefix}.{name}.counts"]),
                )
                for name in words("fields")
            },
        )


@dataclass(frozen=True, slots=True)
class Document:
    """`counts`: by field, how often each term stands in it. `version`: of its content."""

    name: str
    version: str
    counts: Mapping[str, Mapping[str, int]]


def build(documents: Sequence[Document], fields: Sequence[str], *, kept: Postings | None = None) -> Postings:
    """Postings of `documents` and, beside them, of what `kept` holds: byte for byte what one build of all gives.

    Raises ValueError when a name stands twice or the fields of `kept` are others.
    """
    if kept is not None and list(kept.fields) != list(fields):
        raise ValueError(f"fields {list(fields)} do not match those kept, {list(kept.fields)}")
    versions = {document.name: document.version for document in documents}
    older = dict(zip(kept.names, kept.versions, strict=True)) if kept is not None else {}
    if len(versions) != len(documents) or versions.keys() & older.keys():
        raise ValueError("a document's name stands twice")
    names = sorted([*versions, *older])
    position = {name: at for at, name in enumerate(names)}
    triples = {field: _triples(documents, field, position) for field in fields}
    words = {word for field in fields for word in triples[field][0]}
    words.update(kept.vocabulary if kept is not None else ())
    vocabulary = sorted(words)
    number = {word: at for at, word in enumerate(vocabulary)}
    moves = None if kept is None else _moves(kept, number, position)
    built: dict[str, FieldPostings] = {}
    for field in fields:
        own, at, counts = triples[field]
        terms = np.fromiter((number[word] for word in own), dtype=np.int32, count=len(own))
        if kept is not None and moves is not None:
            terms, at, counts = (
                np.concatenate(pair)
                for pair in zip((terms, at, counts), _moved(kept.fields[field], *moves), strict=True)
            )
        built[field] = _by_term(terms, at, counts, len(vocabulary))
    versions |= older
    return Postings(names, [versions[name] for name in names], vocabulary, built)


def without(postings: Postings, names: set[str]) -> Postings:
    """The postings of the other documents, as if these had never been there."""
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


def _moves(kept: Postings, number: Mapping[str, int], position: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Numbers of the kept terms and documents in another vocabulary and another list of documents."""
    terms = np.fromiter((number[word] for word in kept.vocabulary), np.int32, count=len(kept.vocabulary))
    places = np.fromiter((position[name] for name in kept.names), np.int32, count=len(kept.names))
    return terms, places


def _moved(one: FieldPostings, terms: Ints, places: Ints) -> tuple[Ints, Ints, Ints]:
    """A kept field's postings in those numbers."""
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
