"""Imports of context files (`@docs/rules.md`) that no trial can follow: named before the campaign runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from trialfleet_deliveries.declared_texts import PAGES, find_imports, has_imports, leaves_workspace, read_text
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Plan
from trialfleet_repository.trees import read_files, unpack

# `@scope/name` is as often a package of npm
_IS_A_DOCUMENT = re.compile(rf"^[.~/]|\.(?i:md|mdc|markdown|txt|rst|adoc)$|(?:^|/)(?:{PAGES})$")


def list_broken_imports(plan: Plan, objects: Objects) -> Iterator[str]:
    """Warnings: one for each import that leaves the context, or that neither it nor a task's workspace has."""

    @cache
    def read_context(digest: str) -> Mapping[str, bytes]:
        return read_files(unpack(objects.get(digest)))

    workspaces = {task.order.id: task.order.workspace for task in plan.tasks}
    lacking = dict[tuple[str, str, str], list[str]]()
    for cell in plan.cells:
        digest = cell.condition.files
        files = dict[str, bytes]() if digest is None else read_context(digest)
        for path, target in _find_unheld_imports(files):
            if leaves_workspace(target) or not _is_in_tar(target, objects.get(workspaces[cell.task])):
                lacking.setdefault((cell.condition.name, path, target), []).append(cell.task)
    for (name, path, target), tasks in lacking.items():
        said = f"conditions.{name}: {one_line(path)} imports {one_line(target)}, which "
        if leaves_workspace(target):
            yield said + "is outside of the context: no trial has it; copy it into the context and import it there"
        else:
            yield said + f"neither the context nor the workspace has: {', '.join(tasks[:5])}"


def _find_unheld_imports(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """(File, what it imports and the context does not hold)."""
    for path, data in files.items():
        if has_imports(path, data):
            for target in find_imports(path, read_text(data)):
                if target not in files and _IS_A_DOCUMENT.search(target):
                    yield path, target


def _is_in_tar(path: str, tar: bytes) -> bool:
    """By the name alone, which a zero ends: a workspace may be large."""
    return path.encode() + b"\0" in tar or f" path={path}\n".encode() in tar
