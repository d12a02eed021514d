"""This user's cache. Everything in it can be built again: deleting it costs only time."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_ledger.removal import remove
from trialfleet_ledger.store.full_disk import is_full
from trialfleet_ledger.user_folders import home_folder


def cache_root() -> Path:
    """The folder in which the cache lies: `$TRIALFLEET_CACHE`; else, as root, `/var/cache/trialfleet` (an agent's
    uid must be able to walk there); else `$XDG_CACHE_HOME/trialfleet` or `~/.cache/trialfleet`."""
    chosen = os.environ.get("TRIALFLEET_CACHE")
    if chosen:
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/trialfleet")
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home_folder() / ".cache") / "trialfleet"


def uv_folders() -> dict[str, str]:
    """The variables that give uv folders, where HOME cannot hold uv's own; empty where uv can do without."""
    base, home = os.environ.get("XDG_CACHE_HOME"), home_folder()
    variables: dict[str, str] = {}
    if not _is_folder(home) and not os.environ.get("UV_PYTHON_INSTALL_DIR"):
        variables["UV_PYTHON_INSTALL_DIR"] = str(Cache.default().folder("uv") / "python")  # uv only looks into it
    usual = Path(base) / "uv" if base else home / ".cache/uv"
    if not os.environ.get("UV_CACHE_DIR") and not ((base or _is_folder(home)) and _can_hold(usual)):
        variables["UV_CACHE_DIR"] = str(Cache.default().folder("uv"))
    return variables


def _can_hold(folder: Path) -> bool:
    """Whether it can be written, or made."""
    nearest = next(each for each in (folder, *folder.parents) if _is_there(each))
    return _is_folder(nearest) and os.access(nearest, os.W_OK | os.X_OK)


def _is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - False where a folder on the way is closed; pathlib raises


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - as above


def _unusable(folder: Path, error: OSError) -> OperatorError:
    return OperatorError(
        f"the cache cannot be written: {error.strerror or error}",
        where=str(folder),
        hint="set $TRIALFLEET_CACHE to a folder that can be written, on a disk with room for environments",
    )


@dataclass(frozen=True)
class Cache:
    """Folders in trialfleet's own folder below `root`, which may hold anything else. Each is created on first use.

    They hold fixes and hidden tests, so only their owner may enter them, except `environments` and
    `agent_versions`: an agent of another uid runs programs in them.
    """

    root: Path

    @classmethod
    def default(cls) -> Cache:
        return cls(cache_root())

    def folder(self, name: str, mode: int = 0o700) -> Path:
        """Raises `OperatorError` as `claim_folder`."""
        path = claim_folder(self.root, "cache").path / name
        try:
            path.mkdir(mode=mode, exist_ok=True)
        except OSError as error:
            if is_full(error):
                raise
            raise _unusable(path, error) from None
        facts = path.stat()
        if stat.S_IMODE(facts.st_mode) != mode and facts.st_uid == os.geteuid():
            path.chmod(mode)  # created by an earlier release, or under another umask
        return path

    @property
    def objects(self) -> Path:
        return self.folder("objects")

    @property
    def sdists(self) -> Path:
        return self.folder("sdists")

    @property
    def git(self) -> Path:
        return self.folder("git")

    @property
    def targets(self) -> Path:
        return self.folder("targets")

    @property
    def environments(self) -> Path:
        return self.folder("environments", 0o755)

    @property
    def workspaces(self) -> Path:
        return self.folder("workspaces")

    @property
    def agent_checks(self) -> Path:
        return self.folder("agent-checks")

    @property
    def agent_versions(self) -> Path:
        return self.folder("agent-versions", 0o755)

    @property
    def validations(self) -> Path:
        return self.folder("validations")


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold `<path>.lock` alone, waiting for it; the kernel frees it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock_of(path).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lock_of(path: Path) -> Path:
    """The file that `locked` holds."""
    return path.with_name(path.name + ".lock")


@contextmanager
def built_once(final: Path) -> Generator[Path | None]:
    """Yield a fresh folder to fill, which then becomes `final` in one rename; None when `final` is there.

    Builders of the same folder wait for each other. A builder that fails or dies leaves nothing under this name.
    """
    if final.exists():
        yield None
        return
    with locked(final):
        if final.exists():
            yield None
            return
        with scratch(final.parent, f".{final.name}-") as folder:
            fresh = folder / "new"
            fresh.mkdir(mode=0o755)
            yield fresh
            fresh.rename(final)


@contextmanager
def built_in_place(final: Path, mark: str) -> Generator[Path | None]:
    """Like `built_once`, for content that holds its own path: `final` itself is filled, and it counts once the
    builder has written the file `mark` into it."""
    if (final / mark).exists():
        yield None
        return
    with locked(final):
        if (final / mark).exists():
            yield None
            return
        remove(final)
        final.mkdir(mode=0o755)
        try:
            yield final
        except BaseException:
            remove(final)
            raise


@contextmanager
def scratch(parent: Path, prefix: str) -> Generator[Path]:
    """A folder below `parent` (mode 0755), removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        remove(folder)
