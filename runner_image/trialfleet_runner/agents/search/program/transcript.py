"""What the agent did, one JSON object per line, flushed at once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import IO, Literal

Kind = Literal["message", "read", "edit", "run", "hook"]
_CAP = 600


class BudgetSpent(Exception):
    """No turn is left."""


class Transcript:
    """Counts turns: a file read and a test run are one turn each; edits, messages and hooks are free.

    Line: {"turn", "at_s", "kind", "path", "detail"}; the last also has "stop" and "turns".
    """

    def __init__(self, out: IO[str], max_turns: int) -> None:
        self._out, self._max = out, max_turns
        self._began = time.monotonic()
        self.turn = 0

    def spend(self, kind: Literal["read", "run"], path: str | None, detail: str) -> None:
        """Take a turn for something that is about to happen. Raises `BudgetSpent`."""
        if self.turn >= self._max:
            raise BudgetSpent
        self.turn += 1
        self.say(kind, path, detail)

    def say(self, kind: Kind, path: str | None, detail: str) -> None:
        self._line(
            {"turn": max(self.turn, 1), "at_s": self._at(), "kind": kind, "path": path, "detail": detail[:_CAP]}
        )

    def end(self, stop: Literal["finished", "max_turns"], detail: str, answer: str | None = None) -> None:
        """The last line; `answer` is not cut."""
        self._line(
            {
                "turn": max(self.turn, 1),
                "at_s": self._at(),
                "kind": "message",
                "path": None,
                "detail": detail[:_CAP],
            }
            | {"stop": stop, "turns": self.turn}
            | ({} if answer is None else {"answer": answer})
        )

    @property
    def left(self) -> int:
        return self._max - self.turn

    def _at(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def _line(self, value: Mapping[str, object]) -> None:
        self._out.write(json.dumps(value, ensure_ascii=True) + "\n")
        self._out.flush()
