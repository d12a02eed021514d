"""Standard output and error of a command: they take any text, show what would act unseen as marks, and say when
their reader has gone."""

from __future__ import annotations

import codecs
import io
import os
import sys
import time
import unicodedata
from typing import TYPE_CHECKING, ClassVar, TextIO

from trialfleet_ledger.display_text import visible
from trialfleet_ledger.exit_codes import CommandExit

if TYPE_CHECKING:
    from rich.console import Console

_HANDLER = "trialfleet.replace"  # of encoding errors
_ASCII = {
    **dict.fromkeys("‐‑‒–—―−─━", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯", "+"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’‚′", "'"),
    **dict.fromkeys("•·▪■●", "*"),
    **dict.fromkeys("█▇▆▅▄▃▂▁", "#"),
    "⟨": "<",
    "⟩": ">",
    "␛": "^[",
    "…": "...",
    "→": "->",
    "←": "<-",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "≈": "~",
    "×": "x",
    "±": "+/-",
    "✓": "ok",
    "✗": "x",
    "€": "EUR",
}


def ascii_of(character: str) -> str:
    """What stands for a character that an encoding lacks: letters lose their accents, the unknown is `?`.

    >>> "".join(map(ascii_of, "≥é–漢"))
    '>=e-?'
    """
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return _ASCII.get(character) or bare or "?"


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(ascii_of, error.object[error.start : error.end])), error.end


class PlainOutput(io.TextIOWrapper):
    """A text stream in the terminal's encoding that cannot fail to encode. Raises `SystemExit` with
    `CommandExit.OUTPUT_CLOSED` when its reader has gone, as `head` does. `written_at`: when any of them was
    written to last, by `time.monotonic`; 0: never."""

    written_at: ClassVar[float] = 0.0

    def __init__(self, descriptor: int, like: TextIO) -> None:
        file = open(descriptor, "wb", closefd=False)  # noqa: SIM115 - lives as long as the process
        self._asked = codecs.lookup(like.encoding).name
        # click writes UTF-8 into a stream that calls itself ASCII, so that is done here, before encoding.
        encoding = "utf-8" if self._asked == "ascii" else like.encoding
        super().__init__(file, encoding, _HANDLER, line_buffering=like.isatty() or like is sys.stderr)

    def screen(self) -> Console:
        """A console that writes here: styles act, text of others does not."""
        from trialfleet_ledger.screen import Screen

        return Screen(stderr=self is sys.stderr)

    def write(self, text: str, /) -> int:
        self.write_verbatim(visible(text))
        return len(text)

    def write_verbatim(self, text: str) -> None:
        """Escapes of `text` act on the terminal."""
        PlainOutput.written_at = time.monotonic()
        if self._asked == "ascii":
            text = text.encode("ascii", _HANDLER).decode("ascii")
        try:
            super().write(text)
        except OSError as error:
            raise self._end(error) from None

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise self._end(error) from None

    def _end(self, error: OSError) -> BaseException:
        """What is still buffered goes to /dev/null, so that the interpreter's last flush does not fail as well."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        return SystemExit(CommandExit.OUTPUT_CLOSED) if isinstance(error, BrokenPipeError) else error


def prepare_streams() -> None:
    """Replace the process's own `sys.stdout` and `sys.stderr`. A descriptor that is closed at start is opened on
    /dev/null: the next file would get its number, and every child would write into it."""
    codecs.register_error(_HANDLER, _replace)
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stdout is sys.__stdout__:
        sys.stdout = _prepared(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _prepared(2, sys.stderr)


def _prepared(descriptor: int, stream: TextIO | None) -> TextIO:
    """`stream`: the interpreter's; None where it found the descriptor closed."""
    if stream is None:
        return open(descriptor, "w", encoding="utf-8", errors=_HANDLER, closefd=False)
    return PlainOutput(descriptor, stream)
