"""List prices, as data with a date. A campaign may override or add; an unknown model has no cost, never 0."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import TypeAdapter

from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.token_usage import TokenUsage

# Sources: platform.claude.com/docs/en/about-claude/pricing, platform.openai.com/docs/pricing,
# ai.google.dev/gemini-api/docs/pricing. Bedrock's and Vertex AI's global prices are the same.
PRICES_AS_OF = "2026-11-01"  # of every list below


class LongPrompt(Frozen):
    """What an answer costs whose prompt has more than `above` tokens, cached ones included. Long prompts are
    cached at the same ratios as others."""

    above: int
    input: float
    output: float


class Price(Frozen):
    """US dollars per million tokens. Batch and regional surcharges are not in it."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float
    long_prompt: LongPrompt | None = None

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


def _claude(input: float, output: float, *, cache_read: float | None = None) -> Price:
    """Anthropic's multipliers: write 1.25, write for an hour 2, read 0.1 unless the page says otherwise."""
    return Price(
        input=input,
        output=output,
        cache_read=input / 10 if cache_read is None else cache_read,
        cache_write=input * 1.25,
        cache_write_1h=input * 2,
    )


def _openai(input: float, output: float, cache_read: float) -> Price:
    """Writing to the cache costs nothing extra."""
    return Price(input=input, output=output, cache_read=cache_read, cache_write=input, cache_write_1h=input)


def _gemini(input: float, output: float, *, long: tuple[float, float] | None = None) -> Price:
    """Cached tokens cost a tenth, caching itself nothing. `long`: input and output above 200,000 tokens."""
    price = _openai(input, output, input / 10)
    if long is None:
        return price
    return price.model_copy(update={"long_prompt": LongPrompt(above=200_000, input=long[0], output=long[1])})


PRICES: dict[str, Price] = {
    "claude-fable-5-1": _claude(10, 50, cache_read=0.25),
    "claude-fable-5": _claude(10, 50),
    "claude-opus-5": _claude(5, 25),
    "claude-opus-4-8": _claude(5, 25),
    "claude-opus-4-7": _claude(5, 25),
    "claude-opus-4-6": _claude(5, 25),
    "claude-opus-4-5": _claude(5, 25),
    "claude-opus-4-1": _claude(15, 75),
    "claude-opus-4": _claude(15, 75),
    "claude-sonnet-5": _claude(2, 10),
    "claude-sonnet-4-6": _claude(3, 15),
    "claude-sonnet-4-5": _claude(3, 15),
    "claude-sonnet-4": _claude(3, 15),
    "claude-haiku-4-5": _claude(1, 5),
    "claude-3-5-haiku": _claude(0.8, 4),
    "gpt-5.4": _openai(2.5, 15, 0.25),
    "gpt-5.4-mini": _openai(0.75, 4.5, 0.075),
    "gpt-5.3-codex": _openai(1.75, 14, 0.175),
    "gpt-5.2": _openai(1.75, 14, 0.175),
    "gpt-5.2-codex": _openai(1.75, 14, 0.175),
    "gpt-5.1": _openai(1.25, 10, 0.125),
    "gpt-5.1-codex": _openai(1.25, 10, 0.125),
    "gpt-5.1-codex-mini": _openai(0.25, 2, 0.025),
    "gpt-5": _openai(1.25, 10, 0.125),
    "gpt-5-codex": _openai(1.25, 10, 0.125),
    "gpt-5-mini": _openai(0.25, 2, 0.025),
    "gpt-4.1": _openai(2, 8, 0.5),
    "gpt-4.1-mini": _openai(0.4, 1.6, 0.1),
    "gemini-3.5-flash": _gemini(1.5, 9),
    "gemini-3.1-pro": _gemini(2, 12, long=(4, 18)),
    "gemini-3.1-flash-lite": _gemini(0.25, 1.5),
    "gemini-3-pro": _gemini(2, 12, long=(4, 18)),
    "gemini-3-flash": _gemini(0.5, 3),
    "gemini-2.5-pro": _gemini(1.25, 10, long=(2.5, 15)),
    "gemini-2.5-flash": _gemini(0.3, 2.5),
    "gemini-2.5-flash-lite": _gemini(0.1, 0.4),
}

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
