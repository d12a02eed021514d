"""Budgets are kept by what may happen, not by what usually happens."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.prices import PRICES, Price, bare, price_of
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_runner.gateway.budget import (
    MOST_IN_FLIGHT,
    BudgetLedger,
    RequestCost,
    RequestRefused,
    Reservation,
    TrialBudget,
)
from trialfleet_runner.gateway.conversations import Conversations, Opening

MODEL = "claude-sonnet-4-6"


def asked(
    *, main: bool = True, tools: bool = True, size: int = 300, cap: int | None = 1000, model: str = MODEL
) -> RequestCost:
    return RequestCost(model, main, Opening("fix it", frozenset({"read", "edit"} if tools else ())), size, cap)


def admitted(account: BudgetLedger, request: RequestCost) -> Reservation:
    answer = account.admit(request)
    assert isinstance(answer, Reservation)
    return answer


def test_turns_end_exactly_and_side_requests_are_none() -> None:
    account = BudgetLedger(TrialBudget(max_turns=2), {})
    for _ in range(2):
        account.settle(admitted(account, asked()), TokenUsage(output=1), answered=True)
    account.settle(admitted(account, asked(tools=False)), TokenUsage(output=1), answered=True)
    account.settle(admitted(account, asked(main=False)), TokenUsage(output=1), answered=True)
    refused = account.admit(asked())
    assert isinstance(refused, RequestRefused)
    assert (refused.stop, account.spent.turns) == (Stop.MAX_TURNS, 2)


def test_an_agent_that_never_uses_tools_has_turns_all_the_same() -> None:
    account = BudgetLedger(TrialBudget(max_turns=2), {})
    for number in (1, 2):
        assert account.settle(admitted(account, asked(tools=False)), TokenUsage(output=1), answered=True) == number
    assert isinstance(account.admit(asked(tools=False)), RequestRefused)


def test_with_the_first_tools_earlier_requests_turn_out_to_be_probes() -> None:
    account = BudgetLedger(TrialBudget(max_turns=1), {})
    account.settle(admitted(account, asked(tools=False)), TokenUsage(output=1), answered=True)
    assert account.settle(admitted(account, asked()), TokenUsage(output=1), answered=True) == 1
    assert account.settle(admitted(account, asked(tools=False)), TokenUsage(output=1), answered=True) is None
    assert isinstance(account.admit(asked()), RequestRefused)


def test_another_run_of_the_program_may_offer_other_tools_and_its_turns_add_up() -> None:
    """A pre-flight looks with tools that the agent's own run does not offer."""
    account = BudgetLedger(TrialBudget(max_turns=3), {})
    look = RequestCost(MODEL, True, Opening("look first", frozenset({"read", "search", "list"})), 300, 1000)
    assert account.settle(admitted(account, look), TokenUsage(output=1), answered=True) == 1
    account.begin_run()
    assert account.settle(admitted(account, asked(tools=False)), TokenUsage(output=1), answered=True) == 2
    assert account.settle(admitted(account, asked()), TokenUsage(output=1), answered=True) == 2, "that was a probe"
    assert account.settle(admitted(account, asked()), TokenUsage(output=1), answered=True) == 3
    assert isinstance(account.admit(asked()), RequestRefused)


LOOP = Opening("fix the bug", frozenset({"read", "edit", "shell", "agent"}))


def started() -> Conversations:
    conversations = Conversations()
    assert conversations.first_tools(LOOP)
    assert conversations.has_turn(LOOP)
    return conversations


def test_a_helper_with_fewer_tools_after_the_last_answer_is_no_turn() -> None:
    """Qwen Code asks its helper about the finished conversation, with six tools."""
    conversations = started()
    conversations.answered(LOOP, [{"path": "src/a.py"}])
    assert conversations.has_turn(LOOP)
    conversations.answered(LOOP, [])
    for text in ("Remember what matters of: fix the bug", LOOP.text):
        helper = Opening(text, frozenset({"read", "edit"}))
        assert not conversations.has_turn(helper)
        assert not conversations.has_turn(helper), "its next request is no turn either"


def test_a_sub_agent_that_the_model_called_has_turns_until_it_is_done() -> None:
    conversations = started()
    conversations.answered(LOOP, [{"prompt": "Look around. ", "type": "general"}])
    sub = Opening("<reminder>\nLook around.", frozenset({"read"}))
    assert conversations.has_turn(sub)
    conversations.answered(sub, [{"path": "src/a.py"}])
    assert conversations.has_turn(LOOP), "its result"
    conversations.answered(LOOP, [])
    assert conversations.has_turn(sub), "it may work in the background"
    helper = Opening("Look around.\nWhat did you see?", frozenset({"edit"}))
    assert not conversations.has_turn(helper), "nobody waits for this one"


def test_a_sub_agent_in_the_background_may_begin_after_the_loops_next_answers() -> None:
    conversations = started()
    conversations.answered(LOOP, [{"prompt": "Look around\nin src. ", "path": "src/a.py"}])
    conversations.answered(LOOP, [{"path": "src/b.py"}])
    conversations.answered(LOOP, [])
    for text in ("I read lib/src/a.py", "Look around\nin src. And then?"):
        assert not conversations.has_turn(Opening(text, frozenset({"read"}))), (
            "it quotes no whole input at its end"
        )
    sub = Opening("<reminder>\nLook around\nin src. \n", frozenset({"read"}))
    assert conversations.has_turn(sub)
    conversations.answered(sub, [])
    assert conversations.has_turn(sub), "its next request"


def test_a_compacted_conversation_and_a_second_session_are_the_loop() -> None:
    conversations = started()
    conversations.answered(LOOP, [])
    assert conversations.has_turn(Opening("Summary: so far …", LOOP.tools))
    assert conversations.has_turn(Opening("next task", LOOP.tools | {"loaded_later"}))


def test_a_loop_that_offers_fewer_tools_for_once_stays_the_loop() -> None:
    conversations = started()
    conversations.answered(LOOP, [{"path": "a"}])
    assert conversations.has_turn(Opening(LOOP.text, frozenset({"read"})))


def test_helpers_have_a_limit_of_their_own() -> None:
    account = BudgetLedger(TrialBudget(max_turns=1), {})
    account.settle(admitted(account, asked()), TokenUsage(output=1), answered=True)
    helper = RequestCost(MODEL, True, Opening("tidy up", frozenset({"read"})), 300, 1000)
    assert account.settle(admitted(account, helper), TokenUsage(output=1), answered=True) is None
    assert isinstance(account.admit(helper), RequestRefused)


def test_a_failed_request_spends_no_turn() -> None:
    account = BudgetLedger(TrialBudget(max_turns=1), {})
    account.settle(admitted(account, asked()), None, answered=False)
    account.settle(admitted(account, asked()), TokenUsage(output=1), answered=True)
    assert isinstance(account.admit(asked()), RequestRefused)


def test_a_second_request_waits_for_the_turn_that_the_first_may_give_back() -> None:
    account = BudgetLedger(TrialBudget(max_turns=1), {})
    first = admitted(account, asked())
    answers: list[Reservation | RequestRefused] = []
    waiting = threading.Thread(target=lambda: answers.append(account.admit(asked())))
    waiting.start()
    waiting.join(0.05)
    assert answers == []
    account.settle(first, None, answered=False)
    waiting.join(60)
    assert isinstance(answers[0], Reservation)


def test_closing_releases_whoever_waits() -> None:
    account = BudgetLedger(TrialBudget(max_turns=1), {})
    admitted(account, asked())
    answers: list[Reservation | RequestRefused] = []
    waiting = threading.Thread(target=lambda: answers.append(account.admit(asked())))
    waiting.start()
    account.close()
    waiting.join(60)
    assert isinstance(answers[0], RequestRefused)
    assert answers[0].stop is None


def test_the_last_request_is_cut_to_what_is_left() -> None:
    account = BudgetLedger(TrialBudget(max_cost_usd=0.015), {})  # pays for 1,000 tokens of output
    first = admitted(account, asked(cap=32_000))
    assert first.output_cap is not None
    assert 256 <= first.output_cap < 1000
    account.settle(first, TokenUsage(input=100, output=first.output_cap), answered=True)
    assert isinstance(account.admit(asked(cap=32_000)), RequestRefused)


def test_a_request_without_a_limit_gets_one_under_a_budget_only() -> None:
    assert admitted(BudgetLedger(TrialBudget(), {}), asked(cap=None)).output_cap is None
    assert admitted(BudgetLedger(TrialBudget(max_cost_usd=1), {}), asked(cap=None)).output_cap == 32_768


def test_money_cannot_be_spent_on_a_model_without_a_price() -> None:
    account = BudgetLedger(TrialBudget(max_cost_usd=1), {})
    refused = account.admit(asked(model="house-model"))
    assert isinstance(refused, RequestRefused)
    assert refused.kind == "unpriced"
    flat = Price(input=1, output=1, cache_read=1, cache_write=1, cache_write_1h=1)
    assert isinstance(
        BudgetLedger(TrialBudget(max_cost_usd=1), {"house-model": flat}).admit(asked(model="house-model")),
        Reservation,
    )


def test_cost_is_unknown_rather_than_too_small() -> None:
    account = BudgetLedger(TrialBudget(), {})
    account.settle(admitted(account, asked(model="house-model")), TokenUsage(output=5), answered=True)
    assert account.spent.cost_usd is None


def test_uncached_prices_are_those_of_input_for_all_that_went_in() -> None:
    account = BudgetLedger(TrialBudget(), {})
    usage = TokenUsage(input=100, output=10, cache_read=2000, cache_write=300, cache_write_1h=200)
    account.settle(admitted(account, asked()), usage, answered=True)
    assert account.spent.uncached_cost_usd == pytest.approx((2400 * 3 + 10 * 15) / 1e6)
    account.settle(admitted(account, asked(model="house-model")), TokenUsage(output=5), answered=True)
    assert account.spent.uncached_cost_usd is None


def test_an_interrupted_answers_estimate_is_charged_and_kept_apart() -> None:
    account = BudgetLedger(TrialBudget(), {})
    account.settle(admitted(account, asked()), TokenUsage(input=100, output=1), estimated=99, answered=False)
    assert (account.spent.usage.output, account.spent.estimated) == (1, 99)
    assert account.spent.cost_usd == pytest.approx((100 * 3 + 100 * 15) / 1e6)


@given(
    st.lists(st.tuples(st.integers(1, 200_000), st.integers(1, 64_000), st.floats(0, 1)), max_size=30),
    st.floats(0.001, 3),
)
def test_no_sequence_of_requests_exceeds_the_money(requests: list[tuple[int, int, float]], limit: float) -> None:
    """As long as a request's tokens stay within its bytes' estimate and its answer within its cap."""
    account = BudgetLedger(TrialBudget(max_cost_usd=limit), {})
    for size, cap, share in requests:
        answer = account.admit(asked(size=size, cap=cap))
        if isinstance(answer, RequestRefused):
            continue
        allowed = cap if answer.output_cap is None else answer.output_cap
        assert allowed <= cap
        usage = TokenUsage(cache_write=int(size / 3 * share), output=allowed)
        account.settle(answer, usage, answered=True)
        account._tokens_per_byte = 1 / 3
    assert account.spent.cost_usd is not None
    assert account.spent.cost_usd <= limit + 1e-9


def test_prices_know_prefixes_dates_and_overrides() -> None:
    assert price_of("anthropic/claude-haiku-4-5-20251001", {}) == PRICES["claude-haiku-4-5"]
    assert price_of("claude-unheard-of", {}) is None
    own = Price(input=0, output=0, cache_read=0, cache_write=0, cache_write_1h=0)
    assert price_of("claude-sonnet-4-6", {"claude-sonnet-4-6": own}) == own
    assert all(bare(model) == model for model in PRICES)


def test_a_long_prompts_output_is_reserved_at_its_own_price() -> None:
    account = BudgetLedger(TrialBudget(max_cost_usd=3), {})
    answer = admitted(account, asked(model="gemini-2.5-pro", size=900_000, cap=None))
    sent = answer.usd - 15 * (answer.output_cap or 0) / 1e6
    assert sent == pytest.approx(900_000 / 3 * 1.1 * 2.5 / 1e6, rel=1e-4)


def test_cache_kinds_are_billed_apart() -> None:
    price = PRICES["claude-sonnet-4-6"]
    usage = TokenUsage(cache_read=1_000_000, cache_write=3_000_000, cache_write_1h=1_000_000)
    assert price.usd(usage) == pytest.approx(0.3 + 2 * 3.75 + 6)


@pytest.mark.parametrize(
    ("tier", "answered", "factor"), [(None, None, 1), ("priority", None, 2), ("priority", "default", 1)]
)
def test_a_service_tier_is_reserved_as_asked_and_charged_as_answered(
    tier: str | None, answered: str | None, factor: int
) -> None:
    account = BudgetLedger(TrialBudget(max_cost_usd=1), {})
    request = RequestCost("gpt-5.4", True, Opening("x", frozenset({"t"})), 300, 1000, tier=tier)
    reserved = admitted(account, request)
    assert reserved.usd == pytest.approx((2 if tier else 1) * (1000 * 15 + 111 * 2.5) / 1e6)
    account.settle(reserved, TokenUsage(input=1000, output=10), answered=True, tier=answered)
    assert account.spent.usd == pytest.approx(factor * (1000 * 2.5 + 10 * 15) / 1e6)
    unknown = account.admit(RequestCost("gpt-5.4", True, Opening("x", frozenset()), 300, 1000, tier="scale"))
    assert isinstance(unknown, RequestRefused)
    assert "'scale'" in unknown.message


def test_a_cache_write_for_an_hour_is_reserved_at_its_price() -> None:
    account = BudgetLedger(TrialBudget(max_cost_usd=1), {})
    five, hour = (
        admitted(account, RequestCost(MODEL, True, Opening("x", frozenset()), 3000, 10, cached_1h=long)).usd
        for long in (False, True)
    )
    assert hour - five == pytest.approx(1101 * (6 - 3.75) / 1e6)


def test_what_nobody_counted_is_charged_by_size() -> None:
    account = BudgetLedger(TrialBudget(max_cost_usd=1), {})
    account.settle(admitted(account, asked(size=3000)), None, estimated=100, answered=True)
    spent = account.spent
    assert (spent.estimated_input, spent.estimated, spent.estimates) == (1001, 100, 1)
    assert spent.usd == pytest.approx((1001 * 3 + 100 * 15) / 1e6)
    account.settle(admitted(account, asked()), None, answered=False)
    assert account.spent.estimates == 1, "nobody has read it"


def test_requests_that_no_model_answers_are_among_those_in_flight() -> None:
    account, entered = BudgetLedger(TrialBudget(), {}), threading.Event()
    held = [admitted(account, asked(tools=False)) for _ in range(MOST_IN_FLIGHT)]

    def relay() -> None:
        with account.hold_place() as held:
            assert held.refused is None
            held.counted = True
            entered.set()

    waiting = threading.Thread(target=relay)
    waiting.start()
    assert not entered.wait(0.1)
    account.settle(held.pop(), None, answered=False)
    assert entered.wait(10)
    waiting.join(10)
    assert account.spent.requests == 2
    with account.hold_place():
        pass
    assert account.spent.requests == 2, "the provider has failed it"
    account.close()
    with account.hold_place() as held:
        assert held.refused is not None
