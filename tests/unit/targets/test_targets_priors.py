"""Priors against the recursion as it is described, worked out step by step, and by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_targets.priors import STRENGTH, Beta, edge_priors
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.syntax_facts import Edge, EdgeKind

W = {"value": 0.7, "call": 0.7, "extends": 0.7, "barrel": 0.5, "dynamic": 0.4, "type": 0.3}


def commit(*changed: str, merge: bool = False) -> PastCommit:
    return PastCommit("0" * 40, 0, "s", "", changed, merge=merge)


def step_by_step(edge: Edge, newest_first: Sequence[PastCommit]) -> tuple[float, float]:
    """The definition, one commit after the other."""
    alpha, beta = STRENGTH * W[edge.kind], STRENGTH * (1 - W[edge.kind])
    for one in reversed(newest_first):
        if one.merge or not one.changed:
            continue
        alpha, beta = 0.995 * alpha, 0.995 * beta
        if edge.source in one.changed:
            alpha, beta = (alpha + 1, beta) if edge.target in one.changed else (alpha, beta + 1)
    return alpha, beta


def test_worked_example() -> None:
    """Oldest: both change. Then the target alone. Newest: the source alone. s·w = 2.8, s·(1 − w) = 1.2.
    α: 2.8·.995³ + 1·.995² = 2.7582101 + .990025; β: 1.2·.995³ + 1 = 1.1820900 + 1"""
    past = [commit("a"), commit("b"), commit("a", "b", "z")]
    (found,) = edge_priors([Edge("a", "b", EdgeKind.VALUE)], past)
    assert found.alpha == pytest.approx(3.7482351, abs=1e-6)
    assert found.beta == pytest.approx(2.1820900, abs=1e-6)
    assert found.mean == pytest.approx(3.7482351 / 5.9303251, abs=1e-7)


def test_without_history_the_mean_is_that_of_the_kind() -> None:
    edges = [Edge("a", "b", kind) for kind in EdgeKind]
    assert {
        edge.kind: beta.mean for edge, beta in zip(edges, edge_priors(edges, ()), strict=True)
    } == pytest.approx(W)


def test_commits_without_known_changes_do_not_decay() -> None:
    past = [commit("a", "b")]
    edge = [Edge("a", "b", EdgeKind.TYPE)]
    assert edge_priors(edge, [commit(merge=True), commit(), *past]) == edge_priors(edge, past)


def test_half_is_gone_after_138_commits() -> None:
    (found,) = edge_priors([Edge("a", "b", EdgeKind.VALUE)], [commit("z")] * 138)
    assert found.alpha == pytest.approx(STRENGTH * 0.7 / 2, rel=0.002)
    assert found.mean == pytest.approx(0.7)


NAMES = "abcd"
EDGES = st.builds(
    Edge, source=st.sampled_from(NAMES), target=st.sampled_from(NAMES), kind=st.sampled_from(list(EdgeKind))
)
HISTORIES = st.lists(
    st.builds(
        lambda changed, merge: commit(*([] if merge else sorted(changed)), merge=merge),
        st.sets(st.sampled_from("abcdz")),
        st.booleans(),
    ),
    max_size=15,
)


@given(st.lists(EDGES, max_size=6), HISTORIES)
def test_as_described(edges: list[Edge], past: list[PastCommit]) -> None:
    for edge, found in zip(edges, edge_priors(edges, past), strict=True):
        assert (found.alpha, found.beta) == pytest.approx(step_by_step(edge, past))


@given(st.lists(EDGES, max_size=6), HISTORIES)
def test_order_of_edges_does_not_matter(edges: list[Edge], past: list[PastCommit]) -> None:
    forth = dict(zip(edges, edge_priors(edges, past), strict=True))
    back: dict[Edge, Beta] = dict(zip(reversed(edges), edge_priors(edges[::-1], past), strict=True))
    assert forth == back
