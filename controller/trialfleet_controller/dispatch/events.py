"""Events of a campaign as they happen, as small values and as JSON lines.

Events carry no verdicts: counting passes while a campaign runs is a look at its results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.errors import OperatorError

LOG_VARIABLE = "TRIALFLEET_LOG"  # "json": as --log-json -
_QUERY = re.compile(r"(https?://[^\s?\"'<>]*)\?[^\s\"'<>]*")
_USER = re.compile(r"(?<=://)[^/\s@]+@")


class EventKind(StrEnum):
    """Of a `CampaignEvent`."""

    LAUNCHED = "launched"  # detail: latency_s, from the decision to the backend's answer
    FINISHED = "finished"  # an attempt ended with a verdict, which is not named
    LOST = "lost"  # detail: loss, message
    RETRIED = "retried"  # the trial waits for its next attempt
    HALTED = "halted"  # detail: task, condition (neither: the campaign), reason
    LEASED = "leased"  # detail: width, money_usd
    MESSAGE = "message"  # detail: message


Detail = Mapping[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class CampaignEvent:
    """`at`: seconds since 1970, by the clock of the machine that saw it."""

    at: float
    kind: EventKind
    trial: str | None = None
    attempt: int | None = None
    detail: Detail = field(default_factory=dict[str, str | int | float | None])
    shard: int | None = None


Note = Callable[[CampaignEvent], None]


def ignore(event: CampaignEvent) -> None:
    """Keeps no log."""


def scrubbed(text: str) -> str:
    """Remove secrets from URLs: signatures in the query, a password before the host.

    >>> scrubbed("GET https://key:secret@store/a?X-Amz-Signature=abc failed")
    'GET https://store/a?… failed'
    """
    return _USER.sub("", _QUERY.sub(r"\1?…", text))


def line(event: CampaignEvent, campaign: str) -> str:
    """One JSON object, without keys that have no value."""
    found = {
        "at": round(event.at, 3),
        "event": event.kind.value,
        "campaign": campaign,
        "shard": event.shard,
        "trial": event.trial,
        "attempt": event.attempt,
        **{name: scrubbed(value) if isinstance(value, str) else value for name, value in event.detail.items()},
    }
    return printable_json({name: value for name, value in found.items() if value is not None})


@contextmanager
def json_log(path: str | None, campaign: str) -> Generator[Note]:
    """Append each event to the file as a JSON line. "-": standard error; None: no log. Raises `OperatorError` if
    the file cannot be opened."""
    if path is None:
        yield ignore
        return
    with nullcontext(sys.stderr) if path == "-" else _opened(path) as file:
        yield lambda event: print(line(event, campaign), file=file, flush=True)


def _opened(path: str) -> TextIO:
    try:
        return Path(path).open("a", encoding="utf-8")
    except OSError as error:
        raise OperatorError(
            f"the log cannot be written: {error.strerror}", where=f"--log-json {path}", hint="give another file"
        ) from error
