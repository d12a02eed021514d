"""What earlier commits teach: from what was known before each, and never from the answer itself."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.targets.clarte_fixture import DAY, NOW, commit, edges
from trialfleet_targets.clarte import fusion
from trialfleet_targets.clarte.examples import UNREACHED, IndexedFiles, couplings_before, distances, groups
from trialfleet_targets.graph.model import FileGraph
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.syntax_facts import Edge, EdgeKind


def indexed(names: list[str], links: tuple[Edge, ...], *, tests: tuple[str, ...] = ()) -> IndexedFiles:
    graph = FileGraph.of(names, links)
    return IndexedFiles(
        graph,
        np.array([name in tests for name in graph.names]),
        np.arange(graph.size, dtype=np.int32),  # every file its own community
        np.linspace(0, 1, graph.size),
    )


# a - b - c - d - e in a line, f alone
LINE = [*"abcdef"]
IN_LINE = edges(("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"))


def test_worked_by_hand() -> None:
    """a and d changed. Sought from d: a is 3 steps away, its neighbour b 2, and c, two from a, 1."""
    history = [commit(1, "a", "d"), commit(2, "b", "d"), commit(3, "b", "d", "x"), commit(4, "b")]
    of_a, of_d, *older = groups(indexed(LINE, IN_LINE), history)
    graph = of_a.features[:, 1]
    assert graph.tolist() == pytest.approx([0.25 / 0.5, (1 / 3) / 0.5, 1])
    assert of_a.features[:, 2].tolist() == [0, 1, 0]  # b changed with d twice of three times; nothing else did
    assert of_a.features[:, 3].tolist() == pytest.approx([0, 0.5, 1])
    # sought from a: d is 3 steps away, its neighbours c and e 2 and 4, b, two from d, 1
    assert of_d.features[:, 1].tolist() == pytest.approx([0.25 / 0.5, (1 / 3) / 0.5, 0.2 / 0.5, 1])
    assert [one.commit for one in older] == [1, 1, 2, 2]


def test_the_distance_of_a_file_from_itself_is_never_asked() -> None:
    """The published feature is 1/(0 + 1) for every changed file; files without a way to the others must get 0."""
    apart = indexed([*LINE, "g"], (*IN_LINE, *edges(("f", "g"))))
    of_a, of_f = groups(apart, [commit(1, "a", "f")])
    assert of_a.features[:, 1].tolist() == [0, 0, 0]
    assert of_f.features[:, 1].tolist() == [0, 0]


def test_a_graph_that_says_nothing_teaches_nothing() -> None:
    """Files drawn at random: no feature knows them. By the published distance every pair would be in order."""
    rng = np.random.default_rng(5)
    names = [f"{at:03}" for at in range(200)]
    links = edges(*((names[one], names[other]) for one, other in rng.integers(0, 200, (500, 2)) if one != other))
    history = [commit(day, *rng.choice(names, 3, replace=False)) for day in range(200)]
    made = groups(indexed(names, links), history)
    only_graph = fusion.FusionWeights((0, 1, 0, 0))
    assert len(made) == 600
    assert fusion.pairs_right(only_graph, made) == pytest.approx(0.5, abs=0.06)
    leaking = groups(indexed(names, links), history, leave_one_out=False)
    assert all(one.features[0, 1] == 1 for one in leaking)
    assert all((one.features[1:, 1] <= 0.5).all() for one in leaking)
    assert fusion.pairs_right(only_graph, leaking) == 1


def test_commits_that_do_not_count() -> None:
    many = [f"m{at:02}" for at in range(31)]
    history = [
        commit(1, "a", "b", merge=True),
        commit(2, "a"),
        commit(3, "a", "gone"),
        commit(4, "a", "t"),
        commit(5, *many),
    ]
    assert groups(indexed([*LINE, "t", *many], IN_LINE, tests=("t",)), history) == []


def test_tests_and_changed_files_are_no_negatives() -> None:
    links = edges(("a", "b"), ("t", "a"), ("a", "c"))
    of_a, _ = groups(indexed(["a", "b", "c", "t", "z"], links, tests=("t",)), [commit(1, "a", "b")])
    assert len(of_a.features) == 2  # a and c


def test_at_most_five_hundred_commits() -> None:
    history = [commit(day / 10, "a", "b") for day in range(600)]
    assert {one.commit for one in groups(indexed(LINE, IN_LINE), history)} == set(range(500))


def test_the_same_seed_draws_the_same() -> None:
    hub = edges(*(("a", name) for name in "bcdefghij"))
    history = [commit(day, "a", "b") for day in range(20)]

    def drawn(seed: int) -> list[bytes]:
        return [one.features.tobytes() for one in groups(indexed([*"abcdefghij"], hub), history, seed=seed)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


commits = st.lists(
    st.tuples(st.integers(0, 200), st.sets(st.sampled_from([*LINE, "x"]), max_size=4), st.booleans()), max_size=40
).map(
    lambda rows: [
        commit(*(days, *changed), merge=merge) for days, changed, merge in sorted(rows, key=lambda r: r[0])
    ]
)


def test_the_commit_itself_is_not_its_own_past() -> None:
    def coupled(*older: PastCommit) -> float:
        twice = (commit(1, "a", "b"), commit(2, "a", "b"))
        return couplings_before([*twice, *older], 0, "ab", {0, 1}).get((1, 0), 0)

    assert coupled() == 0
    assert coupled(commit(3, "a", "b")) == 1
    assert coupled(commit(92, "a", "b")) == 0  # more than 90 days before


@settings(max_examples=30)
@given(commits, st.lists(st.sets(st.sampled_from(LINE), max_size=4), max_size=5))
def test_what_comes_later_changes_no_example(history: list[PastCommit], later: list[set[str]]) -> None:
    newer = [
        PastCommit(f"n{at}", NOW + at * DAY, "", "", tuple(sorted(changed))) for at, changed in enumerate(later)
    ]
    newer.reverse()
    star = indexed([*LINE, *"ghijkl"], edges(*((one, other) for one in "ab" for other in "cdefghijkl")))
    then, now = groups(star, history), groups(star, newer + history)
    kept = [one for one in now if one.commit >= len(newer)]
    assert [one.features.tobytes() for one in kept] == [one.features.tobytes() for one in then]
    assert [one.commit - len(newer) for one in kept] == [one.commit for one in then]


@settings(max_examples=40)
@given(st.integers(2, 150), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_distances_are_those_of_networkx(files: int, links: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"{at:03}" for at in range(files)]
    made = [Edge(names[one], names[other], EdgeKind.CALL) for one, other in rng.integers(0, files, (links, 2))]
    graph = FileGraph.of(names, made)
    theirs = nx.Graph()
    theirs.add_nodes_from(range(files))
    theirs.add_edges_from(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    sources = rng.integers(0, files, 70).tolist()
    table = distances(graph, sources)
    for row, source in zip(table, sources, strict=True):
        lengths = nx.single_source_shortest_path_length(theirs, source)
        assert row.tolist() == [lengths.get(at, UNREACHED) for at in range(files)]
