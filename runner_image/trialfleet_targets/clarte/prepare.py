"""The arrays that the method `clarte` stores in the index; a query reads nothing else."""

from __future__ import annotations

from hashlib import sha256
from typing import cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets import lsa
from trialfleet_targets.arrays import Floats, Ints, Stored, Value
from trialfleet_targets.clarte import examples, fusion, proxies
from trialfleet_targets.coupling import couplings
from trialfleet_targets.graph.model import KINDS, FileGraph
from trialfleet_targets.graph.shape import betweenness, communities, starts
from trialfleet_targets.priors import edge_priors
from trialfleet_targets.snapshot import Snapshot
from trialfleet_targets.text import fields
from trialfleet_targets.text.postings import Postings
from trialfleet_targets.text.tokens import Tokenizer


def prepare(snapshot: Snapshot, previous: Stored | None = None, *, seed: int = 0) -> dict[str, Value]:
    """Arrays and lists of words by name. `previous`: of an earlier commit by this version; what cannot have
    changed is taken from it, and the result is the same to the byte."""
    graph = FileGraph.of(snapshot.files, snapshot.edges)
    paths = sorted(snapshot.files)
    tests = np.asarray([snapshot.files[path].test for path in paths], dtype=np.bool_)
    shape = _shape(graph, previous, seed)
    indexed = examples.IndexedFiles(
        graph, tests, cast(Ints, shape["communities"]), cast(Floats, shape["betweenness"]).astype(np.float64)
    )
    trained = fusion.train(examples.groups(indexed, snapshot.history, seed=seed))
    covering, covered = proxies.covered(snapshot.files)
    older = Postings.restored(previous, "text") if previous is not None else None
    return {
        **fields.prepare(snapshot.files, Tokenizer(), previous=older).stored("text"),
        **shape,
        **_similar(snapshot, previous, seed),
        **_coupled(snapshot, graph),
        "tests": tests,
        "sources": graph.sources,
        "targets": graph.targets,
        "kinds": graph.kinds,
        "confidence": _confidence(snapshot, graph),
        "covering": covering,
        "covered": covered,
        "weights": np.asarray(trained.weights.values),
    }


def _shape(graph: FileGraph, previous: Stored | None, seed: int) -> dict[str, Value]:
    """Betweenness and communities. They depend on the dependency graph alone and are reused while it is
    unchanged."""
    sources, targets = graph.pairs
    digest = _digest("\n".join(graph.names).encode("utf-8", "surrogateescape"), sources, targets, seed)
    if previous is not None and previous["shape"] == [digest]:
        return {name: previous[name] for name in ("shape", "betweenness", "communities")}
    return {
        "shape": [digest],
        "betweenness": betweenness(graph, starts(graph.size, seed=seed)).round(12),
        "communities": communities(graph, np.ones(len(graph.sources)), seed=seed),
    }


def _similar(snapshot: Snapshot, previous: Stored | None, seed: int) -> dict[str, Value]:
    if len(snapshot.files) < lsa.MIN_FILES:
        return {"imports": [""], "places": np.zeros((len(snapshot.files), 0), dtype=np.float32)}
    matrix = lsa.incidence(snapshot.files)
    digest = _digest(repr(matrix.shape).encode(), matrix.indptr, matrix.indices, seed)
    if previous is not None and previous["imports"] == [digest]:
        return {name: previous[name] for name in ("imports", "places")}
    return {"imports": [digest], "places": lsa.coordinates(matrix, seed=seed)}


def _coupled(snapshot: Snapshot, graph: FileGraph) -> dict[str, Value]:
    number = {name: at for at, name in enumerate(graph.names)}
    pairs = couplings(snapshot.history, now=snapshot.time, paths=snapshot.files.keys())
    return {
        "coupled.first": np.asarray([number[one.first] for one in pairs], dtype=np.int32),
        "coupled.second": np.asarray([number[one.second] for one in pairs], dtype=np.int32),
        "coupled.confidence": np.asarray([one.jaccard for one in pairs], dtype=np.float64),
    }


def _confidence(snapshot: Snapshot, graph: FileGraph) -> Floats:
    """The mean of the prior of each edge of the graph."""
    means = {
        (edge.source, edge.target, edge.kind): prior.mean
        for edge, prior in zip(snapshot.edges, edge_priors(snapshot.edges, snapshot.history), strict=True)
    }
    columns = np.column_stack((graph.sources, graph.targets, graph.kinds))
    rows = cast("list[tuple[int, int, int]]", columns.tolist())
    names = graph.names
    found = [means[names[source], names[target], KINDS[kind]] for source, target, kind in rows]
    return np.asarray(found, dtype=np.float64)


def _digest(description: bytes, first: npt.NDArray[np.generic], second: npt.NDArray[np.generic], seed: int) -> str:
    whole = sha256(b"%d %d %d\n" % (seed, len(description), first.nbytes))
    for part in (description, first.tobytes(), second.tobytes()):
        whole.update(part)
    return whole.hexdigest()
