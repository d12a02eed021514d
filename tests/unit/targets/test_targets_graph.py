"""The dependency graph: against networkx, dense algebra and small examples worked by hand."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_targets.graph import spreading
from trialfleet_targets.graph.katz import KIND_WEIGHTS, Ghosts, adjacency, propagate, radius
from trialfleet_targets.graph.model import KINDS, FileGraph
from trialfleet_targets.graph.shape import betweenness, communities, starts
from trialfleet_targets.syntax_facts import Edge, EdgeKind

VALUE, CALL, TYPE = EdgeKind.VALUE, EdgeKind.CALL, EdgeKind.TYPE


def graph(names: str, *edges: tuple[str, str] | tuple[str, str, EdgeKind]) -> FileGraph:
    """`edges`: source, target, and a kind that is no value import."""
    return FileGraph.of(names, [Edge(source, target, *kind or [VALUE]) for source, target, *kind in edges])


def ones(one: FileGraph) -> np.ndarray:
    return np.ones(len(one.sources))


NAMES = "abcdefg"
graphs = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(KINDS)), max_size=20
).map(lambda edges: [Edge(source, target, kind, ("x",)) for source, target, kind in edges])


class TestModel:
    def test_edges_are_joined_and_ordered(self) -> None:
        edges = [
            Edge("b", "a", CALL, ("x",)),
            Edge("b", "a", VALUE, ("x", "y")),
            Edge("b", "a", CALL, ("z", "x")),
            Edge("a", "c", VALUE),
            Edge("a", "a", VALUE),
            Edge("a", "gone", VALUE),
        ]
        one = FileGraph.of(["c", "b", "a"], edges)
        rows = zip(one.sources, one.targets, (KINDS[kind] for kind in one.kinds), strict=True)
        assert [tuple(row) for row in rows] == [(0, 2, VALUE), (1, 0, CALL), (1, 0, VALUE)]
        assert one.importers.tolist() == [1, 0, 1]
        assert one.imported.tolist() == [1, 1, 0]
        assert one.strongest(np.array([0.1, 0.2, 0.9]))[2].tolist() == [0.1, 0.9]
        assert one.neighbours.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]

    @given(graphs, st.randoms())
    @settings(max_examples=30)
    def test_the_order_of_files_and_edges_changes_nothing(self, edges: list[Edge], random: Any) -> None:
        shuffled, names = list(edges), list(NAMES)
        random.shuffle(shuffled)
        random.shuffle(names)
        first, second = FileGraph.of(NAMES, edges), FileGraph.of(names, shuffled)
        for name in ("sources", "targets", "kinds"):
            assert getattr(first, name).tobytes() == getattr(second, name).tobytes()

    def test_no_edges_and_no_files(self) -> None:
        for names in ("", "a", "ab"):
            one = graph(names)
            assert betweenness(one, starts(one.size)).tolist() == [0] * one.size
            assert radius(adjacency(one, ones(one))) == 0
            assert communities(one, ones(one)).tolist() == list(range(one.size))


class TestSpreading:
    # d imports c imports b imports a
    CHAIN = graph("abcd", ("b", "a"), ("c", "b"), ("d", "c"))
    LINKS = spreading.dependencies(*CHAIN.pairs)
    NONE = spreading.couplings(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))

    def test_three_hops_along_importers(self) -> None:
        spread = spreading.spread(np.array([1.0, 0, 0, 0]), self.LINKS, self.NONE)
        assert spread.tolist() == pytest.approx([1, 0.4, 0.4 * 0.4 * 0.5, 0.4**3 * 0.25])

    def test_what_is_imported_gets_half_of_that(self) -> None:
        spread = spreading.spread(np.array([0, 0, 0, 1.0]), self.LINKS, self.NONE, hops=2)
        assert spread.tolist() == pytest.approx([0, 0.2 * 0.2 * 0.5, 0.2, 1])

    def test_what_arrives_does_not_add_up(self) -> None:
        spread = spreading.spread(np.array([1.0, 0, 1.0, 0]), self.LINKS, self.NONE, hops=1)
        assert spread.tolist() == pytest.approx([1, 0.4, 1, 0.4])

    def test_files_that_change_together_from_a_confidence_of_a_half(self) -> None:
        coupled = spreading.couplings(np.array([0, 0]), np.array([2, 3]), np.array([0.5, 0.49]))
        spread = spreading.spread(np.array([1.0, 0, 0, 0]), self.LINKS, coupled, hops=0)
        assert spread.tolist() == pytest.approx([1, 0, 0.4, 0])
        assert spreading.spread(np.array([0, 0, 1.0, 0]), self.LINKS, coupled, hops=0)[0] == 0.4

    def test_a_test_hands_on_six_tenths_and_takes_nothing(self) -> None:
        scores = spreading.from_tests(np.array([0.0, 5, 10]), np.array([2, 2]), np.array([0, 1]))
        assert scores.tolist() == pytest.approx([6, 6, 10])

    def test_the_ceiling_scales_files_that_match_by_imports_alone(self) -> None:
        direct, imports = np.array([True, True, False, False, False]), np.array([False, False, True, True, False])
        scores = np.array([4.0, 2, 3, 1.5, 9])
        assert spreading.under_ceiling(scores, direct, imports).tolist() == pytest.approx([4, 2, 1, 0.5, 9])
        low = np.array([4.0, 2, 0.9, 0.1, 9])
        assert spreading.under_ceiling(low, direct, imports).tolist() == low.tolist()
        assert spreading.under_ceiling(scores, ~direct & False, imports).tolist() == scores.tolist()

    @given(graphs, st.lists(st.floats(0, 100), min_size=7, max_size=7), st.integers(0, 6))
    @settings(max_examples=40)
    def test_spreading_never_lowers_and_grows_with_its_input(
        self, edges: list[Edge], scores: list[float], raised: int
    ) -> None:
        links = spreading.dependencies(*FileGraph.of(NAMES, edges).pairs)
        before = np.array(scores)
        after = spreading.spread(before, links, self.NONE)
        assert (after >= before).all()
        assert after.max() == before.max()
        before[raised] += 1
        assert (spreading.spread(before, links, self.NONE) >= after).all()


class TestKatz:
    def test_weights_by_kind_direction_and_confidence(self) -> None:
        one = graph("abc", ("a", "b", CALL), ("a", "b", TYPE), ("b", "c", EdgeKind.EXTENDS))
        matrix = adjacency(one, np.array([0.5, 1.0, 0.25]))
        expected = np.zeros((3, 3))
        expected[1, 0], expected[0, 1] = 0.7 * 0.5, 0.7 * 0.5 * 0.7  # .35 by the call is more than .3 by the type
        expected[2, 1], expected[1, 2] = 0.8 * 0.25, 0.8 * 0.25 * 0.7
        assert matrix.toarray() == pytest.approx(expected)

    def test_ghosts_join_only_what_no_dependency_joins(self) -> None:
        one = graph("abc", ("a", "b", CALL))
        ghosts = Ghosts(np.array([0, 0]), np.array([1, 2]), np.array([1.0, 0.5]))
        matrix = adjacency(one, np.array([0.1]), ghosts).toarray()
        assert matrix[1, 0] == pytest.approx(0.07)
        assert matrix[0, 1] == pytest.approx(0.049)
        assert matrix[0, 2] == matrix[2, 0] == pytest.approx(0.3)

    def test_every_kind_has_a_weight(self) -> None:
        assert set(KIND_WEIGHTS) == set(EdgeKind)

    @given(graphs, st.integers(0, 6))
    @settings(max_examples=40)
    def test_it_is_the_solution_of_its_equation(self, edges: list[Edge], seed: int) -> None:
        one = FileGraph.of(NAMES, edges)
        matrix = adjacency(one, ones(one))
        dense = matrix.toarray()
        exact = float(np.abs(np.linalg.eigvals(dense)).max())
        seeds = np.zeros(7)
        seeds[seed] = 1
        found = propagate(matrix, seeds, radius=2 * exact)  # converges in fewer than 50 steps
        solved = np.linalg.solve(np.eye(7) - (0.85 / (2 * exact) if exact else 0) * dense, seeds)
        solved = solved / solved.max()
        assert found == pytest.approx(np.where(solved < 1e-4, 0, solved), abs=2e-4)
        assert found.max() == 1

    @given(graphs)
    @settings(max_examples=30)
    def test_ten_power_iterations_never_give_more_than_the_norm_and_no_nan(self, edges: list[Edge]) -> None:
        one = FileGraph.of(NAMES, edges)
        matrix = adjacency(one, ones(one))
        assert 0 <= radius(matrix) <= np.linalg.norm(matrix.toarray(), 2) + 1e-12
        assert np.isfinite(propagate(matrix, np.ones(7), radius=radius(matrix))).all()

    def test_the_radius_of_a_complete_graph(self) -> None:
        full = graph("abcd", *[(one, other, CALL) for one in "abcd" for other in "abcd" if one != other])
        assert radius(adjacency(full, ones(full))) == pytest.approx(3 * 0.7)

    @pytest.mark.parametrize("hub_imports", [True, False])
    def test_the_radius_around_a_hub(self, hub_imports: bool) -> None:
        """Eigenvalues are ±√(sum of w · .7w): growth alternates, and its last step would be off by a sixth."""
        names = [chr(ord("a") + at) for at in range(26)]
        pairs = [("a", other) if hub_imports else (other, "a") for other in names[1:]]
        one = graph("".join(names), *[(*pair, CALL) for pair in pairs])
        assert radius(adjacency(one, ones(one))) == pytest.approx(np.sqrt(25 * 0.7 * 0.49), rel=1e-3)

    def test_a_hub_does_not_drown_the_seeds(self) -> None:
        """Fifty files that use one hub, and two that stand apart: Katz solves the equation of the true radius."""
        names = [chr(0x100 + at) for at in range(53)]
        one = graph("".join(names), *[(name, names[0], CALL) for name in names[1:51]], (names[51], names[52]))
        matrix = adjacency(one, ones(one))
        dense = matrix.toarray()
        exact = float(np.abs(np.linalg.eigvals(dense)).max())
        seeds = np.zeros(53)
        seeds[1] = 1
        solved = np.linalg.solve(np.eye(53) - 0.85 / exact * dense, seeds)
        found = propagate(matrix, seeds, radius=radius(matrix))
        assert found == pytest.approx(solved / solved.max(), abs=5e-3)

    def test_nothing_comes_from_nothing(self) -> None:
        one = graph("ab", ("a", "b"))
        assert propagate(adjacency(one, ones(one)), np.zeros(2), radius=1.0).tolist() == [0, 0]


class TestBetweenness:
    @given(graphs)
    @settings(max_examples=60)
    def test_all_starts_give_what_networkx_gives(self, edges: list[Edge]) -> None:
        one = FileGraph.of(NAMES, edges)
        theirs = nx.DiGraph()
        theirs.add_nodes_from(range(7))
        theirs.add_edges_from(zip(one.sources.tolist(), one.targets.tolist(), strict=True))
        expected = nx.betweenness_centrality(theirs, normalized=True)
        assert betweenness(one, starts(7)).tolist() == pytest.approx([expected[at] for at in range(7)])

    def test_some_starts_give_their_share_as_networkx_has_it(self) -> None:
        rng = np.random.default_rng(3)
        names = [f"{at:03}" for at in range(130)]
        edges = [Edge(names[one], names[other], VALUE) for one, other in rng.integers(0, 130, (400, 2))]
        one = FileGraph.of(names, edges)
        theirs = nx.DiGraph(zip(one.sources.tolist(), one.targets.tolist(), strict=True))
        chosen = np.arange(0, 130, 2)[:65]  # more than travel at once
        exact = nx.betweenness_centrality_subset(theirs, chosen.tolist(), list(range(130)))
        expected = [exact.get(at, 0.0) * 130 / 65 / (129 * 128) for at in range(130)]
        assert betweenness(one, chosen).tolist() == pytest.approx(expected)

    def test_how_many_starts_and_the_same_ones_for_a_seed(self) -> None:
        assert len(starts(40)) == 40
        assert len(starts(400)) == 50
        assert len(starts(10_000)) == 200
        assert starts(400, seed=1).tolist() == starts(400, seed=1).tolist()
        assert starts(400, seed=1).tolist() != starts(400, seed=2).tolist()


class TestCommunities:
    def test_two_cliques_and_a_bridge(self) -> None:
        cliques = [(one, other) for part in ("abcd", "efgh") for one in part for other in part if one < other]
        one = graph("abcdefgh", *cliques, ("d", "e"))
        assert communities(one, ones(one)).tolist() == [0] * 4 + [1] * 4
        assert communities(one, ones(one), seed=7).tolist() == communities(one, ones(one), seed=7).tolist()
