"""Coupling against a history small enough to be worked out by hand, and what must hold for every history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_targets.coupling import Coupling, couplings
from trialfleet_targets.snapshot import PastCommit

DAY = 86_400
NOW = 1_700_000_000


def commit(number: int, days: float, *changed: str) -> PastCommit:
    return PastCommit(f"{number:040x}", NOW - int(days * DAY), "Fix it", "", tuple(sorted(changed)))


def test_worked_example() -> None:
    """a and b: together on days 0, 10 and 90, the last day that counts;
    a alone once: 3 of 4 commits. c once with them, which is too seldom."""
    past = [
        commit(1, 0, "a", "b"),
        commit(2, 10, "a", "b", "c"),
        commit(3, 90, "a", "b"),
        commit(4, 5, "a"),
        commit(5, 90.1, "a", "b"),  # a day too old
        commit(6, 1, "a", "b", *(f"f{n}" for n in range(29))),  # 31 files
    ]
    assert couplings(past, now=NOW) == (Coupling("a", "b", 3, 0.75),)


@pytest.mark.parametrize(("several", "times", "coupled"), [(20, 2, True), (21, 2, False), (21, 3, True)])
def test_two_common_commits_are_enough_in_a_young_history_only(several: int, times: int, coupled: bool) -> None:
    past = [commit(n, 1, "a", "b") for n in range(times)]
    past += [commit(100 + n, 1, f"x{n}", f"y{n}") for n in range(several - times)]
    assert bool(couplings(past, now=NOW)) is coupled


@pytest.mark.parametrize(("alone", "coupled"), [(7, True), (8, False)])
def test_least_jaccard(alone: int, coupled: bool) -> None:
    """3 of 10 is .3; 3 of 11 is less."""
    past = [commit(n, 1, "a", "b") for n in range(3)] + [commit(50 + n, 1, "a") for n in range(alone)]
    assert bool(couplings(past, now=NOW)) is coupled


def test_files_that_are_gone_count_for_the_size_of_a_commit_alone() -> None:
    past = [commit(n, 0, "a", "b", "gone") for n in range(3)]
    assert couplings(past, now=NOW, paths={"a", "b"}) == (Coupling("a", "b", 3, 1.0),)


HISTORIES = st.lists(
    st.builds(
        lambda number, days, changed: commit(number, days, *changed),
        st.integers(0, 10**6),
        st.floats(0, 120),
        st.sets(st.sampled_from("abcdef"), min_size=1),
    ),
    max_size=12,
)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_order_does_not_matter(past: list[PastCommit], random: object) -> None:
    mixed = list(past)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert couplings(mixed, now=NOW) == couplings(past, now=NOW)


@given(HISTORIES)
def test_what_holds_for_every_pair(past: list[PastCommit]) -> None:
    for one in couplings(past, now=NOW):
        assert one.first < one.second
        assert 0.3 <= one.jaccard <= 1
        assert 2 <= one.together <= len(past)


@given(HISTORIES)
def test_commits_outside_the_window_change_nothing(past: list[PastCommit]) -> None:
    older = [commit(10**7 + n, 91 + n, "a", "b") for n in range(5)]
    assert couplings([*past, *older], now=NOW) == couplings(past, now=NOW)
