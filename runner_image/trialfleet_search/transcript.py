"""The agent's transcript: one JSON object per line, flushed immediately."""

from __future__ import annotations

import json
import time
from typing import IO, Literal

Kind = Literal["message", "read", "edit", "run", "hook"]
_CAP = 600


class BudgetSpent(Exception):
    """No turn is left."""


class Transcript:
    """Counts turns: a file read and a test run are one turn each, an edit is part of the turn of its tests;
    messages and hooks are free. A step is written before it acts: what changes is of the last one.

    Line: {"turn", "at_s", "kind", "path", "detail"}; the last also has "stop" and "turns".
    """

    def __init__(self, out: IO[str], max_turns: int) -> None:
        self._out, self._max = out, max_turns
        self._began = time.monotonic()
        self.turn = 0

    def use_turn(self, kind: Literal["read", "run"], path: str | None, detail: str) -> None:
        """Use a turn for an action that is about to start. Raises `BudgetSpent`."""
        self.begin_turn()
        self.record(kind, path, detail)

    def begin_turn(self) -> None:
        """Use a turn for what is recorded next. Raises `BudgetSpent`."""
        if self.turn >= self._max:
            raise BudgetSpent
        self.turn += 1

    def record(self, kind: Kind, path: str | None, detail: str, **more: object) -> None:
        """Write one line; `more` is not truncated."""
        at_s = round(time.monotonic() - self._began, 3)
        value = {"turn": max(self.turn, 1), "at_s": at_s, "kind": kind, "path": path, "detail": detail[:_CAP]}
        self._out.write(json.dumps({**value, **more}) + "\n")
        self._out.flush()

    def end(self, stop: Literal["finished", "max_turns"], detail: str, **answer: str) -> None:
        """Write the last line."""
        self.record("message", None, detail, stop=stop, turns=self.turn, **answer)

    @property
    def left(self) -> int:
        return self._max - self.turn
