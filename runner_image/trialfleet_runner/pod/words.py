"""A runner's last words: the termination message that the kubelet keeps, for ends that could not be stored."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from trialfleet_ledger.records.attempt import End, LastWords
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.measurements import Delivery, Metrics

LIMIT = 1024  # bytes of the message
SHORT_CHARS = 200
# Of a delivery, in this order
_DROPPED = (
    "files",
    "targets",
    "node",
    "tokenizer",
    "abstained",
    "preflight",
    "sent_share",
    "reached_model",
)


def termination_log() -> Path:
    """`$TRIALFLEET_TERMINATION_LOG`, otherwise the path that the kubelet reads."""
    return Path(os.environ.get("TRIALFLEET_TERMINATION_LOG", "/dev/termination-log"))


def leave(words: LastWords, path: Path) -> None:
    """Write the last words. An error is ignored: outside of a pod nothing reads them."""
    try:
        path.write_bytes(fitted(words))
    except OSError:
        return


def fitted(words: LastWords, limit: int = LIMIT) -> bytes:
    """JSON of at most `limit` bytes with as much of the words as fits; it always has the verdict, the stop and the
    class of a loss."""
    return first_fitting(_ever_less(words), limit)


def first_fitting(versions: Iterator[Frozen], limit: int) -> bytes:
    """The JSON of the first that has at most `limit` bytes."""
    for version in versions:
        text = json.dumps(version.model_dump(mode="json", exclude_defaults=True), separators=(",", ":")).encode()
        if len(text) <= limit:
            return text
    raise ValueError(f"a termination message does not fit into {limit} bytes")


def _ever_less(words: LastWords) -> Iterator[LastWords]:
    words = words.model_copy(update={"message": words.message[:SHORT_CHARS]})
    yield words
    if words.end is not None:
        for end in _ever_less_of_end(words.end):
            words = words.model_copy(update={"end": end})
            yield words
    yield words.model_copy(update={"message": ""})


def _ever_less_of_end(end: End) -> Iterator[End]:
    end = end.model_copy(update={"plan": None, "start": None, "patch": None})
    yield end
    loss, scored = end.loss, end.scored
    if loss is not None:
        for chars in (SHORT_CHARS, 40, 0):
            yield end.model_copy(update={"loss": loss.model_copy(update={"message": loss.message[:chars]})})
    if scored is None:
        return
    without = scored.delivery.model_copy(update={"first_request_sha256": None})
    scored = scored.model_copy(update={"delivery": without})
    yield end.model_copy(update={"scored": scored})
    for name in reversed(Metrics.model_fields):  # which stand there in the order of their importance
        scored = scored.model_copy(update={"metrics": scored.metrics.model_copy(update={name: None})})
        yield end.model_copy(update={"scored": scored})
    scored = scored.model_copy(update={"needed": ()})
    yield end.model_copy(update={"scored": scored})
    nothing = Delivery()
    for name in _DROPPED:
        delivery = scored.delivery.model_copy(update={name: getattr(nothing, name)})
        scored = scored.model_copy(update={"delivery": delivery})
        yield end.model_copy(update={"scored": scored})
