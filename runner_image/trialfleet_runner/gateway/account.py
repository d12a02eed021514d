"""What a trial may spend and has spent. A request is admitted only if its worst case still fits."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trialfleet_runner.contract import Stop
from trialfleet_runner.gateway.prices import Price, price_of
from trialfleet_runner.gateway.usage import Usage

_TOKENS_PER_BYTE = 1 / 3  # of a request's JSON, until an answer has shown better; text has about 1/4
_MARGIN = 1.1
_UNSTATED_CAP = 32_768  # output tokens of a request that states no limit, where a budget needs one
_USEFUL_OUTPUT = 256  # a request cut below this is refused instead


@dataclass(frozen=True)
class Budget:
    """Limits of one trial; None: no limit. `max_tokens` counts every kind, cache reads too.

    Turns end at exactly `max_turns`. Money and tokens are hard: before a request is forwarded its worst case
    (all of it written to the cache, all of its allowed output) is set aside; where that does not fit, its
    output limit is lowered, and where that is not possible it is refused.
    """

    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True)
class Asked:
    """A request, as far as the budget cares. `output_cap`: None when the request states none."""

    model: str
    main: bool  # asks the main model
    tools: bool  # carries tools
    bytes: int
    output_cap: int | None


@dataclass(frozen=True)
class Admitted:
    """Go ahead, with this output limit (None: as the request says). Must be settled exactly once."""

    asked: Asked
    turn: bool
    output_cap: int | None
    tokens: int
    usd: float


@dataclass(frozen=True)
class Refused:
    """No: the budget of that kind is spent, or the request cannot be held to it."""

    kind: Literal["max_turns", "cost", "unpriced", "closed"]
    message: str

    @property
    def stop(self) -> Stop | None:
        return {"max_turns": Stop.MAX_TURNS, "cost": Stop.COST}.get(self.kind)


_CLOSED = Refused("closed", "the attempt is over")


@dataclass
class _Spent:
    usage: Usage = field(default_factory=Usage)
    estimated: int = 0  # output tokens of interrupted answers that no count came for
    usd: float = 0.0
    unpriced: bool = False
    turns: int = 0
    held_turns: int = 0
    tools_seen: bool = False
    held_tokens: int = 0
    held_usd: float = 0.0
    in_flight: int = 0


class Account:
    """Thread-safe. `admit` may wait while other requests hold what this one needs."""

    def __init__(self, budget: Budget, prices: Mapping[str, Price]) -> None:
        self._budget, self._prices = budget, prices
        self._spent = _Spent()
        self._tokens_per_byte = _TOKENS_PER_BYTE
        self._changed = threading.Condition()
        self._closed = False

    def close(self) -> None:
        """Nothing is admitted from now on; whoever waits is refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def admit(self, asked: Asked) -> Admitted | Refused:
        price = price_of(asked.model, self._prices)
        if self._budget.max_cost_usd is not None and price is None:
            return Refused("unpriced", f"the trial has a money budget and {asked.model!r} has no known price")
        with self._changed:
            self._tools(asked)
            while True:
                answer = _CLOSED if self._closed else self._judge(asked, price)
                if answer is not None:
                    return self._hold(answer)
                self._changed.wait()

    def _tools(self, asked: Asked) -> None:
        """With the first tools, earlier requests without any turn out to have been probes, not turns."""
        if asked.main and asked.tools and not self._spent.tools_seen:
            self._spent.tools_seen = True
            self._spent.turns = 0
            self._changed.notify_all()

    def _is_turn(self, asked: Asked) -> bool:
        return asked.main and (asked.tools or not self._spent.tools_seen)

    def _judge(self, asked: Asked, price: Price | None) -> Admitted | Refused | None:
        """None: wait until a request in flight is settled and its unused part is free again."""
        budget, spent = self._budget, self._spent
        limit = budget.max_turns
        turn = self._is_turn(asked)
        if limit is not None and turn and spent.turns + spent.held_turns >= limit:
            if spent.turns < limit:
                return None
            return Refused("max_turns", f"the trial's {limit} turns are spent")
        if budget.max_tokens is None and budget.max_cost_usd is None:
            return Admitted(asked, turn, None, 0, 0.0)
        sent = int(asked.bytes * self._tokens_per_byte * _MARGIN) + 1
        wanted = asked.output_cap or _UNSTATED_CAP
        room = min(self._room_in_tokens(sent), self._room_in_money(sent, price))
        if room < wanted and spent.in_flight:
            return None
        if room < min(wanted, _USEFUL_OUTPUT):
            return Refused("cost", "the trial's money or token budget is spent")
        cap = min(wanted, room)
        usd = 0.0 if price is None else price.usd(Usage(cache_write=sent, output=cap))
        return Admitted(asked, turn, None if cap == asked.output_cap else cap, sent + cap, usd)

    def _room_in_tokens(self, sent: int) -> int:
        """Output tokens that would still fit."""
        if self._budget.max_tokens is None:
            return 2**62
        used = self._spent.usage.total + self._spent.estimated + self._spent.held_tokens
        return self._budget.max_tokens - used - sent

    def _room_in_money(self, sent: int, price: Price | None) -> int:
        if self._budget.max_cost_usd is None or price is None:
            return 2**62
        left = self._budget.max_cost_usd - self._spent.usd - self._spent.held_usd
        left -= price.usd(Usage(cache_write=sent))
        return int(left / price.usd(Usage(output=1))) if price.output else 2**62

    def _hold(self, answer: Admitted | Refused) -> Admitted | Refused:
        if isinstance(answer, Admitted):
            self._spent.held_turns += answer.turn
            self._spent.held_tokens += answer.tokens
            self._spent.held_usd += answer.usd
            self._spent.in_flight += 1
        return answer

    def settle(self, admitted: Admitted, usage: Usage | None, *, estimated: int = 0, answered: bool) -> int | None:
        """What it really was; returns the number of its turn, from 1, when it was one. `usage` None with
        `estimated` output tokens: cut before counts came."""
        asked = admitted.asked
        price = price_of(asked.model, self._prices)
        with self._changed:
            spent = self._spent
            spent.held_turns -= admitted.turn
            spent.held_tokens -= admitted.tokens
            spent.held_usd -= admitted.usd
            spent.in_flight -= 1
            turn = answered and self._is_turn(asked)
            spent.turns += turn
            spent.estimated += estimated
            charged = (usage or Usage()) + Usage(output=estimated)
            if usage is not None:
                spent.usage += usage
                if asked.bytes and usage.read:
                    self._tokens_per_byte = max(0.05, usage.read / asked.bytes)
            if price is not None:
                spent.usd += price.usd(charged)
            elif charged.total:
                spent.unpriced = True
            self._changed.notify_all()
            return spent.turns if turn else None

    @property
    def usage(self) -> Usage:
        with self._changed:
            return self._spent.usage

    @property
    def estimated_output(self) -> int:
        with self._changed:
            return self._spent.estimated

    @property
    def turns(self) -> int:
        with self._changed:
            return self._spent.turns

    @property
    def cost_usd(self) -> float | None:
        """None as soon as one answer came from a model without a known price."""
        with self._changed:
            return None if self._spent.unpriced else self._spent.usd
