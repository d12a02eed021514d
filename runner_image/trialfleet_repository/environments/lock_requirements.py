"""What a requirements lock may say to uv, which reads it outside the sandbox."""

from __future__ import annotations

import re

from trialfleet_ledger.errors import OperatorError

# The user's index and links count, not the lock's.
_INDEX = re.compile(
    r"[\s\ufeff]*(?:-i|-f|--index-url|--extra-index-url|--find-links|--no-index|--trusted-host|--pre|--prefer-binary)\b"
)
_OPTION = re.compile(r"[\s\ufeff]*-(?!-hash[ =])")


def read_requirements(lock: bytes) -> bytes:
    """The lock without options that choose an index. Raises `OperatorError` for options that name other files
    (`-r`, `-c`, `-e`), and for a variable: uv would put its value, which may be a login, into an address.

    >>> read_requirements(b"--index-url https://index.example/\\nblinker==1.9 --hash=sha256:00\\n")
    b'blinker==1.9 --hash=sha256:00\\n'
    """
    lines = lock.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    kept = [line for line in lines if not _INDEX.match(line)]
    for line in kept:
        if _OPTION.match(line) or "${" in line:
            raise OperatorError(
                f"the lock has a line that is not a requirement: {line.strip()[:200]!r}",
                where="environment.lock",
                hint="write it with `uv pip compile --generate-hashes`: pins with hashes, without options that "
                "name files and without variables",
            )
    return "".join(kept).encode("utf-8", "surrogateescape")
