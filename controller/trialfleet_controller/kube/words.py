"""A runner's termination message: hostile input until it parses."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from trialfleet_runner.contract import End, LastWords

LIMIT = 4096  # bytes: what a kubelet keeps of one container


@dataclass(frozen=True, slots=True)
class Said:
    """`end`: one of this very attempt that its runner could not write; `message`: its diagnosis."""

    end: End | None = None
    message: str = ""


def last_words(text: str, attempt: tuple[str, int]) -> Said:
    """What the runner of `attempt` (trial, number) left. Anything but a record of ours is diagnosis at best."""
    if len(text.encode()) > LIMIT:
        return Said()
    try:
        words = LastWords.model_validate_json(text)
    except ValidationError:
        return Said(message=text.strip())
    end = words.end
    if end is not None and ((end.trial, end.attempt) != attempt or end.by != "runner"):
        end = None
    return Said(end, words.message)
