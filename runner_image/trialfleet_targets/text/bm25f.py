"""BM25F: one score from several fields of a document, saturated after the fields are blended.

Source: Robertson, Zaragoza & Taylor 2004, "Simple BM25 extension to multiple weighted fields".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trialfleet_targets.arrays import Floats, Ints, Offsets
from trialfleet_targets.text.postings import Postings

K1 = 1.2


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """`b`: how much a field's length counts, 0 not at all. `floor`: the least its average length is taken for."""

    name: str
    weight: float
    b: float
    floor: float = 1.0


PUBLISHED = (
    FieldWeight("path", 2.0, 0.3, 1.0),
    FieldWeight("symbols", 1.0, 0.4, 5.0),
    FieldWeight("imports", 0.5, 0.5, 5.0),
)


@dataclass(frozen=True, eq=False)
class BM25F:
    """The query-independent part of the score: `impacts` is what a query term adds to a document, by term like the
    postings' fields. Immutable; a query reads only the postings of its terms."""

    postings: Postings
    starts: Offsets
    documents: Ints
    impacts: npt.NDArray[np.float32]

    @classmethod
    def of(cls, postings: Postings, fields: Sequence[FieldWeight] = PUBLISHED) -> BM25F:
        """With N documents, df those that have the term in any of the fields, tf and len by field:

        idf = ln((N - df + .5) / (df + .5) + 1)
        blended = Σ over fields  weight · tf / (1 - b + b · len / max(mean len, floor))
        impact = idf · blended · (K1 + 1) / (blended + K1)
        """
        total, terms = len(postings.names), len(postings.vocabulary)
        blended: sparse.csr_array | None = None  # no sum with nothing: it takes as long as any other
        for field in fields:
            one = postings.fields[field.name]
            lengths = one.lengths(total)
            mean = max(float(lengths.mean()) if total else 0.0, field.floor)
            scale = field.weight / (1 - field.b + field.b * lengths / mean)
            values = one.counts * scale[one.documents]
            own = sparse.csr_array((values, one.documents, one.starts), shape=(terms, total))
            blended = own if blended is None else sparse.csr_array(blended + own)
        if blended is None:
            blended = sparse.csr_array((terms, total), dtype=np.float64)
        blended.sort_indices()
        starts = np.asarray(blended.indptr, dtype=np.int64)
        frequency = np.diff(starts)
        idf = np.log((total - frequency + 0.5) / (frequency + 0.5) + 1)
        tf = blended.data
        impacts = np.repeat(idf, frequency) * tf * (K1 + 1) / (tf + K1)
        return cls(postings, starts, np.asarray(blended.indices, dtype=np.int32), impacts.astype(np.float32))

    def scores(self, query: Mapping[str, float]) -> Floats:
        """One score for each document, 0 where no term of the query occurs.

        >>> from trialfleet_targets.text.postings import Document, build
        >>> documents = [Document("a", "", {"path": {"jwt": 1}}), Document("b", "", {"path": {"db": 1}})]
        >>> index = BM25F.of(build(documents, ["path"]), [FieldWeight("path", 2.0, 0.3)])
        >>> index.scores({"jwt": 1.0, "none": 1.0}).round(3).tolist()
        [0.953, 0.0]
        """
        scores = np.zeros(len(self.postings.names))
        for word, weight in query.items():
            term = self.postings.term(word)
            if term is not None:
                at = slice(self.starts[term], self.starts[term + 1])
                scores[self.documents[at]] += weight * self.impacts[at]
        return scores
