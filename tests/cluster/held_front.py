"""A front of the store, in a pod, at which each trial's first attempt is held in a phase of its own.

    python -m tests.cluster.held_front PORT UPSTREAM HOLD…

HOLD is `phase.until`; trials take them in the order in which their runners come for their grants. Agents and tests
ask for `/phase/agent` and `/phase/scoring`, so that they are held in their turn. Control: `/held`, `/go/TRIAL`.
Standard library only: the image's interpreter runs it.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import ThreadingHTTPServer
from typing import NamedTuple

from tests.cluster.front import Front, Handler

_GRANTS = re.compile(r"/grants/([^/]+)/(\d+)[^/]*\.json$")
_WRITTEN = re.compile(r"/attempts/([^/]+)/(\d+)/(start|patch|bundle|end)\.")


class Until(StrEnum):
    """NEVER: the request is not carried out. UNANSWERED: it is, and the answer never comes. TOLD: it is carried
    out and answered once somebody lets it go."""

    NEVER = "never"
    UNANSWERED = "unanswered"
    TOLD = "told"


class Hold(NamedTuple):
    """`phase`: grants, start, setup, agent, patch, scoring, bundle or end."""

    phase: str
    until: Until

    def __str__(self) -> str:
        return f"{self.phase}.{self.until}"

    @staticmethod
    def parse(text: str) -> Hold:
        """
        >>> Hold.parse("end.told")
        Hold(phase='end', until=<Until.TOLD: 'told'>)
        """
        phase, _, until = text.partition(".")
        return Hold(phase, Until(until))


class At(NamedTuple):
    """An attempt has come to a phase."""

    trial: str
    attempt: int
    phase: str


@dataclass
class Gate:
    """Who is held, and who was where. `holds`: those that no trial has taken."""

    holds: list[Hold]
    seen: list[At] = field(default_factory=list[At])
    _holds: dict[str, Hold] = field(default_factory=dict[str, Hold])  # by trial
    _guests: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])  # by address of a pod
    _free: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def come(self, address: str, method: str, path: str) -> tuple[At, Until] | None:
        """What this request says of its attempt's phase; None: it goes on."""
        with self._lock:
            at = self._at(address, method, path)
            if at is None:
                return None
            self.seen.append(at)
            hold = self._holds.get(at.trial)
            return (at, hold.until) if hold is not None and (at.attempt, at.phase) == (1, hold.phase) else None

    def wait(self, at: At) -> None:
        """Until `let_go`."""
        self._free[at.trial].wait()

    def let_go(self, trial: str) -> None:
        self._free[trial].set()

    def report(self) -> str:
        """`held`: trials by their holds; `seen`: everything."""
        with self._lock:
            held = {
                str(hold): trial for trial, hold in self._holds.items() if At(trial, 1, hold.phase) in self.seen
            }
            return json.dumps({"held": held, "seen": self.seen})

    def _at(self, address: str, method: str, path: str) -> At | None:
        if method == "GET" and (found := _GRANTS.search(path)):
            trial, attempt = found[1], int(found[2])
            self._guests[address] = trial, attempt
            if trial not in self._holds and self.holds:
                self._holds[trial] = self.holds.pop(0)
            return At(trial, attempt, "grants")
        if method == "PUT" and (found := _WRITTEN.search(path)):
            return At(found[1], int(found[2]), found[3])
        if address not in self._guests:
            return None
        if path.startswith("/phase/"):
            return At(*self._guests[address], path.removeprefix("/phase/"))
        return At(*self._guests[address], "setup") if method == "GET" and "/objects/" in path else None


class _Held(Handler):
    gate: Gate
    _last: At | None = None  # held there once the request is carried out

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/held":
            return self.answer(200, self.gate.report().encode())
        if path.startswith("/go/"):
            self.gate.let_go(path.removeprefix("/go/"))
            return self.answer(200, b"")
        self._last, came = None, self.gate.come(self.client_address[0], self.command, path)
        if came is not None:
            at, until = came
            if until is Until.UNANSWERED:
                self._last = at
            else:
                self.gate.wait(at)
        if path.startswith("/phase/"):
            return self.answer(200, b"")
        return super().do_GET()

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        if self._last is not None:
            self.gate.wait(self._last)
        super().answer(status, body, headers)


def serve(port: int, upstream: str, holds: Sequence[str]) -> None:
    """Until somebody ends the process."""
    made, kept = Front(upstream), Gate([Hold.parse(hold) for hold in holds])

    class Here(_Held):
        front = made
        gate = kept

    with ThreadingHTTPServer(("", port), Here) as server:
        server.daemon_threads = True
        server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
