"""tests/programs.tsv against the code: every program whose start can be read there is in the list."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import PRESENT
from tests.programs import TABLE, Starts, table, unlisted

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("runner_image", "controller", "analysis", "tests")
MODULES = {"subprocess", "os", "shutil"}
STARTERS = {"run", "Popen", "check_output", "check_call", "call", "which", "execv", "execvp", "execvpe"}
WRITTEN = re.compile(rf"\b(?:subprocess|os|shutil)\.(?:{'|'.join(STARTERS)})\b")


def started_in(source: str) -> Iterator[str]:
    """First words of literal commands that `subprocess`, `os.exec*` and `shutil.which` get."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        owner = node.func.value
        if (
            node.func.attr in STARTERS
            and isinstance(owner, ast.Name)
            and owner.id in ("subprocess", "os", "shutil")
        ):
            first = node.args[0]
            if isinstance(first, (ast.List, ast.Tuple)) and first.elts:
                first = first.elts[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


@cache
def starts() -> dict[str, str]:
    """Program to the file that starts it. Files that cannot start any are not parsed."""
    return {
        name: str(path.relative_to(CHECKOUT))
        for package in PACKAGES
        for path in sorted((CHECKOUT / package).rglob("*.py"))
        if WRITTEN.search(text := path.read_text())
        for name in started_in(text)
    }


def test_every_program_in_the_code_is_listed() -> None:
    found = starts()
    assert {"git", "bwrap", "chromedriver", "cp", "mount"} <= set(found), "the search finds nothing any more"
    assert {name: where for name, where in found.items() if unlisted((name,), frozenset(table()))} == {}


def test_a_list_without_the_browsers_driver_is_found() -> None:
    listed = frozenset(table()) - {"chromedriver"}
    assert [name for name in starts() if unlisted((name,), listed)] == ["chromedriver"]


def test_every_mark_names_something_that_can_be_there() -> None:
    marks = re.compile(r"mark\.needs\(([^)]*)\)")
    named = {
        name
        for path in (CHECKOUT / "tests").rglob("*.py")
        for arguments in marks.findall(path.read_text())
        for name in re.findall(r'"([^"]+)"', arguments)
    }
    assert {"bwrap", "chromedriver", "cluster"} <= named <= set(PRESENT)


def test_rows_are_unique_and_whole() -> None:
    rows = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    assert len(rows) == len(table())
    assert all(len(row.split("\t")) == 3 and all(row.split("\t")) for row in rows)


@pytest.mark.parametrize("argv", [["ls", "-A"], ["/usr/bin/ls"], [Path("/bin/ls")]])
def test_a_start_that_is_not_listed_is_heard(argv: list[str]) -> None:
    heard = Starts()
    heard.listed = frozenset({"git"})
    subprocess.run(argv, check=True, capture_output=True)
    assert heard.take() == {"ls"}
    assert heard.take() == set()


@pytest.mark.parametrize(
    "argv", [["/usr/bin/python3.11", "-c", ""], ["/tmp/written/ls"], ["git"], [".venv/bin/x"]]
)
def test_interpreters_and_programs_of_tests_need_no_row(argv: list[str]) -> None:
    assert unlisted(argv, frozenset({"git"})) is None
