"""Where an attempt's time went: wall clock and core seconds, per step."""

from __future__ import annotations

import json
import resource
import time
from dataclasses import dataclass, field


def core_s() -> float:
    """CPU time of this process and of its children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


@dataclass
class Clock:
    """Laps of one process. `given_core_s`: core seconds that belong to agent or tests, not to the harness."""

    began: float = field(default_factory=time.monotonic)
    laps: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    _wall: float = field(default_factory=time.monotonic)
    _core: float = 0.0  # the interpreter's start counts as the first lap's
    _given: float = 0.0

    def lap(self, name: str, given_core_s: float | None = 0.0) -> None:
        """End the step `name`: everything since the last lap."""
        wall, core, given = time.monotonic(), core_s(), given_core_s or 0.0
        self.laps[name] = (wall - self._wall, max(core - self._core - given, 0.0))
        self._wall, self._core, self._given = wall, core, self._given + given

    def wall_s(self) -> float:
        """Since the clock was made."""
        return time.monotonic() - self.began

    def own_core_s(self) -> float:
        """The harness's own core seconds so far."""
        return max(core_s() - self._given, 0.0)

    def json(self) -> str:
        """Step -> {wall_s, core_s}; `core_s` without what agent and tests used."""
        steps = {
            name: {"wall_s": round(wall, 4), "core_s": round(core, 4)} for name, (wall, core) in self.laps.items()
        }
        return json.dumps(steps) + "\n"
