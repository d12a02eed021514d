"""What a requirements lock may say to uv, which reads it outside the sandbox."""

from __future__ import annotations

import re

from trialfleet_ledger.errors import OperatorError

# The user's index and links count, not the lock's.
_INDEX = re.compile(
    r"\s*(?:-i|-f|--index-url|--extra-index-url|--find-links|--no-index|--trusted-host|--pre|--prefer-binary)\b"
)
_ENDS = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")  # where lines end for uv
_COMMENT = re.compile(r"(?:^|\s)#")
_HASH = re.compile(r"--hash=[a-z0-9]+:[A-Za-z0-9_=-]+")


def read_requirements(lock: bytes) -> bytes:
    """The lock without lines that choose an index. Raises `OperatorError` for a line that is neither a requirement
    with hashes nor a comment, such as an option that names another file (`-r`, `-c`, `-e`), and for a variable: uv
    would put its value, which may be a login, into an address.

    >>> read_requirements(b"--index-url https://index.example/\\nblinker==1.9 --hash=sha256:00\\n")
    b'blinker==1.9 --hash=sha256:00\\n'
    """
    text = lock.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    kept = [line for line in _ENDS.split(text) if not _INDEX.match(line)]
    for line in kept:
        if not _is_harmless(line):
            raise OperatorError(
                f"the lock has a line that is not a requirement: {line.strip()[:200]!r}",
                where="environment.lock",
                hint="write it with `uv pip compile --generate-hashes`: pins with hashes, without options that "
                "name files and without variables",
            )
    return "".join(kept).encode("utf-8", "surrogateescape")


def _is_harmless(line: str) -> bool:
    """uv takes options that stand after a hash, too."""
    text = _COMMENT.split(line.rstrip("\r\n"), maxsplit=1)[0].strip(" \t\f")
    if "${" in line or not text.replace("\t", " ").isprintable():
        return False
    words = text.removesuffix("\\").replace("--hash ", "--hash=").split()
    first = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    starts = not words or first == 0 or (words[0][0].isascii() and words[0][0].isalnum())
    return starts and "\\" not in "".join(words) and all(map(_HASH.fullmatch, words[first:]))
