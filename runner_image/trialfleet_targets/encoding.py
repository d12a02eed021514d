"""`FileFacts` as bytes and back, for workers and the cache. JSON, not pickle: a cache must not execute code."""

from __future__ import annotations

from pydantic import TypeAdapter

from trialfleet_targets.syntax_facts import FileFacts

_FACTS: TypeAdapter[FileFacts | None] = TypeAdapter(FileFacts | None)


def encoded(facts: FileFacts | None) -> bytes:
    """JSON; `null` for a file without a grammar."""
    return _FACTS.dump_json(facts)


def decoded(data: bytes) -> FileFacts | None:
    """Raises ValueError for what `encoded` did not write."""
    return _FACTS.validate_json(data)
