"""How a process of this machine starts a runner: its environment, and the messages of a fork server."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

# In the environment of a runner that must not outlive the process that started it: that process's id.
PARENT = "TRIALFLEET_PARENT_PID"
# The file for the end of a runner that was told to stop: its controller knows who stopped it, and commits the end.
LAST_WORDS = "TRIALFLEET_LAST_WORDS"
LARGEST_MESSAGE = 16384  # bytes, between a fork server and its client


@dataclass(frozen=True)
class ForkRequest:
    """One runner that a fork server shall start. `grants`: the file that it reads; `last_words`: as `LAST_WORDS`,
    or None."""

    grants: str
    last_words: str | None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, message: bytes) -> ForkRequest:
        return cls(**json.loads(message))
