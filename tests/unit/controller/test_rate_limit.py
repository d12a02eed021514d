"""Attempts never start faster than their limit allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.dispatch.rate_limit import RateLimit


@given(
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=60),
    rate=st.floats(0.5, 50),
    burst=st.integers(1, 20),
)
def test_no_window_holds_more_than_the_burst_and_the_rate(gaps: list[float], rate: float, burst: int) -> None:
    now, starts = 100.0, list[float]()
    limit = RateLimit.of(rate, burst=burst, now=now)
    for gap in gaps:
        now += gap
        now += limit.wait_s(now)
        limit = limit.spent(now)
        starts.append(now)
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            assert last - first + 1 <= burst + rate * (starts[last] - starts[first]) + 1e-6
