"""Token counts as providers report them, in one form. Kinds never overlap: their sum is every token billed."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.records.measurements import TOKEN_KINDS
from trialfleet_ledger.untrusted import mapping


@dataclass(frozen=True)
class TokenUsage:
    """`cache_write_1h` is the part of `cache_write` that is kept for an hour (billed higher)."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def read(self) -> int:
        """Everything that went in."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(operator.add, astuple(self), astuple(other)))

    def by_kind(self) -> dict[str, int]:
        """The kinds of records -> counts."""
        return dict(zip(TOKEN_KINDS, astuple(self), strict=False))

    @classmethod
    def of_kinds(cls, row: Mapping[str, Any], kinds: Sequence[str] = TOKEN_KINDS) -> TokenUsage:
        """From a row that has its own names of input, output, cache read and cache write."""
        return cls(*(count(row, kind) for kind in kinds))


def messages_usage(wire: Mapping[str, Any]) -> TokenUsage:
    """Of the Messages API: `input_tokens` excludes both cache kinds.

    >>> messages_usage({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 100})
    TokenUsage(input=3, output=2, cache_read=100, cache_write=0, cache_write_1h=0)
    """
    return TokenUsage(
        input=count(wire, "input_tokens"),
        output=count(wire, "output_tokens"),
        cache_read=count(wire, "cache_read_input_tokens"),
        cache_write=count(wire, "cache_creation_input_tokens"),
        cache_write_1h=count(mapping(wire.get("cache_creation")), "ephemeral_1h_input_tokens"),
    )


def openai_usage(wire: Mapping[str, Any]) -> TokenUsage:
    """Of Chat Completions and Responses: their input count includes tokens that were read from the cache or, where
    a gateway such as LiteLLM says so, written to it; ours does not.

    >>> openai_usage({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}})
    TokenUsage(input=5, output=2, cache_read=4, cache_write=0, cache_write_1h=0)
    """
    sent = count(wire, "prompt_tokens") or count(wire, "input_tokens")
    details = mapping(wire.get("prompt_tokens_details")) or mapping(wire.get("input_tokens_details"))
    cached = min(sent, count(details, "cached_tokens"))
    written = count(details, "cache_write_tokens") or count(wire, "cache_creation_input_tokens")
    written = min(sent - cached, written)
    output = count(wire, "completion_tokens") or count(wire, "output_tokens")
    return TokenUsage(input=sent - cached - written, output=output, cache_read=cached, cache_write=written)


def gemini_usage(wire: Mapping[str, Any]) -> TokenUsage:
    """Of Gemini's `usageMetadata`: the prompt's count includes cached content, not the results of hosted tools;
    the candidates' count excludes thoughts.

    >>> gemini_usage({"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 2,
    ...               "thoughtsTokenCount": 3, "toolUsePromptTokenCount": 1})
    TokenUsage(input=6, output=5, cache_read=4, cache_write=0, cache_write_1h=0)
    """
    sent = count(wire, "promptTokenCount")
    cached = min(sent, count(wire, "cachedContentTokenCount"))
    return TokenUsage(
        input=sent - cached + count(wire, "toolUsePromptTokenCount"),
        output=count(wire, "candidatesTokenCount") + count(wire, "thoughtsTokenCount"),
        cache_read=cached,
    )


def count(wire: Mapping[str, Any], key: str) -> int:
    """A non-negative integer of the wire; anything else counts nothing. One that no table holds stays that large,
    but no price of it is too large for a float.

    >>> count({"a": 7}, "a"), count({"a": -7}, "a"), count({"a": 10**400}, "a") == LARGEST_COUNT**2
    (7, 0, True)
    """
    value = wire.get(key)
    return min(value, LARGEST_COUNT**2) if type(value) is int and value > 0 else 0
