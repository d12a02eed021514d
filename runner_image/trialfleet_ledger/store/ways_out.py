"""What an operator can do about a system call that failed."""

from __future__ import annotations

import errno

from trialfleet_ledger.store.full_disk import is_full

FREE_SPACE = "free disk space there, or name another place"
_WAYS_OUT = {
    errno.EACCES: "change its owner or its permissions, or name another place",
    errno.EPERM: "change its owner or its permissions, or name another place",
    errno.EROFS: "name a place that can be written: --out or `store` for results, $TRIALFLEET_CACHE and "
    "$TRIALFLEET_SCRATCH for what a command keeps for itself",
    errno.ENOTDIR: "a file is where a folder is needed: move it away, or name another place",
    errno.EISDIR: "a folder is where a file is needed: move it away, or name another place",
    errno.EEXIST: "move it away, or name another place",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.ELOOP: "a symbolic link points to itself: remove it",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "close other programs: this machine's table of open files is full",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`), or end other programs",
    errno.ENOMEM: "end other programs, or raise the limit of memory (`ulimit -v`)",
    errno.EIO: "check the disk: the file system cannot read or write there",
    errno.ESTALE: "mount the network file system again",
}


def way_out(error: OSError) -> str | None:
    """
    >>> way_out(OSError(36, "File name too long"))
    'use a shorter path'

    None where the number does not say one:

    >>> way_out(OSError(2, "No such file or directory"))
    """
    return FREE_SPACE if is_full(error) else _WAYS_OUT.get(error.errno or 0)
