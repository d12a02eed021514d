"""How long a caller waits after a failure, and after a server has asked it to wait."""

from __future__ import annotations

import pytest

from trialfleet_controller.backends.kube.errors import BASE_S, CAP_S, Backoff, Throttled, error_of


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
