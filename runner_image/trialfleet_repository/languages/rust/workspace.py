"""Crates and their workspaces."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, cast

from trialfleet_repository.languages.manifest_files import file_in, folders_above, toml_of
from trialfleet_repository.results.limits import as_list
from trialfleet_repository.trees import ROOT, Tree


def find_workspace(tree: Tree, folder: str) -> str:
    """The workspace that the crate belongs to; the crate itself where it belongs to none."""
    crate: str | None = None
    for place in folders_above(folder):
        manifest = _cargo(tree, place)
        if crate is None and "package" in manifest:
            crate = place
        if "workspace" in manifest and not _excluded(manifest["workspace"], place, crate or folder):
            return place
    return crate or ROOT


def _cargo(tree: Tree, folder: str) -> dict[str, Any]:
    return toml_of(tree, file_in(folder, "Cargo.toml"))


def _excluded(workspace: Any, place: str, crate: str) -> bool:
    table = cast("dict[str, Any]", workspace) if isinstance(workspace, dict) else {}
    patterns = map(str, as_list(table.get("exclude")))
    inside = crate if place == ROOT else crate.removeprefix(f"{place}/")
    return any(fnmatchcase(inside, pattern) or inside.startswith(f"{pattern}/") for pattern in patterns)
