"""A runner's last words: what the kubelet keeps of a container when the store could not be told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from trialfleet_runner.contract import Delivery, End, LastWords, Metrics

LIMIT = 1024  # bytes; a kubelet keeps 4096 of one container
MESSAGE_CHARS = 200
# What a verdict can do without, in the order in which it goes: what costs nothing to lose first.
_SPARED = (
    *("lines_added", "lines_removed", "files_changed", "context_files_read", "files_read_before_edit"),
    *("rule_firings", "fail_fast_denials", "predicted_hit", "preflight_hit", "preflight_tool_calls"),
    *(f"preflight_{kind}_tokens" for kind in ("cache_write", "cache_read", "input", "output")),
    *("preflight_s", "preflight_cost_usd", "preflight_turns"),
    *("first_edit_s", "tail_turns", "edit_turns", "exploration_turns", "first_edit_turn", "hook_firings"),
    *("overhead_core_s", "tests_core_s", "agent_core_s", "tests_s", "throttled_s", "wall_s", "target_hit"),
    *("cache_write_tokens", "cache_read_tokens", "tool_calls", "agent_s", "output_tokens", "input_tokens"),
    *("turns", "cost_usd"),
)
assert set(_SPARED) == set(Metrics.model_fields)


def termination_log() -> Path:
    """`$TRIALFLEET_TERMINATION_LOG`, or where the kubelet looks."""
    return Path(os.environ.get("TRIALFLEET_TERMINATION_LOG", "/dev/termination-log"))


def leave(words: LastWords, path: Path) -> None:
    """Write them. Where there is no such file, nobody reads it."""
    try:
        path.write_bytes(fitted(words))
    except OSError:
        return


def fitted(words: LastWords, limit: int = LIMIT) -> bytes:
    """As JSON of at most `limit` bytes, with everything or as much as there is room for; verdict, stop and the
    kind of a loss are always in it."""
    for less in _ever_less(words):
        text = json.dumps(less.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"))
        if len(text.encode()) <= limit:
            return text.encode()
    raise ValueError(f"an end does not fit into {limit} bytes: its trial and nonce alone are longer")


def _ever_less(words: LastWords) -> Iterator[LastWords]:
    """The same words with less and less in them."""
    words = words.model_copy(update={"message": words.message[:MESSAGE_CHARS]})
    yield words
    if words.end is not None:
        for end in _ever_less_of_end(words.end):
            words = words.model_copy(update={"end": end})
            yield words
    yield words.model_copy(update={"message": ""})


def _ever_less_of_end(end: End) -> Iterator[End]:
    loss, scored = end.loss, end.scored
    if loss is not None:
        for chars in (MESSAGE_CHARS, 40, 0):
            yield end.model_copy(update={"loss": loss.model_copy(update={"message": loss.message[:chars]})})
    if scored is None:
        return
    spared: dict[str, None] = {}
    for name in _SPARED:
        spared[name] = None
        scored = scored.model_copy(update={"metrics": scored.metrics.model_copy(update=spared)})
        yield end.model_copy(update={"scored": scored})
    nothing = Delivery()
    for name in ("files", "targets", "node", "tokenizer", "abstained", "preflight", "reached_model"):
        delivery = scored.delivery.model_copy(update={name: getattr(nothing, name)})
        scored = scored.model_copy(update={"delivery": delivery})
        yield end.model_copy(update={"scored": scored})
