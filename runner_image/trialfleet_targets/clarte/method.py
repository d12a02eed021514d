"""Rank the files of a prepared index for one request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets import lsa
from trialfleet_targets.arrays import Flags, Floats, Ints, Stored
from trialfleet_targets.clarte.fusion import PARTS, FusionWeights
from trialfleet_targets.graph import spreading
from trialfleet_targets.graph.katz import Ghosts, adjacency, propagate, radius
from trialfleet_targets.graph.model import FileGraph
from trialfleet_targets.prediction import Target
from trialfleet_targets.text.bm25f import BM25F
from trialfleet_targets.text.postings import Postings
from trialfleet_targets.text.tokens import Tokenizer

MAX_SEEDS = 10
MAX_RANKED = 20
MAX_SELECTED = 5
SELECTED_FROM = 0.7
TIED = 9  # digits: scores that agree to these are a tie


@dataclass(frozen=True, slots=True)
class Stages:
    """The enabled stages, for ablations; the method itself enables all of them. `weights`: λ that replaces the
    index's; (1, 0, 0, 0) is the lexical score alone."""

    synonyms: bool = True
    spreading: bool = True
    tests: bool = True
    ceiling: bool = True
    similar: bool = True
    weights: FusionWeights | None = None


ALL = Stages()


class Clarte:
    """The published method on one index. Immutable; serves any number of requests."""

    name = "clarte"

    def __init__(self, prepared: Stored, stages: Stages = ALL) -> None:
        """`prepared`: what `prepare` gave. Raises KeyError when a part is missing."""

        def ints(name: str) -> Ints:
            return cast(Ints, prepared[name])

        def floats(name: str) -> Floats:
            return cast(Floats, prepared[name])

        postings = Postings.restored(prepared, "text")
        self._paths = postings.names
        self._text = BM25F.of(postings)
        self._tokenizer = Tokenizer()
        graph = FileGraph(self._paths, ints("sources"), ints("targets"), ints("kinds"))
        self._first, self._second = ints("coupled.first"), ints("coupled.second")
        self._coupling = floats("coupled.confidence")
        self._imports = spreading.dependencies(*graph.pairs)
        self._coupled = spreading.couplings(self._first, self._second, self._coupling)
        self._covering, self._covered = ints("covering"), ints("covered")
        self._places = cast(lsa.Coordinates, prepared["places"])
        ghosts = Ghosts(self._first, self._second, self._coupling)
        self._adjacency = adjacency(graph, floats("confidence"), ghosts)
        self._radius = radius(self._adjacency)
        self._targets = ~cast(Flags, prepared["tests"])
        self._betweenness = floats("betweenness")
        self._importers = graph.importers
        self._consumer_only = (graph.importers == 0) & (graph.imported > 0)
        self._stages = stages
        self._weights = floats("weights") if stages.weights is None else np.asarray(stages.weights.values)

    def rank(self, prompt: str) -> tuple[Target, ...]:
        """At most 20 files, best first; none when no word of the prompt is known.

        The score is the sum of `parts`, the λ-weighted scores. Where the lexical score does not come from the
        file's own words, its part has the name of the source: "spread", "test" or "similar".
        """
        lexical, origin = self._lexical(
            self._tokenizer.query(prompt)
            if self._stages.synonyms
            else dict.fromkeys(self._tokenizer.terms(prompt), 1.0)
        )
        seeds = _seeds(lexical)
        similar = self._similar(seeds)
        origin[similar > lexical] = _SIMILAR
        lexical = np.maximum(lexical, similar)
        if not lexical.any():
            return ()
        seeds = (seeds + similar) / seeds.max()
        propagated = np.where(self._targets, propagate(self._adjacency, seeds, radius=self._radius), 0)
        temporal = np.where(self._targets, self._changed_with(seeds), 0)
        candidates = np.flatnonzero((lexical > 0) | (propagated > 0) | (temporal > 0))
        scores = np.column_stack(
            [_by_maximum(one[candidates]) for one in (lexical, propagated, temporal, self._betweenness)]
        )
        weighted = scores * self._weights
        total = weighted.sum(axis=1)
        order = self._ordered(candidates, total)
        files: list[int] = candidates[order].tolist()
        return tuple(
            Target(self._paths[file], float(total[at]), _parts(weighted[at], int(origin[file])))
            for at, file in zip(order, files, strict=True)
        )

    def _lexical(self, query: dict[str, float]) -> tuple[Floats, Ints]:
        """Lexical scores of possible targets, from words, neighbours and tests, and the source of each."""
        own = self._text.scores(query)
        direct = self._text.postings.documents_with(list(query), ("path", "symbols"))
        on = self._stages
        spread = spreading.spread(own, self._imports, self._coupled) if on.spreading else own
        tested = spreading.from_tests(spread, self._covering, self._covered) if on.tests else spread
        import_only = (own > 0) & ~direct & self._targets
        under = spreading.under_ceiling(tested, direct & self._targets, import_only) if on.ceiling else tested
        origin = np.where(tested > spread, _TESTED, np.where(spread > own, _SPREAD, _OWN)).astype(np.int32)
        return np.where(self._targets, under, 0), origin

    def _similar(self, seeds: Floats) -> Floats:
        return lsa.expand(self._places, seeds, self._targets) if self._stages.similar else np.zeros_like(seeds)

    def _changed_with(self, seeds: Floats) -> Floats:
        """The largest of coupling × the seed's score, over all seeds."""
        found = np.zeros_like(seeds)
        np.maximum.at(found, self._first, self._coupling * seeds[self._second])
        np.maximum.at(found, self._second, self._coupling * seeds[self._first])
        return found

    def _ordered(self, candidates: npt.NDArray[np.intp], total: Floats) -> npt.NDArray[np.intp]:
        """Places of the 20 best by score; ties: files that only use others first, then by betweenness, by
        importers, by path."""
        score = total.round(TIED)
        first = _best(score, MAX_RANKED)
        files = candidates[first]
        keys = (
            files,
            -self._importers[files],
            -self._betweenness[files],
            ~self._consumer_only[files],
            -score[first],
        )
        return first[np.lexsort(keys)][:MAX_RANKED]


def select(ranked: Iterable[Target]) -> tuple[Target, ...]:
    """The targets with more than .7 of the best score: at least one, at most five."""
    found = tuple(ranked)
    return found[:1] + tuple(one for one in found[1:MAX_SELECTED] if one.score > SELECTED_FROM * found[0].score)


_OWN, _SPREAD, _TESTED, _SIMILAR = range(4)
_LEXICAL = ("lexical", "spread", "test", "similar")


def _seeds(lexical: Floats) -> Floats:
    """The ten best scores, the others 0; of equal ones the first by path."""
    score = lexical.round(TIED)
    first = _best(score, MAX_SEEDS)
    best = first[np.lexsort((first, -score[first]))][:MAX_SEEDS]
    seeds = np.zeros_like(lexical)
    seeds[best] = lexical[best]
    return seeds


def _best(score: Floats, count: int) -> npt.NDArray[np.intp]:
    """Places, ascending, of the `count` largest and of all that tie with the last of them."""
    if len(score) <= count:
        return np.arange(len(score))
    return np.flatnonzero(score >= np.partition(score, -count)[-count])


def _by_maximum(values: Floats) -> Floats:
    highest = values.max()
    return values / highest if highest > 0 else values


def _parts(weighted: Floats, origin: int) -> tuple[tuple[str, float], ...]:
    names = (_LEXICAL[origin], *PARTS[1:])
    found = [(name, float(value)) for name, value in zip(names, weighted, strict=True) if value > 0]
    return tuple(sorted(found, key=lambda part: (-part[1], part[0])))
