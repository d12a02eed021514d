"""Files that import alike: against the dense decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from trialfleet_targets import lsa
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import FileFacts, Import, ParsedLanguage


def file(path: str, *imports: Import) -> SourceFile:
    return SourceFile(path, "", FileFacts(ParsedLanguage.TYPESCRIPT, imports=imports), "")


def test_what_a_file_imports() -> None:
    files = {
        "b.ts": file("b.ts", Import("./x", (("open", "o"), ("shut", "shut"))), Import("fmt"), Import("", ())),
        "a.ts": file("a.ts", Import("../x", (("open", "open"),)), Import("all", (("*", ""),))),
        "c.ts": file("c.ts"),
    }
    matrix = lsa.incidence(files)
    assert matrix.toarray().tolist() == [[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0]]  # all, fmt, open, shut


def blocks() -> np.ndarray:
    """60 files in three groups, each importing most of its own third of 45 symbols; a little crosses over."""
    rng = np.random.default_rng(0)
    table = np.zeros((60, 45))
    for group in range(3):
        table[group * 20 : group * 20 + 20, group * 15 : group * 15 + 15] = rng.random((20, 15)) < 0.8
    return np.maximum(table, rng.random((60, 45)) < 0.02)


def test_similarity_is_that_of_the_exact_truncated_decomposition() -> None:
    table = blocks()
    left, values, _ = np.linalg.svd(table, full_matrices=False)
    exact = left[:, :3] * values[:3]
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    found = lsa.coordinates(sparse.csr_array(table), rank=3)
    assert found @ found.T == pytest.approx(exact @ exact.T, abs=0.002)
    full = lsa.coordinates(sparse.csr_array(table), rank=45)
    cosine = table / np.linalg.norm(table, axis=1, keepdims=True)
    assert full @ full.T == pytest.approx(cosine @ cosine.T, abs=1e-4)


def test_the_seed_decides_and_nothing_else() -> None:
    matrix = sparse.csr_array(blocks())
    assert lsa.coordinates(matrix, rank=5).tobytes() == lsa.coordinates(matrix, rank=5).tobytes()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (3, 1), (1, 3)])
def test_small_and_empty_tables(shape: tuple[int, int]) -> None:
    assert not lsa.coordinates(sparse.csr_array(np.zeros(shape))).any()
    full = lsa.coordinates(sparse.csr_array(np.ones(shape)))
    assert len(full) == shape[0]
    assert np.isfinite(full).all()


def test_the_nearest_join_at_a_discount() -> None:
    places = lsa.coordinates(sparse.csr_array(blocks()), rank=3)
    seeds = np.zeros(60)
    seeds[[0, 1, 2]] = [5.0, 4.0, 2.0]
    allowed = np.ones(60, dtype=bool)
    allowed[10] = False
    added = lsa.expand(places, seeds, allowed)
    centre = (seeds[:, None] * places).sum(axis=0)
    similar = places @ centre / np.linalg.norm(centre)
    similar[[0, 1, 2, 10]] = -1
    expected = np.argsort(-similar)[:5]
    assert sorted(np.flatnonzero(added)) == sorted(expected)
    assert set(expected) <= set(range(3, 20))
    assert added[expected].tolist() == pytest.approx([0.8] * 5)


def test_what_is_not_similar_does_not_join() -> None:
    places = np.zeros((60, 2), dtype=np.float32)
    places[0], places[1], places[2] = (1, 0), (0.3, 0.954), (0.29, 0.957)
    seeds = np.zeros(60)
    seeds[0] = 1
    assert np.flatnonzero(lsa.expand(places, seeds, np.ones(60, dtype=bool))).tolist() == [1]


def test_fewer_than_fifty_files_need_no_help() -> None:
    places = np.ones((49, 1), dtype=np.float32)
    seeds = np.zeros(49)
    seeds[0] = 1
    assert not lsa.expand(places, seeds, np.ones(49, dtype=bool)).any()
    more = np.concatenate((seeds, [0.0]))
    assert lsa.expand(np.ones((50, 1), dtype=np.float32), more, np.ones(50, dtype=bool)).any()
    assert not lsa.expand(np.ones((50, 1), dtype=np.float32), np.zeros(50), np.ones(50, dtype=bool)).any()
