"""Whether another user of this machine can replace a folder: its owner, and that of each folder above, can."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

_POD = ("KUBERNETES_SERVICE_HOST", "TRIALFLEET_POD_UID")  # the kubelet sets the first, a pod of ours the second
_UID_MAP = Path("/proc/self/uid_map")
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")


def inside_a_pod(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a Kubernetes pod, which has no other users."""
    return any(name in environ for name in _POD)


def find_intruder(folder: Path) -> tuple[Path, str] | None:
    """The first existing folder, from the root down to `folder`, that another user than root can change, and why;
    None if there is none. Links on the way are checked, and so is where they lead.

    In a pod a folder of root is accepted whatever its mode: an emptyDir is root's with mode 0777.
    """
    for path in dict.fromkeys((*_way_to(folder.absolute()), *_way_to(folder.resolve()))):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if reason := reason_untrusted(status):
            return path, reason
    return None


def _way_to(folder: Path) -> Iterator[Path]:
    yield from reversed(folder.parents)
    yield folder


def reason_untrusted(status: os.stat_result) -> str | None:
    """Who else can replace what is in a folder (or a link) with this status; None: only this user and root can."""
    if status.st_uid not in _trusted_users():
        return f"user {_name_of(status.st_uid)} owns it and can replace what is in it"
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return None
    if inside_a_pod() and status.st_uid == 0:
        return None
    mode = f"mode {stat.S_IMODE(status.st_mode):04o} without the sticky bit"
    if status.st_mode & stat.S_IWOTH:
        return f"every user can replace what is in it ({mode})"
    if status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid):
        return f"its group can replace what is in it ({mode})"
    return None


def _trusted_users() -> set[int]:
    """This user and root. In a user namespace that does not map root, root's files show the overflow uid."""
    mapped = [line.split() for line in _UID_MAP.read_text(encoding="ascii").splitlines()]
    whole = any(int(count) >= 2**32 - 1 for _, _, count in mapped)
    return {os.geteuid(), 0} if whole else {os.geteuid(), 0, int(_OVERFLOW.read_text(encoding="ascii"))}


def _is_private(gid: int) -> bool:
    """Whether the group is root's, or the one that many systems give to each user, named as the user."""
    if gid == 0:
        return True
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _name_of(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)
