"""Indexes in the cache: found, or built from the nearest one that is there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from trialfleet_targets.history import MAX_COMMITS
from trialfleet_targets.index.build import build
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import Damaged, mapped
from trialfleet_targets.index.version import version
from trialfleet_targets.kept import key_of
from trialfleet_targets.reading import snapshot_at
from trialfleet_targets.repository import Repository

KEPT_PER_REPOSITORY = 8
_SUFFIX = ".index"


def index_at(
    repository: Repository | Path | str,
    at: str | None = None,
    *,
    cache: Path | None = None,
    methods: Sequence[str] = ("default",),
    max_commits: int = MAX_COMMITS,
    say: Callable[[str], None] = lambda _: None,
) -> Index:
    """The index of `at` (default: HEAD) for the methods: from the folder `cache`, or built and kept there.

    One that is damaged or by another version is built again, and `say` is told. Raises `TargetsError` for what the
    operator can mend. The folder may be shared by many processes.
    """
    found = repository if isinstance(repository, Repository) else Repository.open(repository)
    commit = found.resolve(at)
    folder = (
        cache / "indexes" / key_of(str(found.git_dir), found.boundary, str(max_commits)).hex() if cache else None
    )
    path = folder / f"{commit}{_SUFFIX}" if folder else None
    kept = _loaded(path, say) if path else None
    if kept is not None and path and set(methods) <= set(kept.methods):
        with suppress(OSError):
            os.utime(path)  # used: the ones that are not go first
        return kept
    wanted = sorted({*methods, *(kept.methods if kept is not None else ())})
    older = kept or (_newest(folder) if folder else None)
    snapshot = snapshot_at(found, commit, cache=cache, max_commits=max_commits)
    index = build(snapshot, methods=wanted, previous=older)
    if path:
        with suppress(OSError):  # a cache that cannot be written costs time, never the answer
            _write(path, index.packed())
            _prune(path.parent)
    return index


def load(path: Path) -> Index:
    """An index from its file. Raises `Damaged` and OSError."""
    index = Index(*mapped(path))
    if index.head.get("version") != version():
        raise Damaged("it is by another version")
    return index


def _loaded(path: Path, say: Callable[[str], None]) -> Index | None:
    try:
        return load(path)
    except FileNotFoundError:
        return None
    except (Damaged, OSError) as error:
        say(f"the kept index is built again: {error}")
        return None


def _newest(folder: Path) -> Index | None:
    """The index that was used last, of whichever commit: what it shares with this one need not be read again."""
    for path in _by_age(folder):
        with suppress(Damaged, OSError):
            return load(path)
    return None


def _by_age(folder: Path) -> list[Path]:
    """Newest first."""
    with suppress(OSError):
        return sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: (-path.stat().st_mtime_ns, path.name))
    return []


def _prune(folder: Path) -> None:
    for path in _by_age(folder)[KEPT_PER_REPOSITORY:]:
        path.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all; readers of the old file keep it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
