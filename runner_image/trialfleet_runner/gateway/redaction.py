"""Keeps the provider's keys out of what an agent gets: in headers, in whole bodies and in streams of any cut."""

from __future__ import annotations

from collections.abc import Iterable

from trialfleet_runner.gateway.record import REDACTED, secret_forms

_SHORTEST_KEY = 8  # characters; a local server takes any word as a key, and the word may stand in an answer


class KeyRedaction:
    """`secrets` are replaced by value, plain or as JSON escapes them. More may be added while it is used."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets: tuple[str, ...] = ()
        self._forms: tuple[bytes, ...] = ()
        for secret in secrets:
            self.hide(secret)

    def hide(self, secret: str) -> None:
        if len(secret) >= _SHORTEST_KEY:
            self._secrets = (*self._secrets, secret)
            self._forms = tuple(form.encode() for form in secret_forms(self._secrets))

    def redact_bytes(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form, REDACTED.encode())
        return data

    def redact_headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {
            name: self.redact_bytes(value.encode("latin-1", "replace")).decode("latin-1")
            for name, value in headers.items()
        }

    def open_length(self, data: bytes) -> int:
        """How many of the last bytes may be the start of a key."""
        return max((_overlap(data, form) for form in self._forms), default=0)


def _overlap(data: bytes, form: bytes) -> int:
    """Length of the longest end of `data` that begins `form` without being all of it."""
    at = data.find(form[:1], max(0, len(data) - len(form) + 1))
    while at >= 0 and not form.startswith(data[at:]):
        at = data.find(form[:1], at + 1)
    return len(data) - at if at >= 0 else 0


class StreamRedaction:
    """One stream. Bytes that may be the start of a key wait for the next chunk; everything else passes at once.

    >>> stream = StreamRedaction(KeyRedaction(["sk-secret"]))
    >>> stream.feed(b"a sk-se"), stream.feed(b"cret b"), stream.feed(b" sk"), stream.end()
    (b'a ', b'[redacted] b', b' ', b'sk')
    """

    def __init__(self, keys: KeyRedaction) -> None:
        self._keys, self._rest = keys, b""

    def feed(self, chunk: bytes) -> bytes:
        data = self._keys.redact_bytes(self._rest + chunk)
        waits = self._keys.open_length(data)
        self._rest = data[len(data) - waits :]
        return data[: len(data) - waits]

    def end(self) -> bytes:
        rest, self._rest = self._rest, b""
        return rest
