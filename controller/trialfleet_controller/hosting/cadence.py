"""How often supervisor, dispatchers and command line talk: seldom while attempts run and nothing changes, for a
message costs its two sides some milliseconds of a core, however short it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

STILL = 4.0


@dataclass(frozen=True, slots=True)
class Cadence:
    """Seconds. `wait_s`: until the next message: `busy_s` after news, else more each time, to `STILL` times that.

    >>> cadence = Cadence.of(0.5)
    >>> cadence.after(news=False).wait_s, cadence.after(news=False).after(news=False).after(news=False).wait_s
    (1.0, 2.0)
    >>> cadence.after(news=False).after(news=True).wait_s
    0.5
    """

    busy_s: float
    wait_s: float

    @staticmethod
    def of(busy_s: float) -> Cadence:
        return Cadence(busy_s, busy_s)

    def after(self, *, news: bool) -> Cadence:
        return replace(self, wait_s=self.busy_s if news else min(STILL * self.busy_s, 2 * self.wait_s))
