"""Limits how fast attempts start: a token bucket as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`per_s`: starts a second; None: no limit. `burst`: how many may start together after a pause. `at`: when
    `tokens` were counted, on the caller's clock.

    >>> limit = RateLimit.of(2, burst=1, now=0).spent(0)
    >>> limit.wait_s(0), limit.wait_s(0.5)
    (0.5, 0.0)
    """

    per_s: float | None
    burst: int
    tokens: float
    at: float

    @staticmethod
    def of(per_s: float | None, *, burst: int, now: float) -> RateLimit:
        return RateLimit(per_s, burst, burst, now)

    def wait_s(self, now: float) -> float:
        """How long to wait for the next start; 0: none."""
        return 0.0 if self.per_s is None else max(0.0, (1 - self._tokens(now)) / self.per_s)

    def spent(self, now: float) -> RateLimit:
        """After a start."""
        return self if self.per_s is None else replace(self, tokens=self._tokens(now) - 1, at=now)

    def changed(self, per_s: float | None, *, burst: int, now: float) -> RateLimit:
        """With another limit from now on; saved tokens stay, up to the new burst."""
        return RateLimit(per_s, burst, min(self._tokens(now), burst), now)

    def _tokens(self, now: float) -> float:
        return min(float(self.burst), self.tokens + (now - self.at) * (self.per_s or 0.0))
