"""How fast attempts may start: a token bucket as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Pace:
    """`per_s`: starts a second, None: no limit; `burst`: how many may come together after a pause. `at`: when
    `tokens` were counted, on the caller's clock.

    >>> pace = Pace.of(2, burst=1, now=0).spent(0)
    >>> pace.wait_s(0), pace.wait_s(0.5)
    (0.5, 0.0)
    """

    per_s: float | None
    burst: int
    tokens: float
    at: float

    @staticmethod
    def of(per_s: float | None, *, burst: int, now: float) -> Pace:
        return Pace(per_s, burst, burst, now)

    def wait_s(self, now: float) -> float:
        """How long until the next start; 0: at once."""
        return 0.0 if self.per_s is None else max(0.0, (1 - self._tokens(now)) / self.per_s)

    def spent(self, now: float) -> Pace:
        """After a start."""
        return self if self.per_s is None else replace(self, tokens=self._tokens(now) - 1, at=now)

    def changed(self, per_s: float | None, *, burst: int, now: float) -> Pace:
        """Another limit from now on; what was saved up stays, as far as the new burst goes."""
        return Pace(per_s, burst, min(self._tokens(now), burst), now)

    def _tokens(self, now: float) -> float:
        return min(float(self.burst), self.tokens + (now - self.at) * (self.per_s or 0.0))
