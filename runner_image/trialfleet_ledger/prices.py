"""List prices, as data with a date. A campaign may override or add; an unknown model has no cost, never 0.

The list is price_list.json, which `python -m trialfleet_ledger.price_refresh` writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, TypeAdapter

from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.token_usage import TokenUsage

PRICE_LIST = Path(__file__).with_name("price_list.json")
REQUEST_TOKENS = 200_000  # of the largest request, where the model's window is not known
STANDARD_TIERS = frozenset({"auto", "default", "standard", "standard_only"})  # service tiers at the list's price


class LongPrompt(Frozen):
    """What an answer costs whose prompt has more than `above` tokens, cached ones included. Long prompts are
    cached at the same ratios as others."""

    above: int
    input: float
    output: float


class Price(Frozen):
    """US dollars per million tokens. Batch and regional surcharges are not in it. `tiers`: service tier -> factor
    on every price."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float
    long_prompt: LongPrompt | None = None
    window: int | None = Field(default=None, gt=0)  # tokens that a prompt may have; None: not known
    tiers: dict[str, float] = Field(default_factory=dict[str, float])

    def tier_price(self, tier: str | None) -> Price | None:
        """The price in a service tier (None: the standard one); None: the tier has no known price.

        >>> PRICES["gpt-5.4"].tier_price("priority").output
        30.0
        """
        if tier is None or tier in STANDARD_TIERS:
            return self
        factor, long = self.tiers.get(tier), self.long_prompt
        if factor is None:
            return None
        return Price(
            input=self.input * factor,
            output=self.output * factor,
            cache_read=self.cache_read * factor,
            cache_write=self.cache_write * factor,
            cache_write_1h=self.cache_write_1h * factor,
            long_prompt=long
            and LongPrompt(above=long.above, input=long.input * factor, output=long.output * factor),
        )

    def at(self, prompt: int) -> Price:
        """The price of an answer to a prompt of so many tokens."""
        long = self.long_prompt
        if long is None or prompt <= long.above:
            return self
        ratio = long.input / self.input
        return Price(
            input=long.input,
            output=long.output,
            cache_read=self.cache_read * ratio,
            cache_write=self.cache_write * ratio,
            cache_write_1h=self.cache_write_1h * ratio,
        )

    def usd(self, usage: TokenUsage) -> float:
        """Cost of one answer.

        >>> round(PRICES["claude-sonnet-4-6"].usd(TokenUsage(input=1000, output=1000, cache_read=10000)), 6)
        0.021
        """
        price, short = self.at(usage.read), usage.cache_write - usage.cache_write_1h
        return (
            usage.input * price.input
            + usage.output * price.output
            + usage.cache_read * price.cache_read
            + short * price.cache_write
            + usage.cache_write_1h * price.cache_write_1h
        ) / 1e6

    def uncached_usd(self, usage: TokenUsage) -> float:
        """What the same answer costs where nothing is cached: all that went in at the price of input.

        >>> usage = TokenUsage(input=1000, output=1000, cache_read=10000)
        >>> round(PRICES["claude-sonnet-4-6"].uncached_usd(usage), 6)
        0.048
        """
        price = self.at(usage.read)
        return (usage.read * price.input + usage.output * price.output) / 1e6


class PriceList(Frozen):
    """`as_of`: date, YYYY-MM-DD, on which the prices held; `source`: where they are from."""

    as_of: str
    source: str
    models: dict[str, Price]


def read_price_list(path: Path = PRICE_LIST) -> PriceList:
    """The list of this file, or of another in its form."""
    return PriceList.model_validate_json(path.read_bytes())


_LIST = read_price_list()
PRICES_AS_OF = _LIST.as_of
PRICES: dict[str, Price] = _LIST.models

_BEDROCK_VENDOR = re.compile(r"^(?:[a-z]{2,6}\.)?anthropic\.")
_BEDROCK_VERSION = re.compile(r"-v\d+(?::\d+)?$")
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|preview(?:-\d{2}-\d{4}|-\d{2}-\d{2})?)$")


def bare(model: str) -> str:
    """A model's name without a gateway's provider prefix, a context suffix or a release date.

    >>> bare("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), bare("claude-sonnet-4-5@20250929")
    ('claude-sonnet-4-5', 'claude-sonnet-4-5')
    >>> bare("gemini-3-pro-preview"), bare("models/gemini-2.5-flash-preview-05-20")
    ('gemini-3-pro', 'gemini-2.5-flash')
    >>> bare("anthropic/claude-haiku-4-5-20251001"), bare("claude-sonnet-4-6[1m]"), bare("gpt-5-2025-08-07")
    ('claude-haiku-4-5', 'claude-sonnet-4-6', 'gpt-5')
    """
    name = model.rpartition("/")[2].partition("[")[0]
    return _DATE.sub("", _BEDROCK_VERSION.sub("", _BEDROCK_VENDOR.sub("", name)))


def price_of(model: str, overrides: Mapping[str, Price]) -> Price | None:
    """The campaign's own price for that very name or its bare form, else the list's, else None."""
    for table in (overrides, PRICES):
        found = table.get(model) or table.get(bare(model))
        if found is not None:
            return found
    return None


def own_prices(spec: AgentSpec) -> dict[str, Price]:
    """Model -> price, of the agent's options."""
    return TypeAdapter(dict[str, Price]).validate_python(spec.options.get("prices") or {})


def largest_request(spec: AgentSpec, chosen: int | None) -> int:
    """Tokens of the largest request that is passed on: as chosen, else the model's window, else 200,000.

    >>> largest_request(AgentSpec(kind="claude-code", model="claude-sonnet-4-5"), None)
    200000
    >>> largest_request(AgentSpec(kind="claude-code", model="claude-sonnet-4-5[1m]"), None)
    1000000
    """
    if chosen is not None or spec.model is None:
        return chosen or REQUEST_TOKENS
    if spec.model.endswith("[1m]"):
        return 1_000_000
    price = price_of(spec.model, own_prices(spec))
    return (price and price.window) or REQUEST_TOKENS
