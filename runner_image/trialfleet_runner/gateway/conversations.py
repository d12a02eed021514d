"""Which requests are turns: those of the agent's loop and of the sub-agents that its model starts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from trialfleet_runner.gateway.canary import strings

_SHORTEST_QUOTE = 8  # characters of a call's input; shorter ones (a path, a flag) stand in any text
_REMEMBERED = 64  # inputs of earlier calls


@dataclass(frozen=True)
class Opening:
    """What tells conversations apart: the user's text before the model first speaks, and the names of the tools
    that the request offers."""

    text: str
    tools: frozenset[str]


@dataclass
class Conversations:
    """The rule, for requests to the main model. Not thread-safe.

    While no request has offered tools, every one is a turn: an agent may work without. The first tools show that
    earlier requests were probes or titles. From then on a turn is a request

    - that offers at least those first tools: the agent's loop, in any conversation (a compacted one is new);
    - or that continues a loop with fewer tools while calls of its last answer wait for their results;
    - or of a sub-agent: the conversation's opening quotes an input of a call that waits for its result, or ends
      with one of an earlier call: a call that starts a sub-agent in the background has its result at once.

    Everything else is a side request: titles and summaries offer no tools, helpers that the agent's program
    starts by itself (Qwen Code's, after the last answer) offer fewer and nobody called them.
    """

    _first: frozenset[str] | None = None
    _waiting: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # by opening text
    _called: deque[str] = field(
        default_factory=lambda: deque[str](maxlen=_REMEMBERED)
    )  # inputs of calls with results
    _spawned: set[Opening] = field(default_factory=set[Opening])

    def first_tools(self, opening: Opening) -> bool:
        """Whether this request is the first that offers tools."""
        if self._first is not None or not opening.tools:
            return False
        self._first = opening.tools
        return True

    def has_turn(self, opening: Opening) -> bool:
        """Whether the request is a turn once it is answered."""
        if self._first is None or opening.tools >= self._first:
            return True
        if not opening.tools:
            return False
        if opening in self._spawned or opening.text in self._waiting:
            return True
        if self._spawns(opening.text):
            self._spawned.add(opening)
            return True
        return False

    def _spawns(self, text: str) -> bool:
        if any(quote in text for quotes in self._waiting.values() for quote in quotes):
            return True
        lines = f"\n{text.rstrip()}"
        return any(lines.endswith(f"\n{quote}") for quote in self._called)

    def answered(self, opening: Opening, calls: Iterable[object]) -> None:
        """A turn's answer, with the inputs of the tools that it calls."""
        inputs = list(calls)
        self._called.extend(self._waiting.pop(opening.text, ()))
        if inputs:
            texts = (text.strip() for given in inputs for text in strings(given))
            self._waiting[opening.text] = tuple(text for text in texts if len(text) >= _SHORTEST_QUOTE)
