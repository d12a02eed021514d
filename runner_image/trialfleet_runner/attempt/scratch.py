"""The folder of one attempt: below nothing that holds context files, locked while its runner lives."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOCK = "lock"


def scratch_root() -> Path:
    """`$TRIALFLEET_SCRATCH`, or a folder of this user below /var/tmp."""
    chosen = os.environ.get("TRIALFLEET_SCRATCH")
    return Path(chosen) if chosen else Path(f"/var/tmp/trialfleet-{os.getuid()}")  # noqa: S108 - ours, mode 0711


@dataclass(frozen=True)
class Scratch:
    """Paths of one attempt. `workspace`, `home` and `pristine` are written by sandboxed programs, the rest is not
    visible to them."""

    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def baseline(self) -> Path:
        """The git folder that the patch is taken against: never the agent's own."""
        return self.root / "baseline.git"

    @property
    def pristine(self) -> Path:
        return self.root / "pristine"

    @property
    def score_home(self) -> Path:
        return self.root / "score-home"

    @property
    def context(self) -> Path:
        return self.root / "context"

    @property
    def record(self) -> Path:
        return self.root / "record"

    @property
    def socket(self) -> Path:
        return self.root / "gateway.sock"


class Busy(Exception):
    """Another runner holds this folder."""


@contextmanager
def locked(root: Path, name: str) -> Iterator[Scratch]:
    """A fresh, locked folder `root/name`; removed at the end. Raises `Busy` when a living runner holds it."""
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    folder = root / name
    folder.mkdir(mode=0o711, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"another runner holds {folder}") from error
        for left in folder.iterdir():
            if left.name != LOCK:
                remove(left)
        scratch = Scratch(folder)
        scratch.record.mkdir(mode=0o700)
        yield scratch
        if "TRIALFLEET_KEEP_SCRATCH" not in os.environ:
            remove(folder)
    finally:
        os.close(descriptor)


def abandoned(folder: Path) -> bool:
    """True when no living runner holds `folder`."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def sweep(root: Path) -> list[Path]:
    """Remove what dead runners left below `root`; what is alive stays. Returns what was removed."""
    dead = [folder for folder in sorted(root.iterdir()) if abandoned(folder)] if root.is_dir() else []
    for folder in dead:
        remove(folder)
    return dead


def remove(path: Path) -> None:
    """Delete a file or tree whose modes an agent may have changed; links are never followed."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for folder, names, _ in os.walk(path):
        for name in names:
            child = os.path.join(folder, name)  # noqa: PTH118 - a hot loop over untrusted trees
            with suppress(OSError):
                if not stat.S_ISLNK(os.lstat(child).st_mode):
                    os.chmod(child, 0o700, follow_symlinks=True)  # noqa: PTH101
    shutil.rmtree(path, ignore_errors=True)
