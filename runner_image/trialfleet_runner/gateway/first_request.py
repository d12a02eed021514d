"""The first request of an agent's loop: what shows whether a condition changed anything at the start."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trialfleet_deliveries.request_form import list_varying, normalise_request
from trialfleet_ledger.canonical import sha256

LARGEST = 2**20  # bytes of a request that is compared


@dataclass(frozen=True)
class KeptRequest:
    """`size`: of the body, in bytes."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    size: int
    has_tools: bool


@dataclass
class FirstAnswered:
    """Of the requests to the main model that it answered. Thread-safe. Titles and probes, which offer no tools,
    may come before the agent's loop: the first request that offers tools takes their place."""

    _kept: KeptRequest | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def confirm_read(self, request: KeptRequest) -> None:
        """The main model has read this request."""
        with self._lock:
            if self._kept is None or (request.has_tools and not self._kept.has_tools):
                self._kept = request

    def begin_run(self) -> None:
        """Another run of the agent's program follows, and its first request counts."""
        with self._lock:
            self._kept = None

    def make_digest(self, given: Iterable[str], folder: str | None = None) -> str | None:
        """SHA-256 of its normalised form, which two runs that are given the same have in common; None: there is no
        such request, or it is too large or too deep. `given`: the texts of the condition; `folder`: of the
        attempt."""
        kept = self._kept
        if kept is None or kept.size > LARGEST:
            return None
        try:
            form = normalise_request(kept.path, kept.headers, kept.body, given=list_varying(given), folder=folder)
            return sha256(json.dumps(form, separators=(",", ":")).encode())
        except RecursionError:
            return None
