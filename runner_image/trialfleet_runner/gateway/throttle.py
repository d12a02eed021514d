"""How long the provider kept the agent waiting. Every instant is passed in; nothing here reads a clock."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Throttle:
    """Time from the start of a request that the provider failed until the start of the next that succeeds.

    A chain is one API path and model: what an agent retries. A success of the main model closes every chain: an
    agent that goes on is not waiting for a title. Overlapping chains count once (the agent's wall clock is one).
    A chain that nothing closes stops counting after `patience_s`: a provider that is down for good must not give
    an agent endless time.
    """

    patience_s: float
    _open: dict[str, float] = field(default_factory=dict[str, float])
    _closed: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def failed(self, chain: str, started: float) -> None:
        self._open.setdefault(chain, started)

    def succeeded(self, chain: str, started: float, *, main: bool = False) -> None:
        """`started`: of the request that succeeded. One that began before the failure proves nothing."""
        for name in list(self._open) if main else [chain]:
            since = self._open.get(name)
            if since is not None and started >= since:
                del self._open[name]
                self._closed.append((since, min(started, since + self.patience_s)))

    def is_open(self, chain: str) -> bool:
        return chain in self._open

    def seconds(self, now: float) -> float:
        """Length of the union of all chains' intervals up to `now`.

        >>> throttle = Throttle(patience_s=100)
        >>> throttle.failed("a", 10); throttle.failed("b", 12); throttle.succeeded("a", 15)
        >>> throttle.seconds(20)
        10
        """
        running = [(since, min(now, since + self.patience_s)) for since in self._open.values()]
        total: float = 0
        reached = float("-inf")
        for start, end in sorted(self._closed + running):
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return total
