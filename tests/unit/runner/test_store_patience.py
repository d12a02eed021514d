"""Waiting is bounded, jittered and pure."""

from __future__ import annotations

import pytest

from trialfleet_runner.store.patience import Patience, is_transient


def run(patience: Patience, *, each_s: float = 0.0) -> tuple[list[float], list[float]]:
    """(seconds left at each try, pauses) of tries that take `each_s`, with the longest pauses."""
    now, pauses = [0.0], list[float]()

    def sleep(pause: float) -> None:
        pauses.append(pause)
        now[0] += pause

    left = []
    for seconds in patience.tries(clock=lambda: now[0], sleep=sleep, uniform=lambda _, most: most):
        left.append(seconds)
        now[0] += each_s
    return left, pauses


def test_pauses_double_up_to_the_longest() -> None:
    _, pauses = run(Patience(total_s=20, first_s=1, longest_s=4))
    assert pauses == [1, 2, 4, 4, 4, 4, 4]


def test_it_ends_when_the_time_is_spent() -> None:
    left, _ = run(Patience(total_s=10, first_s=1, longest_s=1), each_s=3)
    assert left == [10, 6, 2]


def test_there_is_always_a_first_try() -> None:
    left, _ = run(Patience(total_s=0.001, first_s=1, longest_s=1), each_s=3)
    assert left == [0.001]


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (500, "", True),
        (503, "SlowDown", True),
        (429, "", True),
        (408, "", True),
        (400, "RequestTimeout", True),
        (409, "ConditionalRequestConflict", True),
        (409, "", True),
        (409, "BucketAlreadyExists", False),
        (400, "KeyTooLongError", False),
        (403, "AccessDenied", False),
        (404, "NoSuchKey", False),
        (412, "PreconditionFailed", False),
    ],
)
def test_what_is_worth_another_try(status: int, code: str, expected: bool) -> None:
    assert is_transient(status, code) is expected
