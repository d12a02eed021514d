"""`sitecustomize` of an interpreter that scores a patch: a stand-alone script, standard library only.

Its folder holds `added` (paths of modules that the patch adds, one per line) and `workspace` (their root). If an
added module would be imported instead of a module from outside of the workspace, the outside module is imported.
Without such a module a top-level added module cannot be imported.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs start-up time


def told(name: str) -> list[str]:
    with open(f"{HERE}/{name}", encoding="utf-8") as file:  # noqa: PTH123
        return file.read().splitlines()


class ImportGuard:
    """Asked before every other finder."""

    def __init__(self, workspace: str, added: list[str]) -> None:
        self.workspace = workspace + "/"
        self.added = added

    def is_inside(self, entry: str) -> bool:
        return (os.path.realpath(entry) + "/").startswith(self.workspace)

    def is_added(self, origin: str) -> bool:
        """Whether it is one of them, or lies below one, which is a link."""
        paths = (os.path.abspath(origin), os.path.realpath(origin))  # noqa: PTH100
        return any(f"{path}/".startswith(f"{added}/") for path in paths for added in self.added)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target)
        if found is None or found.origin is None or not self.is_added(found.origin):
            return None
        entries = [entry for entry in (sys.path if path is None else path) if not self.is_inside(entry)]
        other = PathFinder.find_spec(name, entries, target)
        if other is not None and other.origin is not None:
            return other
        if path is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def run_the_next() -> None:
    """The `sitecustomize` that this one hides, as far as there is one."""
    entries = [entry for entry in sys.path if os.path.abspath(entry) != HERE]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", entries)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, ImportGuard(told("workspace")[0], told("added")))
    run_the_next()
