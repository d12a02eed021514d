"""How a full disk shows itself: as an error of a system call, or in what a program prints."""

from __future__ import annotations

import errno

# EFBIG: the file system, or the user's limit, allows no larger file.
_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = ("No space left on device", "Disk quota exceeded", "File too large")  # the same, as programs print them


def is_full(error: OSError) -> bool:
    """Whether the system call found no room.

    >>> is_full(OSError(28, "No space left on device")), is_full(OSError(13, "Permission denied"))
    (True, False)

    `shutil.copytree` tells all its errors in one, which has no number:

    >>> is_full(OSError([("a", "b", "[Errno 28] No space left on device: 'b'")]))
    True
    """
    return error.errno in _ERRNOS or (error.errno is None and says_full(str(error)))


def says_full(text: str) -> bool:
    """Whether a program that found no room printed this.

    >>> says_full("cp: write error: No space left on device"), says_full("tar: x: File too large")
    (True, True)
    """
    return any(words in text for words in _WORDS)
