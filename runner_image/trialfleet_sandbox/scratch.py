"""The folder of one attempt: below nothing that holds context files, locked while its runner lives."""

from __future__ import annotations

import array
import fcntl
import os
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.owned_folder import OwnedFolder, claim_folder, find_folder, owned_path
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.removal import remove, remove_entry

LOCK = "lock"
TMP = "tmp"  # folder of a container's volume that is mounted as its /tmp
LOOK_S = 0.1  # between two tries of a lock that another runner holds
YOUNG_S = 60.0  # so long may its maker take from making a folder to locking it

# linux/fs.h. An ext4 folder with this flag spreads its children over the disk's block groups.
_GETFLAGS, _SETFLAGS, _TOPDIR = 0x80086601, 0x40086602, 0x00020000


def scratch_root() -> Path:
    """`$TRIALFLEET_SCRATCH`, or a folder of this user below /var/tmp. It may hold anything; trialfleet writes and
    deletes in `scratch_folder` alone."""
    chosen = os.environ.get("TRIALFLEET_SCRATCH")
    return Path(chosen) if chosen else Path(f"/var/tmp/trialfleet-{os.getuid()}")  # noqa: S108 - ours, mode 0711


def scratch_folder() -> Path:
    """The folder of all attempts of this user, which need not exist."""
    return owned_path(scratch_root(), "scratch")


def claim_scratch() -> OwnedFolder:
    """The same folder, which exists. Raises `OperatorError` as `claim_folder`."""
    is_new = not os.path.lexists(scratch_folder())
    owned = claim_folder(scratch_root(), "scratch")
    if is_new:
        _spread(owned.path)
    return owned


def find_scratch() -> OwnedFolder | None:
    """The same folder; None if it does not exist."""
    return find_folder(scratch_root(), "scratch")


def folder_name(grants: Grants) -> str:
    """The attempt's folder below the scratch root. Trials of two campaigns with equal cells have equal ids; their
    intents' nonces differ, and start.json says where the folder is."""
    return f"{grants.trial.id}-{grants.attempt}-{sha256(grants.intent_nonce.encode())[:8]}"


@dataclass(frozen=True)
class Scratch:
    """The folders of one attempt, which exist: the runner's own, the one that the agent writes, the one that the
    agent only reads, and the one that the tests write. On one machine they are the same folder, and the sandbox
    shows a program its part; in a pod they are volumes of the containers that need them.
    """

    runner: Path
    agent: Path
    shown: Path
    scorer: Path

    @classmethod
    def below(cls, folder: Path) -> Scratch:
        """All in one folder."""
        return cls(folder, folder, folder, folder)

    @property
    def workspace(self) -> Path:
        return self.agent / "workspace"

    @property
    def home(self) -> Path:
        return self.agent / "home"

    @property
    def context(self) -> Path:
        return self.shown / "context"

    @property
    def score(self) -> Path:
        return self.scorer / "score"

    @property
    def record(self) -> Path:
        return self.runner / "record"

    @property
    def tests(self) -> Path:
        """The results of the tests, kept outside `score`, where the tests run."""
        return self.runner / "tests"

    @property
    def socket(self) -> Path:
        return self.runner / "gateway.sock"

    def free(self, *, keep: Collection[str] = ()) -> None:
        """Remove what the agent wrote, except for names to `keep`. If the agent has a separate volume, remove
        everything in it."""
        if self.agent != self.runner:
            _clear(self.agent, keep)
            return
        for name in {"workspace", "home"} - set(keep):
            remove(self.agent / name)

    def empty_score(self) -> Path:
        """`score` as a new, empty folder. If the tests have a separate volume, remove everything else in it: what
        a scoring run leaves must not decide the next one."""
        if self.scorer != self.runner:
            _clear(self.scorer, ())
        return emptied(self.score)


def _clear(volume: Path, keep: Collection[str]) -> None:
    """Remove what is in a volume, except for names to `keep`. Its folder `tmp` stays, empty: it is mounted as
    /tmp, where nothing could be written if it were removed."""
    for path in volume.iterdir():
        if path.name in keep:
            continue
        if path.name == TMP and path.is_dir() and not path.is_symlink():
            for child in path.iterdir():
                remove(child)
        else:
            remove(path)


def emptied(folder: Path) -> Path:
    """A new, empty folder that replaces everything there: an agent with the runner's uid may have written it."""
    remove(folder)
    folder.mkdir(mode=0o711, parents=True)
    return folder


class Busy(Exception):
    """Another runner holds this folder."""


@contextmanager
def locked(root: OwnedFolder, name: str, *, stopped: Callable[[], bool] | None = None) -> Generator[Scratch]:
    """A fresh, locked folder `name` in `root`, removed at the end. Raises `Busy` while a living runner holds it;
    with `stopped`, waits for that runner and raises once `stopped` returns true."""
    folder = root.path / name
    while (descriptor := _lock(folder)) is None:
        if stopped is None or stopped():
            raise Busy(f"another runner holds {folder}")
        time.sleep(LOOK_S)
    try:
        for left in folder.iterdir():
            if left.name != LOCK:
                remove(left)
        scratch = Scratch.below(folder)
        scratch.record.mkdir(mode=0o700)
        try:
            yield scratch
        finally:
            if "TRIALFLEET_KEEP_SCRATCH" not in os.environ:
                remove_entry(root, name)
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the lock of `folder`, which is created if absent. None: another runner holds the
    lock or has removed the folder."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o711)
    return _hold(folder, os.O_CREAT)


def _hold(folder: Path, create: int = 0) -> int | None:
    """A descriptor that holds the lock of `folder`. None: it has no lock file, another process holds the lock or
    has removed the folder. `create`: a flag of `os.open`."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | create | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), (folder / LOCK).stat()):
            return descriptor
    os.close(descriptor)
    return None


def _spread(root: Path) -> None:
    """Ask ext4 to spread the attempts' files. ext4 does not reuse a freed inode for a minute or more and examines
    every freed inode for each new file: with attempts in one place, the tenth copy of 2,000 files took 1.3 core
    seconds instead of 0.09. Other file systems ignore or refuse the flag."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = array.array("l", [0])
        fcntl.ioctl(descriptor, _GETFLAGS, flags, True)
        flags[0] |= _TOPDIR
        fcntl.ioctl(descriptor, _SETFLAGS, flags)
    except OSError:
        return
    finally:
        os.close(descriptor)


def abandoned(folder: Path) -> bool:
    """True when no living process, runner or controller, holds `folder`."""
    with _abandonment(folder) as proven:
        return proven


@contextmanager
def _abandonment(folder: Path) -> Generator[bool]:
    """Whether no living process holds `folder`; its lock is held meanwhile, so it stays so. A folder without a
    lock file may have been made a moment ago. A file or link is not of ours."""
    if folder.is_symlink() or not folder.is_dir():
        yield False
        return
    descriptor = _hold(folder)
    try:
        yield descriptor is not None or _lacks_lock(folder)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lacks_lock(folder: Path) -> bool:
    """Whether its maker was killed before it locked the folder."""
    with suppress(FileNotFoundError):
        return not os.path.lexists(folder / LOCK) and time.time() - folder.stat().st_mtime > YOUNG_S
    return False


def sweep(root: OwnedFolder) -> list[Path]:
    """Remove what dead runners left in `root`, and their cgroups; what is alive stays. Returns which folders of
    `root` were removed."""
    from trialfleet_sandbox.memory_group import sweep_groups  # which no pod needs

    sweep_groups()
    removed: list[Path] = []
    for folder in root.entries():
        with _abandonment(folder) as proven:
            if proven:
                remove_entry(root, folder.name)
                removed.append(folder)
    return removed
