"""A short-lived access token of Google Cloud, from a file or a command, read again before it expires."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_ledger.untrusted import finite, json_object, plain

_COMMAND_TIMEOUT_S = 60
_LIFETIME_S = 300.0  # of a command's bare token: gcloud prints one that lives for at least this long
_MARGIN_S = 60.0

Read = Callable[[], tuple[str, float]]  # the token, and for how many seconds it may be used


@dataclass
class AccessToken:
    """Thread-safe. `OSError` from `get` when there is no token: the provider cannot be reached for now."""

    read: Read
    clock: Callable[[], float] = time.monotonic
    _token: str = ""
    _until: float = 0.0
    _hide: Callable[[str], None] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self) -> str:
        with self._lock:
            if self.clock() >= self._until:
                self._renew()
            return self._token

    def renew(self, refused: str) -> bool:
        """After a 401 for `refused`: whether there is another token now."""
        with self._lock:
            if self._token == refused:
                self._renew()
            return self._token != refused

    def watch(self, hide: Callable[[str], None]) -> None:
        """`hide` gets every token from now on, and the present one."""
        with self._lock:
            self._hide = hide
            if self._token:
                hide(self._token)

    def _renew(self) -> None:
        token, lives = self.read()
        if not token or any(ord(char) < 33 or ord(char) > 126 for char in token):
            raise OSError("the access token is empty or holds spaces")
        self._token, self._until = token, self.clock() + lives
        if self._hide is not None:
            self._hide(token)


def from_text(text: str) -> tuple[str, float]:
    """A bare token, or JSON as Google's token servers answer.

    >>> from_text("ya29.x\\n"), from_text('{"access_token": "ya29.x", "expires_in": 3599}')
    (('ya29.x', 300.0), ('ya29.x', 3539.0))
    """
    found = json_object(text)
    if not found:
        return text.strip(), _LIFETIME_S
    lives = finite(found.get("expires_in"))
    return str(found.get("access_token") or ""), _LIFETIME_S if lives is None else max(0.0, lives - _MARGIN_S)


def of_file(path: Path) -> Read:
    """The file is read for every request, because the program that renews the token replaces it."""
    return lambda: (from_text(path.read_text(encoding="utf-8"))[0], 0.0)


def of_command(argv: list[str]) -> Read:
    def run() -> tuple[str, float]:
        try:
            ran = subprocess.run(
                argv,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_COMMAND_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"the token command took more than {_COMMAND_TIMEOUT_S} s") from error
        if ran.returncode:
            raise OSError(f"the token command failed ({ran.returncode}): {plain(ran.stderr.strip()[-200:])}")
        return from_text(ran.stdout)

    return run
