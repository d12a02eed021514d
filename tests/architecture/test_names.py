"""What readers rely on: one class per name, few modules at the top, no import circles, short functions."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict

from tests.architecture.structure import PACKAGES, ROOT, circles, function_lengths
from trialfleet_runner import cli

TOP_OF_CONTROLLER = 8
LONG_FUNCTION = 22  # lines; 95 % of the functions have no more


def classes() -> dict[str, set[str]]:
    """Name of a class -> the files that define it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].add(str(path.relative_to(ROOT)))
    return found


def test_class_names_are_unique() -> None:
    found = classes()
    assert len(found) > 500, "the packages were not found"
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_commands_have_one_table_and_one_place() -> None:
    text = tomllib.loads((ROOT / "pyproject.toml").read_text())
    table = text["project"]["entry-points"]["trialfleet.commands"]
    assert table == {name: cli.place(name) for name in cli.SUMMARIES}


def test_few_modules_lie_at_the_top_of_the_controller() -> None:
    folder = ROOT / "controller/trialfleet_controller"
    top = [path.name for path in folder.glob("*.py") if path.stem != "__init__"]
    assert len(top) <= TOP_OF_CONTROLLER, top


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for types count too."""
    assert circles() == []


def test_functions_are_short() -> None:
    lengths = function_lengths()
    assert len(lengths) > 3000, "the packages were not found"
    assert lengths[len(lengths) * 95 // 100] <= LONG_FUNCTION
