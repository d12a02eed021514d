"""Which finished pods go, and which stay for a look."""

from __future__ import annotations

from trialfleet_controller.backends.kube.pod_cleaner import SETTLE_S, FinishedPod, FinishedPods
from trialfleet_controller.backends.protocol import AttemptId


def left(n: int) -> FinishedPod:
    return FinishedPod(AttemptId("a", n), f"t-a-a{n}", f"u{n}")


def test_a_pod_goes_when_its_end_is_in_the_ledger_or_after_a_while() -> None:
    leftovers = FinishedPods(keep_failed=0)
    for n in (1, 2):
        leftovers.add(left(n), now=100, failed=n == 1)
    assert leftovers.due(99 + SETTLE_S) == [], "a slow store is no reason to forget what a pod said"
    leftovers.settled(left(2).attempt)
    assert leftovers.due(101) == [left(2)]
    assert leftovers.due(100 + SETTLE_S) == [left(1)]
    assert leftovers.due(1e9) == []


def test_the_newest_failed_stay_and_the_others_wait_for_the_ledger_all_the_same() -> None:
    leftovers = FinishedPods(keep_failed=2)
    for n in range(1, 6):
        leftovers.add(left(n), now=n, failed=True)
    assert leftovers.due(10) == []
    for n in range(1, 6):
        leftovers.settled(left(n).attempt)
    assert leftovers.due(10) == [left(1), left(2), left(3)]
    assert leftovers.rest() == []


def test_the_only_place_that_knows_an_end_outlives_its_controller() -> None:
    leftovers = FinishedPods(keep_failed=0)
    for n in (1, 2):
        leftovers.add(left(n), now=0, failed=False)
    leftovers.settled(left(2).attempt)
    assert leftovers.rest() == [left(2)]
    assert leftovers.rest() == []


def test_what_is_reported_twice_waits_no_longer() -> None:
    leftovers = FinishedPods(keep_failed=1)
    leftovers.add(left(1), now=0, failed=True)
    leftovers.add(left(1), now=100, failed=True)
    assert leftovers.due(SETTLE_S) == []
    leftovers.add(left(1), now=SETTLE_S, failed=True)
    leftovers.add(left(2), now=SETTLE_S, failed=False)
    leftovers.settled(left(1).attempt)
    leftovers.settled(left(2).attempt)
    assert leftovers.due(SETTLE_S) == [left(2)], "the one that is kept is kept once"


def test_what_could_not_be_deleted_is_tried_again() -> None:
    leftovers = FinishedPods(keep_failed=0)
    leftovers.again(left(1), 5)
    assert leftovers.due(4) == []
    assert leftovers.due(5) == [left(1)]
