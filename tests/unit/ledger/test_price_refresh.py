"""The price list is written from a table without a network, and what the table lacks stays."""

from __future__ import annotations

from typing import Any

import pytest

from trialfleet_ledger.price_refresh import read_price, refresh_prices
from trialfleet_ledger.prices import PRICES, LongPrompt, Price, PriceList, read_price_list
from trialfleet_ledger.token_usage import TokenUsage

OLD = Price(input=9, output=9, cache_read=9, cache_write=9, cache_write_1h=9)
CLAUDE: dict[str, Any] = {
    "litellm_provider": "anthropic",
    "input_cost_per_token": 3e-06,
    "output_cost_per_token": 1.5e-05,
    "cache_read_input_token_cost": 3e-07,
    "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_1hr": 6e-06,
}
GPT: dict[str, Any] = {
    "litellm_provider": "openai",
    "input_cost_per_token": 2.5e-06,
    "output_cost_per_token": 1.5e-05,
    "input_cost_per_token_priority": 5e-06,
    "input_cost_per_token_above_272k_tokens": 5e-06,
    "output_cost_per_token_above_272k_tokens": 2.25e-05,
}


def test_kinds_durations_tiers_and_long_prompts_come_from_the_table() -> None:
    assert read_price("claude-x", CLAUDE) == Price(
        input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_1h=6
    )
    assert read_price("gpt-x", GPT) == Price(
        input=2.5,
        output=15,
        cache_read=2.5,
        cache_write=2.5,
        cache_write_1h=2.5,
        long_prompt=LongPrompt(above=272_000, input=5, output=22.5),
        tiers={"priority": 2},
    )


def test_a_model_that_the_table_lacks_keeps_its_price_and_other_hosts_do_not_count() -> None:
    old = PriceList(as_of="2026-01-01", source="s", models={"claude-a": OLD, "claude-b": OLD})
    table = {
        "claude-a-20260101": CLAUDE,
        "some-host/claude-b": CLAUDE,
        "claude-b": {"input_cost_per_token": "free"},
    }
    new, lacking = refresh_prices(old, table, as_of="2026-11-28", source="t")
    assert (new.as_of, new.source, lacking) == ("2026-11-28", "t", ["claude-b"])
    assert (new.models["claude-a"].input, new.models["claude-b"]) == (3, OLD)


def test_the_list_has_a_date_and_a_source() -> None:
    listed = read_price_list()
    assert len(listed.as_of) == len("2026-11-28")
    assert listed.source
    assert listed.models == PRICES


def test_a_service_tier_multiplies_every_price_and_an_unknown_one_has_none() -> None:
    price = PRICES["gpt-5.4"]
    for usage in (TokenUsage(input=1000, output=10, cache_read=500), TokenUsage(input=300_000, output=10)):
        priority, flex, standard = (price.tier_price(tier) for tier in ("priority", "flex", "default"))
        assert priority is not None
        assert flex is not None
        assert standard == price
        assert priority.usd(usage) == pytest.approx(2 * price.usd(usage))
        assert flex.usd(usage) == pytest.approx(price.usd(usage) / 2)
    assert price.tier_price("scale") is None
    assert PRICES["claude-sonnet-4-6"].tier_price("priority") is None
