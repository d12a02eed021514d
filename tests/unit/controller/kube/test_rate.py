"""Creation never runs ahead of its rate, nor of a server that asked for patience."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.kube.backoff import BASE_S, CAP_S, Backoff
from trialfleet_controller.kube.errors import Throttled, error_of
from trialfleet_controller.kube.rate import TokenBucket


@given(
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=60),
    rate=st.floats(0.5, 50),
    burst=st.integers(1, 20),
)
def test_no_window_holds_more_than_the_burst_and_the_rate(gaps: list[float], rate: float, burst: int) -> None:
    bucket, now, goes = TokenBucket(rate=rate, burst=burst), 100.0, list[float]()
    for gap in gaps:
        now += gap
        goes.append(now + bucket.reserve(now=now))
    for first in range(len(goes)):
        for last in range(first, len(goes)):
            assert last - first + 1 <= burst + rate * (goes[last] - goes[first]) + 1e-6


def test_a_closed_bucket_lets_nobody_through() -> None:
    bucket = TokenBucket(rate=10, burst=5)
    bucket.close_for(3, now=10)
    assert bucket.reserve(now=11) == pytest.approx(2)
    assert bucket.reserve(now=14) == 0


def test_backoff_grows_to_its_cap_with_full_jitter_and_starts_again() -> None:
    backoff = Backoff()
    waits = [backoff.again() for _ in range(200)]
    assert all(0 < wait <= CAP_S for wait in waits)
    assert max(waits) > CAP_S / 2
    assert len({round(wait, 3) for wait in waits}) > 100
    backoff.worked()
    assert backoff.again() <= BASE_S
    assert backoff.again(at_least_s=7) >= 7


@pytest.mark.parametrize(("status", "header", "seconds"), [(429, "3", 3), (503, "2", 2), (429, None, 1)])
def test_retry_after_is_heard(status: int, header: str | None, seconds: float) -> None:
    error = error_of(status, {} if header is None else {"Retry-After": header}, b"{}")
    assert isinstance(error, Throttled)
    assert error.retry_after_s == seconds
