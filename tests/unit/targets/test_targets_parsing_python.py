"""What a Python file says about itself."""

from __future__ import annotations

from trialfleet_targets.parsing import parse
from trialfleet_targets.syntax_facts import DefinitionKind, FileFacts, Import

SOURCE = '''\
"""A module."""
from __future__ import annotations

import os.path, numpy as np
from . import sibling
from ..core.base import Base as Root, helper
from star import *
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Thing", "run"]
__all__ += ["LIMIT"]
LIMIT: int = 3
left, right = 1, 2
type Alias = int


class Thing(Root[int], mixins.Loud, metaclass=Meta):
    size = 1

    @property
    def name(self) -> str:
        return self.compute(os.path.join("a"))

    class Inner:
        def deep(self) -> None: ...


@app.command
async def run(x):
    import json

    def inner():
        return np.zeros(1)

    importlib.import_module("plugins.one")
    return inner()
'''


def facts(source: str = SOURCE, path: str = "pkg/mod.py") -> FileFacts:
    found = parse(path, source.encode())
    assert found is not None
    return found


def test_definitions_with_lines_owners_and_exports() -> None:
    assert [(d.name, d.kind.value, d.line, d.end_line, d.owner, d.exported) for d in facts().definitions] == [
        ("LIMIT", "constant", 13, 13, "", True),
        ("left", "constant", 14, 14, "", False),
        ("right", "constant", 14, 14, "", False),
        ("Alias", "type", 15, 15, "", False),
        ("Thing", "class", 18, 26, "", True),
        ("name", "method", 22, 23, "Thing", True),
        ("Inner", "class", 25, 26, "Thing", True),
        ("deep", "method", 26, 26, "Inner", True),
        ("run", "function", 30, 37, "", True),
        ("inner", "function", 33, 34, "run", False),
    ]


def test_imports_as_written() -> None:
    assert facts().imports == (
        Import("os.path", (("*", "os.path"),)),
        Import("numpy", (("*", "np"),)),
        Import("", (("sibling", "sibling"),), level=1),
        Import("core.base", (("Base", "Root"), ("helper", "helper")), level=2),
        Import("star", (("*", ""),)),
        Import("typing", (("Any", "Any"),), type_only=True),
        Import("json", (("*", "json"),), dynamic=True),
        Import("plugins.one", dynamic=True),
    )


def test_calls_with_their_surroundings() -> None:
    assert [(c.name, c.receiver) for c in facts().calls] == [
        ("property", ""),
        ("compute", "self"),
        ("join", "path"),
        ("command", "app"),
        ("zeros", "np"),
        ("import_module", "importlib"),
        ("inner", ""),
    ]


def test_parents_without_type_arguments() -> None:
    assert [(i.child, i.parent) for i in facts().inheritance] == [("Thing", "Root"), ("Thing", "mixins.Loud")]


def test_without_all_the_underscore_decides() -> None:
    found = facts("def shown(): ...\ndef _hidden(): ...\nclass _C:\n    def m(self): ...\n    def _n(self): ...\n")
    assert [d.name for d in found.definitions if d.exported] == ["shown", "m"]


def test_a_computed_all_does_not_hide_anything() -> None:
    for written in ("[n for n in dir()]", "[*other.__all__, 'g']", "names()", "[]"):
        assert [d.exported for d in facts(f"__all__ = {written}\ndef f(): ...\n").definitions] == [True]


def test_a_package_passes_on_its_own_modules_and_nothing_else() -> None:
    source = "from .app import Flask\nfrom flask.cli import main\nfrom typing import Any\n"
    assert [i.re_export for i in facts(source, "src/flask/__init__.py").imports] == [True, True, False]
    assert [i.re_export for i in facts(source, "src/flask/views.py").imports] == [False, False, False]


def test_kinds_are_closed() -> None:
    assert {d.kind for d in facts().definitions} <= set(DefinitionKind)
