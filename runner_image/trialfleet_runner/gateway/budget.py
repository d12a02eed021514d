"""What a trial may spend and has spent. A request is admitted only if its worst case still fits."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from trialfleet_ledger.prices import Price, price_of
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_runner.gateway.conversations import Conversations, Opening

_TOKENS_PER_BYTE = 1 / 3  # of a request's JSON, until an answer has shown better; text has about 1/4
_MARGIN = 1.1
_UNSTATED_CAP = 32_768  # output tokens of a request that states no limit, where a budget needs one
_LEAST_TOKENS_PER_BYTE = 0.2
_CHARS_PER_TOKEN = 4  # of generated text
# Output speed of models that agents use, rather more than less. Artificial Analysis, November 2025: Claude Opus
# 4.1 has 45, Claude Sonnet 4.5 has 63.
TOKENS_PER_S = 80
_USEFUL_OUTPUT = 256  # a request cut below this is refused instead
_WAIT_S = 1.0
MOST_IN_FLIGHT = 4  # requests of one attempt at a time; others wait


@dataclass(frozen=True)
class TrialBudget:
    """Limits of one trial; None: no limit.

    Turns end at exactly `max_turns`; helpers of the agent's program that offer tools may ask as often again. All
    requests together, of any kind and to any model, end at `max_requests`; one that the provider failed is not
    counted.
    Money is hard: before a request is forwarded its worst case (all of it written to the cache, all of its
    allowed output) is set aside; where that does not fit, its output limit is lowered, and where that is not
    possible it is refused.
    """

    max_turns: int | None = None
    max_cost_usd: float | None = None

    @property
    def max_requests(self) -> int | None:
        """
        >>> TrialBudget(max_turns=2).max_requests
        48
        """
        return None if self.max_turns is None else 4 * self.max_turns + 40


@dataclass(frozen=True)
class RequestCost:
    """A request, as far as the budget cares. `bytes`: without embedded media, which have at most `media_tokens`.
    `output_cap`: None when the request states none. `cached_1h`: it may
    write to the cache for an hour. `tier`: the service tier that it asks for."""

    model: str
    main: bool  # asks the main model
    opening: Opening
    bytes: int
    output_cap: int | None
    media_tokens: int = 0
    least_tokens: int = 0  # of the whole prompt
    cached_1h: bool = False
    tier: str | None = None

    def sent(self, tokens: int) -> TokenUsage:
        """The dearest way in which these tokens can be billed."""
        return TokenUsage(cache_write=tokens, cache_write_1h=tokens if self.cached_1h else 0)


@dataclass(frozen=True)
class Reservation:
    """Go ahead, with this output limit (None: as the request says). Must be settled exactly once."""

    asked: RequestCost
    turn: bool
    output_cap: int | None
    usd: float

    def estimate_output(self, chars: int, seconds: float) -> int:
        """Output tokens of an answer that the provider did not count: those of its text, or as many as a model
        makes in these seconds and the request allows, if that is more: a model may think without a word.

        >>> asked = RequestCost("m", True, Opening("x", frozenset()), 300, 2000)
        >>> held = Reservation(asked, True, None, 0.0)
        >>> held.estimate_output(4000, 1), held.estimate_output(0, 10), held.estimate_output(0, 600)
        (1000, 800, 2000)
        """
        most = self.output_cap or self.asked.output_cap or _UNSTATED_CAP
        return max(math.ceil(chars / _CHARS_PER_TOKEN), min(most, math.ceil(seconds * TOKENS_PER_S)))


@dataclass(frozen=True)
class RequestRefused:
    """No: the budget of that kind is spent, or the request cannot be held to it."""

    kind: Literal["max_turns", "cost", "unpriced", "closed"]
    message: str

    @property
    def stop(self) -> Stop | None:
        return {"max_turns": Stop.MAX_TURNS, "cost": Stop.COST}.get(self.kind)


_CLOSED = RequestRefused("closed", "the attempt is over")


@dataclass
class HeldPlace:
    """Of a request that no model answers. `counted`: the provider has answered it, and has not failed."""

    refused: RequestRefused | None
    counted: bool = False


@dataclass
class Spent:
    """What a trial has spent, and what requests in flight hold."""

    usage: TokenUsage = field(default_factory=TokenUsage)
    estimated: int = 0  # output tokens that no count came for
    estimated_input: int = 0  # the same of requests
    estimates: int = 0  # answers whose charge is in part an estimate
    requests: int = 0  # settled ones that count towards `max_requests`
    usd: float = 0.0
    uncached_usd: float = 0.0  # had nothing been cached
    unpriced: bool = False
    turns: int = 0
    held_turns: int = 0
    helpers: int = 0  # admitted requests to the main model that offer tools and are no turns
    held_usd: float = 0.0
    in_flight: int = 0

    @property
    def cost_usd(self) -> float | None:
        """None as soon as one answer came from a model without a known price."""
        return None if self.unpriced else self.usd

    @property
    def uncached_cost_usd(self) -> float | None:
        """The same, had nothing been read from or written to a cache."""
        return None if self.unpriced else self.uncached_usd


def _helps(asked: RequestCost, turn: bool) -> bool:
    return asked.main and not turn and bool(asked.opening.tools)


class BudgetLedger:
    """Thread-safe. `admit` waits while other requests hold what this one needs, or while too many are in
    flight."""

    def __init__(self, budget: TrialBudget, prices: Mapping[str, Price]) -> None:
        self._budget, self._prices = budget, prices
        self._spent = Spent()
        self._conversations, self._earlier_turns = Conversations(), 0
        self._tokens_per_byte = _TOKENS_PER_BYTE
        self._changed = threading.Condition()
        self._closed = False

    def close(self) -> None:
        """Admit nothing from now on, and refuse requests that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def begin_run(self) -> None:
        """The next requests are those of another run of the agent's program in this trial, which may offer other
        tools. Its turns add up with those so far."""
        with self._changed:
            self._conversations, self._earlier_turns = Conversations(), self._spent.turns

    def admit(
        self, asked: RequestCost, while_busy: Callable[[], object] = lambda: None
    ) -> Reservation | RequestRefused:
        """`while_busy` is called each time before it waits; it may end requests that nobody waits for."""
        price = self._price(asked.model, asked.tier)
        if self._budget.max_cost_usd is not None and price is None:
            tier = f" in the service tier {asked.tier!r}" if asked.tier else ""
            return RequestRefused(
                "unpriced", f"the trial has a money budget and {asked.model!r} has no known price{tier}"
            )
        with self._changed:
            if asked.main and self._conversations.first_tools(asked.opening):
                self._spent.turns = self._earlier_turns
                self._changed.notify_all()
            turn = self._is_turn(asked)
            while True:
                answer = _CLOSED if self._closed else self._judge(asked, turn, price)
                busy = isinstance(answer, Reservation) and self._is_full()
                if answer is not None and not busy:
                    return self._hold(answer)
                while_busy()
                self._changed.wait(_WAIT_S)

    @contextmanager
    def hold_place(self, while_busy: Callable[[], object] = lambda: None) -> Generator[HeldPlace]:
        """For a request that no model answers: it is one of those in flight, and counts towards `max_requests` if
        it is `counted`."""
        with self._changed:
            while (refused := _CLOSED if self._closed else self._judge_count()) is None and self._is_full():
                while_busy()
                self._changed.wait(_WAIT_S)
            self._spent.in_flight += refused is None
        held = HeldPlace(refused)
        try:
            yield held
        finally:
            with self._changed:
                self._spent.in_flight -= refused is None
                self._spent.requests += refused is None and held.counted
                self._changed.notify_all()

    def _price(self, model: str, tier: str | None) -> Price | None:
        price = price_of(model, self._prices)
        return price and price.tier_price(tier)

    def _is_turn(self, asked: RequestCost) -> bool:
        return asked.main and self._conversations.has_turn(asked.opening)

    def _judge(self, asked: RequestCost, turn: bool, price: Price | None) -> Reservation | RequestRefused | None:
        """None: wait until a request in flight is settled and its unused part is free again."""
        spent, limit, refused = self._spent, self._budget.max_turns, self._judge_count()
        if refused is not None or not self._has_requests():
            return refused
        if limit is not None and turn and spent.turns + spent.held_turns >= limit:
            if spent.turns < limit:
                return None
            return RequestRefused("max_turns", f"the trial's {limit} turns are spent")
        if limit is not None and _helps(asked, turn) and spent.helpers >= limit:
            return RequestRefused("max_turns", f"the trial's {limit} requests of helpers are spent")
        if self._budget.max_cost_usd is None or price is None:
            return Reservation(asked, turn, None, 0.0)
        return self._within_cost(asked, turn, price, self._budget.max_cost_usd)

    def _judge_count(self) -> RequestRefused | None:
        most = self._budget.max_requests
        if most is None or self._spent.requests < most:
            return None
        return RequestRefused("max_turns", f"the trial's {most} requests (4 × max_turns + 40) are spent")

    def _has_requests(self) -> bool:
        """Whether those in flight leave another one, if all of them count."""
        most = self._budget.max_requests
        return most is None or self._spent.requests + self._spent.in_flight < most

    def _is_full(self) -> bool:
        return self._spent.in_flight >= MOST_IN_FLIGHT or not self._has_requests()

    def _within_cost(
        self, asked: RequestCost, turn: bool, price: Price, max_usd: float
    ) -> Reservation | RequestRefused | None:
        sent = int(asked.bytes * self._tokens_per_byte * _MARGIN) + asked.media_tokens + 1
        price = price.at(sent)
        wanted = asked.output_cap or _UNSTATED_CAP
        room = self._room(max_usd, asked.sent(sent), price)
        if room < wanted and self._spent.in_flight:
            return None
        if room < min(wanted, _USEFUL_OUTPUT):
            return RequestRefused("cost", "the trial's money is spent")
        cap = min(wanted, room)
        usd = price.usd(asked.sent(sent) + TokenUsage(output=cap))
        return Reservation(asked, turn, None if cap == asked.output_cap else cap, usd)

    def _room(self, limit_usd: float, sent: TokenUsage, price: Price) -> int:
        """Output tokens that the money would still pay for."""
        left = limit_usd - self._spent.usd - self._spent.held_usd - price.usd(sent)
        return int(left / price.usd(TokenUsage(output=1))) if price.output else 2**62

    def _hold(self, answer: Reservation | RequestRefused) -> Reservation | RequestRefused:
        if isinstance(answer, Reservation):
            self._spent.held_turns += answer.turn
            self._spent.held_usd += answer.usd
            self._spent.in_flight += 1
            self._spent.helpers += _helps(answer.asked, answer.turn)
        return answer

    def settle(
        self,
        admitted: Reservation,
        usage: TokenUsage | None,
        *,
        estimated: int = 0,
        answered: bool,
        read: bool | None = None,
        counted: bool = True,
        tier: str | None = None,
        calls: Sequence[object] = (),
    ) -> int | None:
        """What it really was; returns the number of its turn, from 1, when it was one.

        `usage` None, or with nothing sent, although the model has `read` the request (None: if `answered`): the
        tokens sent are estimated. `estimated`: output tokens beyond those of `usage`. `counted`: towards
        `max_requests`. `tier`: the service tier that the answer names; it sets the price if that tier has one.
        `calls`: inputs of the tools that the answer calls.
        """
        asked = admitted.asked
        price = (tier and self._price(asked.model, tier)) or self._price(asked.model, asked.tier)
        with self._changed:
            unsaid = (answered if read is None else read) and not (usage and usage.read)
            sent = int(asked.bytes * self._tokens_per_byte) + asked.media_tokens + 1 if unsaid else 0
            spent = self._spent
            spent.held_turns -= admitted.turn
            spent.held_usd -= admitted.usd
            spent.in_flight -= 1
            turn = answered and admitted.turn and self._counts(asked)
            spent.turns += turn
            if turn:
                self._conversations.answered(asked.opening, calls)
            spent.requests += counted
            spent.estimated += estimated
            spent.estimated_input += sent
            spent.estimates += bool(estimated or sent)
            charged = (usage or TokenUsage()) + TokenUsage(input=sent, output=estimated)
            if usage is not None:
                spent.usage += usage
                if asked.bytes and usage.read and not asked.media_tokens:
                    self._tokens_per_byte = max(_LEAST_TOKENS_PER_BYTE, usage.read / asked.bytes)
            if price is not None:
                spent.usd += price.usd(charged)
                spent.uncached_usd += price.uncached_usd(charged)
            elif charged.total:
                spent.unpriced = True
            self._changed.notify_all()
            return spent.turns if turn else None

    def _counts(self, asked: RequestCost) -> bool:
        """Whether a request that was a turn when it was admitted still is: the first tools may have come since."""
        return bool(asked.opening.tools) or self._is_turn(asked)

    @property
    def spent(self) -> Spent:
        with self._changed:
            return replace(self._spent)
