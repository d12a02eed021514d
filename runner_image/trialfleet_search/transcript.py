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
    """Counts turns: a file read and a test run are one turn each; edits, messages and hooks are free.

    Line: {"turn", "at_s", "kind", "path", "detail"}; the last also has "stop" and "turns".
    """

    def __init__(self, out: IO[str], max_turns: int) -> None:
        self._out, self._max = out, max_turns
        self._began = time.monotonic()
        self.turn = 0

    def use_turn(self, kind: Literal["read", "run"], path: str | None, detail: str) -> None:
        """Use a turn for an action that is about to start. Raises `BudgetSpent`."""
        if self.turn >= self._max:
            raise BudgetSpent
        self.turn += 1
        self.record(kind, path, detail)

    def record(self, kind: Kind, path: str | None, detail: str) -> None:
        self._line(kind, path, detail)

    def end(self, stop: Literal["finished", "max_turns"], detail: str, answer: str | None = None) -> None:
        """The last line; `answer` is not truncated."""
        said = {} if answer is None else {"answer": answer}
        self._line("message", None, detail, stop=stop, turns=self.turn, **said)

    @property
    def left(self) -> int:
        return self._max - self.turn

    def _line(self, kind: Kind, path: str | None, detail: str, **more: object) -> None:
        at_s = round(time.monotonic() - self._began, 3)
        value = {
            "turn": max(self.turn, 1),
            "at_s": at_s,
            "kind": kind,
            "path": path,
            "detail": detail[:_CAP],
            **more,
        }
        self._out.write(json.dumps(value, ensure_ascii=True) + "\n")
        self._out.flush()
