"""The cache of indexes: load an index, or build it from the most recently used one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from trialfleet_targets.disk_cache import key_of
from trialfleet_targets.history import MAX_COMMITS
from trialfleet_targets.index.build import build, version
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import DamagedIndex, mapped
from trialfleet_targets.progress import Report, ignore_progress
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot_reader import snapshot_at

MAX_PER_REPOSITORY = 8
_SUFFIX = ".index"


def index_at(
    repository: Repository | Path | str,
    at: str | None = None,
    *,
    cache: Path | None = None,
    methods: Sequence[str] = ("default",),
    max_commits: int = MAX_COMMITS,
    say: Callable[[str], None] = lambda _: None,
    report: Report = ignore_progress,
) -> Index:
    """The index of `at` (default: HEAD) for the methods: from the folder `cache`, or built and stored there.

    An index that is damaged or by another version is rebuilt and reported through `say`. Raises `TargetsError` for
    errors that the operator can fix. Many processes may share the folder. `report`: takes what is being done now.
    """
    found = repository if isinstance(repository, Repository) else Repository.open(repository)
    commit = found.resolve(at)
    folder = (
        cache / "indexes" / key_of(str(found.source.place.git_dir), found.boundary, str(max_commits)).hex()
        if cache
        else None
    )
    path = folder / f"{commit}{_SUFFIX}" if folder else None
    cached = _loaded(path, say) if path else None
    if cached is not None and path and set(methods) <= set(cached.methods):
        with suppress(OSError):
            os.utime(path)  # marks it as used: the least recently used indexes are pruned first
        return cached
    wanted = sorted({*methods, *(cached.methods if cached is not None else ())})
    older = cached or (_newest(folder) if folder else None)
    snapshot = snapshot_at(found, commit, cache=cache, max_commits=max_commits, report=report)
    report(f"indexing {len(snapshot.files):,} files")
    index = build(snapshot, methods=wanted, previous=older)
    if path:
        with suppress(OSError):  # a cache that cannot be written costs time, never the answer
            _write(path, index.packed())
            _prune(path.parent)
    return index


def load(path: Path) -> Index:
    """An index from its file. Raises `DamagedIndex` and OSError."""
    index = Index(*mapped(path))
    if index.head.get("version") != version():
        raise DamagedIndex("it was written by another version")
    return index


def _loaded(path: Path, say: Callable[[str], None]) -> Index | None:
    try:
        return load(path)
    except FileNotFoundError:
        return None
    except (DamagedIndex, OSError) as error:
        say(f"the cached index is rebuilt: {error}")
        return None


def _newest(folder: Path) -> Index | None:
    """The most recently used index, of any commit: unchanged parts are copied from it."""
    for path in _by_age(folder):
        with suppress(DamagedIndex, OSError):
            return load(path)
    return None


def _by_age(folder: Path) -> list[Path]:
    """Newest first."""
    with suppress(OSError):
        return sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: (-path.stat().st_mtime_ns, path.name))
    return []


def _prune(folder: Path) -> None:
    for path in _by_age(folder)[MAX_PER_REPOSITORY:]:
        path.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    """Write atomically; readers of the old file continue to see it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
