"""How long to wait after a failure: full jitter, so that many callers do not come back together."""

from __future__ import annotations

import random

BASE_S, CAP_S = 0.5, 30.0


class Backoff:
    """Doubles from 0.5 s to 30 s. Source: Brooker, Exponential Backoff and Jitter, 2015 (full jitter)."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()  # noqa: S311 - no secret depends on it
        self._failures = 0

    def again(self, *, at_least_s: float = 0.0) -> float:
        """Seconds to wait now; `at_least_s` is what the server asked for."""
        ceiling = min(CAP_S, BASE_S * 2 ** min(self._failures, 10))
        self._failures += 1
        return max(at_least_s, self._rng.uniform(BASE_S / 10, ceiling))

    def worked(self) -> None:
        self._failures = 0
