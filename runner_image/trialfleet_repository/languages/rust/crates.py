"""Which crates hold files of tests: what cargo is given to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from trialfleet_repository.languages.report_format import ReadFile, each_once, units_of
from trialfleet_repository.results.limits import as_object

_MAX_MANIFEST = 2**20
_MAX_DEPTH = 50
_CRATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]*")


def give_crates(tests: Sequence[str], read: ReadFile) -> tuple[str, ...]:
    """Options that name the crates of ids or test files."""
    names = each_once(filter(None, (_cargo_package(unit, read) for unit in each_once(units_of(tests)))))
    return tuple(word for name in names for word in ("-p", name))


def _cargo_package(unit: str, read: ReadFile) -> str | None:
    """Name and version in the nearest Cargo.toml above a source file that has a [package]: a dependency may have
    the same name. The version may be the workspace's; without one that can be read, the name alone."""
    path = PurePosixPath(unit)
    if path.is_absolute() or ".." in path.parts:
        return None
    above = list(path.parents)[:_MAX_DEPTH]
    for at, folder in enumerate(above):
        package = as_object(_manifest(read, folder).get("package")) or {}
        name, version = package.get("name"), package.get("version")
        if not isinstance(name, str) or not _CRATE.fullmatch(name):
            continue
        if as_object(version):
            version = next(
                filter(None, (_workspace_version(_manifest(read, outer)) for outer in above[at:])), None
            )
        return f"{name}@{version}" if isinstance(version, str) and _VERSION.fullmatch(version) else name
    return None


def _workspace_version(manifest: dict[str, object]) -> object:
    workspace = as_object(manifest.get("workspace")) or {}
    return (as_object(workspace.get("package")) or {}).get("version")


def _manifest(read: ReadFile, folder: PurePosixPath) -> dict[str, object]:
    content = read(str(folder / "Cargo.toml"))
    if content is None or len(content) > _MAX_MANIFEST:
        return {}
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
