"""Whole-or-absent writes on a file system. The directory store and the runner's file:// grants share them.

Every function works below an open folder (a descriptor), so that no symbolic link planted in a path can
lead elsewhere. A value becomes visible by `link`, which never replaces, after its bytes are on disk.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.full_disk import is_full
from trialfleet_ledger.store.key_syntax import TEMPORARY
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.ways_out import way_out

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a planted pipe must not block
_LARGEST_IO = 2**30  # Linux moves at most 2 GiB less a page in one call
_VANISHED_RETRIES = 100  # `gc` may remove a folder or a temporary under a writer

_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_TEMPORARY_NAME = re.compile(rf"{re.escape(TEMPORARY)}[0-9]+-[0-9a-f]{{16}}")
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}


@contextmanager
def speaking(what: str) -> Generator[None]:
    """Turns the OSErrors of the block into StoreError, or OperatorError where only the operator can help."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise StoreError(
                f"{what}: the disk is full, or a quota is spent ({error.strerror}); nothing was written",
                hint="free disk space there, or raise the quota",
            ) from error
        if error.errno in _FORBIDDEN:
            raise OperatorError(
                f"{what}: {error.strerror}", hint="let this user write there, or choose another store"
            ) from error
        raise StoreError(f"{what}: {error.strerror or error}", hint=way_out(error)) from error


@contextmanager
def open_folder(root: Path, parts: Sequence[str] = (), *, make: bool = False) -> Generator[int]:
    """A descriptor of `root/parts…`; below `root` no symbolic link is followed.

    With `make`, missing folders are made and are durable before the block runs. Raises FileNotFoundError
    or NotADirectoryError when there is no such folder, StoreError on a symbolic link.
    """
    fd = _open_root(root, make)
    try:
        for part in parts:
            inner = enter_folder(fd, part, make=make)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _open_root(root: Path, make: bool) -> int:
    try:
        return os.open(root, _FOLDER)
    except FileNotFoundError:
        if not make:
            raise
    _make_root(root)
    return os.open(root, _FOLDER)


def check_root(root: Path) -> None:
    """Raises `OperatorError` where no store can be: on a file, or below one."""
    there = next(path for path in (root, *root.parents) if path.exists())
    if not there.is_dir():
        raise OperatorError(
            f"{root} cannot be a store: {there} is a file, not a folder",
            hint="name a folder, which is made when it is missing, or s3://bucket/prefix",
        )


def _make_root(root: Path) -> None:
    """Makes `root` closed to other users: agents that run under another uid must not read the store."""
    if not root.parent.exists():
        _make_root(root.parent)
    with suppress(FileExistsError):
        try:
            root.mkdir(mode=0o700)
        except (
            FileNotFoundError
        ):  # /proc and its like hold nothing that is made; anywhere else the parent has gone
            if not root.parent.exists():
                raise
            raise OperatorError(
                f"no folder can be made in {root.parent}", hint="name a folder on a disk for the store"
            ) from None
    _sync_folder(root.parent)


def enter_folder(fd: int, part: str, *, make: bool = False) -> int:
    """A descriptor of the folder `part` of an open folder. Raises as `open_folder`."""
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError as error:
        if stat.S_ISLNK(os.lstat(part, dir_fd=fd).st_mode):
            raise StoreError(f"{part}: a symbolic link where a folder should be") from error
        raise
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=fd)
    os.fsync(fd)
    return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)


def _sync_folder(path: Path) -> None:
    fd = os.open(path, _FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def create(root: Path, parts: Sequence[str], data: bytes) -> bool:
    """Create `root/parts…` if absent. True: it now holds `data`; False: it holds something else.

    Durable on return in both cases: a reader that obeys an existing value must find it again after a power cut.
    """
    *folders, name = parts
    for _ in range(_VANISHED_RETRIES):
        with suppress(FileNotFoundError), open_folder(root, folders, make=True) as fd:
            return _create_in(fd, name, data)
    raise StoreError(f"{'/'.join(parts)}: its folder is removed each time that it is created")


def _create_in(fd: int, name: str, data: bytes) -> bool:
    """Raises FileNotFoundError if the folder, the temporary file or the other value vanished: the caller
    retries."""
    if not _exists(fd, name) and _link_new(fd, name, data):
        return True
    present = read_in(fd, name)
    if present is None:
        raise FileNotFoundError(errno.ENOENT, "vanished", name)
    os.fsync(fd)
    return present == data


def _link_new(fd: int, name: str, data: bytes) -> bool:
    """Whether the name was free and is now a new file that holds `data`."""
    temporary = _write_temporary(fd, data)
    try:
        os.link(temporary, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise OperatorError(
            "this file system has no hard links", hint="put the store on ext4, xfs, btrfs or NFS"
        ) from error
    finally:
        _unlink(fd, temporary)
    os.fsync(fd)  # one call makes both the link and the end of the temporary durable
    return True


def replace(root: Path, parts: Sequence[str], data: bytes) -> None:
    """Write `root/parts…`, replacing what was there. Readers see the old bytes or the new ones."""
    *folders, name = parts
    for _ in range(_VANISHED_RETRIES):
        with suppress(FileNotFoundError), open_folder(root, folders, make=True) as fd:
            temporary = _write_temporary(fd, data)
            try:
                os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
            finally:
                _unlink(fd, temporary)
            os.fsync(fd)
            return
    raise StoreError(f"{'/'.join(parts)}: its folder is removed each time that it is created")


def read_in(fd: int, name: str, *, limit: int | None = None) -> bytes | None:
    """All bytes of a regular file in the folder; None when it does not exist or is a folder.

    Raises StoreError on a symbolic link, a device or a pipe, and when there are more than `limit` bytes.
    """
    try:
        file = os.open(name, _READ, dir_fd=fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{name}: a symbolic link where a value should be") from error
        raise
    try:
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{name}: not a regular file")
        if limit is not None and status.st_size > limit:
            raise StoreError(f"{name}: {status.st_size} bytes where at most {limit} are read")
        return _read_all(file, status.st_size)
    finally:
        os.close(file)


def read(root: Path, parts: Sequence[str], *, limit: int | None = None) -> bytes | None:
    """`root/parts…`, as `read_in`; None also when a folder on the way is missing."""
    *folders, name = parts
    with suppress(FileNotFoundError, NotADirectoryError), open_folder(root, folders) as fd:
        return read_in(fd, name, limit=limit)
    return None


def _read_all(file: int, size: int) -> bytes:
    """`size` bytes; visible files never change, so a short file is a broken one."""
    first = os.read(file, min(size, _LARGEST_IO)) if size else b""
    if len(first) == size:
        return first
    blocks, left = [first], size - len(first)
    while left:
        block = os.read(file, min(left, _LARGEST_IO))
        if not block:
            raise StoreError(f"a file ended {left} bytes early")
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)


def _exists(fd: int, name: str) -> bool:
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{name}: a folder or a link of that name is in the way")
    return True


def is_temporary(name: str) -> bool:
    """Whether `_write_temporary` gives such names: a file of another form is somebody else's.

    >>> is_temporary(".tmp-12-0123456789abcdef"), is_temporary(".tmp-thesis")
    (True, False)
    """
    return _TEMPORARY_NAME.fullmatch(name) is not None


def _write_temporary(fd: int, data: bytes) -> str:
    """A new file that holds `data`, on disk; its name. Gone again when it could not be written whole."""
    name = f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
    file = os.open(name, _NEW, 0o666, dir_fd=fd)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(file, left[:_LARGEST_IO]) :]
        os.fsync(file)
    except BaseException:
        _unlink(fd, name)
        raise
    finally:
        os.close(file)
    return name


def _unlink(fd: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=fd)
