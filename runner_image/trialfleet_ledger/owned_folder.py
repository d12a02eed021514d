"""A folder that trialfleet created below one that the user names: all that is ever swept or emptied.

The proof is a marker in it, which is written before anything else. A folder of the same name without the marker is
never used and never changed.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.trusted_folder import find_intruder, reason_untrusted

MARKER = ".trialfleet-folder"
VERSION = 1
Purpose = Literal["scratch", "cache", "ray"]
_VARIABLES: dict[Purpose, str] = {"scratch": "$TRIALFLEET_SCRATCH", "cache": "$TRIALFLEET_CACHE", "ray": "/tmp"}  # noqa: S108
_UNUSABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class OwnedFolder:
    """A folder with the marker: the value is the proof, and cannot be made without it. Raises `OperatorError` for
    a folder that trialfleet did not create, or that another user can write."""

    path: Path
    purpose: Purpose

    def __post_init__(self) -> None:
        with _open(self.path, self.purpose) as fd:
            if _read_marker(fd) != marker_of(self.purpose):
                raise _foreign(self.path, self.purpose, f"it lacks the marker {MARKER} of trialfleet")

    def entries(self) -> Iterator[Path]:
        """What is in it, sorted, without the marker."""
        yield from sorted(path for path in self.path.iterdir() if path.name != MARKER)


def marker_of(purpose: Purpose) -> bytes:
    """The marker's content.

    >>> json.loads(marker_of("cache"))["id"]
    'trialfleet-cache'
    """
    note = "trialfleet created this folder and deletes what is in it"
    return json.dumps({"id": f"trialfleet-{purpose}", "version": VERSION, "note": note}).encode() + b"\n"


def owned_path(given: Path, purpose: Purpose) -> Path:
    """Where this user's folder lies below `given`. Two users may name the same folder."""
    return given / f"trialfleet-{purpose}-{os.geteuid()}"


def find_folder(given: Path, purpose: Purpose) -> OwnedFolder | None:
    """This user's folder below `given`; None if there is none. Raises `OperatorError` as `claim_folder`."""
    if not os.path.lexists(owned_path(given, purpose)):
        return None
    _refuse_intruders(given, purpose)
    return OwnedFolder(owned_path(given, purpose), purpose)


def claim_folder(given: Path, purpose: Purpose) -> OwnedFolder:
    """This user's folder below `given`; both are created if absent.

    Raises `OperatorError` if another user can replace a folder on the way, if a folder of that name lacks the
    marker, or if this user cannot create folders there. The next call completes what `kill -9` leaves.
    """
    folder = owned_path(given, purpose)
    with _usable(given, purpose):
        given.parent.mkdir(parents=True, exist_ok=True)
        _create(given)
        _refuse_intruders(given, purpose)
        _create(folder)
        return mark_folder(folder, purpose)


def _create(folder: Path) -> None:
    """A folder that others can enter under any umask: an agent with another uid runs programs below it."""
    try:
        folder.mkdir(mode=0o711)
    except FileExistsError:
        return
    fd = os.open(folder, _FOLDER)
    try:
        os.fchmod(fd, 0o711)
    finally:
        os.close(fd)


def mark_folder(folder: Path, purpose: Purpose) -> OwnedFolder:
    """Write the marker into an empty folder. If others do so at the same time, they write the same bytes. Raises
    `OperatorError` if the folder holds something and no marker."""
    with _open(folder, purpose) as fd:
        whole, present = marker_of(purpose), _read_marker(fd)
        if present != whole and whole.startswith(present or b"") and set(os.listdir(fd)) <= {MARKER}:  # noqa: PTH208
            _write_marker(fd, whole)
    return OwnedFolder(folder, purpose)


def _write_marker(fd: int, data: bytes) -> None:
    file = os.open(MARKER, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=fd)
    try:
        os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    os.fsync(fd)


def _read_marker(fd: int) -> bytes | None:
    """None: there is no regular file of that name."""
    try:
        file = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except FileNotFoundError:
        return None
    except OSError:
        return b"unreadable"
    try:
        return os.read(file, 2**12) if stat.S_ISREG(os.fstat(file).st_mode) else b"no file"
    finally:
        os.close(file)


@contextmanager
def _open(folder: Path, purpose: Purpose) -> Generator[int]:
    """A descriptor of a folder, not a link, that this user owns and no other can write."""
    try:
        fd = os.open(folder, _FOLDER)
    except OSError as error:
        raise _foreign(folder, purpose, f"it is no folder that can be opened ({error.strerror})") from error
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise _foreign(folder, purpose, f"it belongs to user {status.st_uid}, not to {os.geteuid()}")
        if reason := reason_untrusted(status):
            raise _foreign(folder, purpose, reason)
        yield fd
    finally:
        os.close(fd)


def _foreign(folder: Path, purpose: Purpose, reason: str) -> OperatorError:
    return OperatorError(
        f"trialfleet neither uses this folder nor deletes anything in it: {reason}",
        where=f"{purpose}: {folder}",
        hint=f"look into it; `rm -r {shlex.quote(str(folder))}` removes it"
        + ("" if purpose == "ray" else f", or set {_VARIABLES[purpose]} to another folder"),
    )


def _refuse_intruders(given: Path, purpose: Purpose) -> None:
    intruder = find_intruder(given)
    if intruder is None:
        return
    folder, reason = intruder
    raise OperatorError(
        f"another user could swap folders under a running trial: {reason}",
        where=f"{purpose}: {folder}",
        hint=f"set {_VARIABLES[purpose]} to a folder that only you and root can write, or, if you trust this one, "
        f"make it yours: `chown {os.geteuid()} {shlex.quote(str(folder))}` and `chmod go-w` (or `chmod +t`)",
    )


@contextmanager
def _usable(given: Path, purpose: Purpose) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        raise OperatorError(
            f"this user cannot create a folder here: {error.strerror}",
            where=f"{purpose}: {given}",
            hint=f"give this user write permission, or set {_VARIABLES[purpose]} to a folder that it can write",
        ) from error
