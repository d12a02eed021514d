"""The bodies that went through, for the bundle: redacted, capped, never a header."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

BODY_BYTES = 8 * 2**20
FILE_BYTES = 256 * 2**20
REDACTED = "[redacted]"


class JsonLinesFile:
    """Appends JSON lines to a file until it is full; then one line says how many are missing.

    `secrets` are replaced by value wherever they stand, also where JSON escapes them.
    """

    def __init__(self, path: Path, secrets: tuple[str, ...], *, limit: int = FILE_BYTES) -> None:
        self._path, self._limit = path, limit
        self._secrets = secret_forms(secrets)
        self._size = self._missing = 0
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb", buffering=0)

    def hide(self, secret: str) -> None:
        """From now on this one too."""
        self._secrets = secret_forms((*self._secrets, secret))

    def write(self, row: dict[str, Any]) -> None:
        try:
            text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:  # an agent's request may be as deep as can be read
            text = '{"too_deep":true}'
        data = self.redact(text).encode(errors="replace")
        with self._lock:
            if self._file.closed or self._size + len(data) > self._limit:
                self._missing += 1
                return
            self._file.write(data + b"\n")
            self._size += len(data) + 1

    def redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def close(self) -> None:
        with self._lock:
            if not self._file.closed:
                if self._missing:
                    self._file.write(b'{"missing_lines":%d}\n' % self._missing)
                self._file.close()


def secret_forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Each secret, plain and in JSON's escaped form; the longest first."""
    forms = {form for secret in secrets if secret for form in (secret, json.dumps(secret)[1:-1])}
    return tuple(sorted(forms, key=len, reverse=True))


def capped(body: dict[str, Any], size: int) -> dict[str, Any]:
    """The body, or a note of its size when it is too large to keep."""
    return body if size <= BODY_BYTES else {"omitted_bytes": size}
