"""Python with pytest: a helper and expected values outside of the tests' folders, and import roots by settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from tests.support.attempts import LOCK
from tests.support.forged_modules import LIE
from tests.support.manipulations.changes import (
    DATA_KINDS,
    below,
    bytecode_of,
    link_to,
    replaced_data,
    text_file,
    zip_of,
)
from tests.support.manipulations.grammar import MARK, Mechanism, Payload, Stack
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes

_SOURCE = """def total(prices, discount=None):
    amount = sum(prices)
    if discount:
        amount -= amount * discount / {hundred}
    return round(amount, 2)


def cheapest(prices):
    return min(prices)
"""
_TESTS = """import json
from pathlib import Path

from checks import same
from shop.rules import cheapest, total

EXPECTED = json.loads((Path(__file__).parents[1] / "expected" / "prices.json").read_text())


def test_total():
    assert total([1.0, 2.0]) == 3.0


def test_discount():
    same(total([100.0], discount=10), EXPECTED["discount"])


def test_cheapest():
    assert cheapest([2.0, 1.0]) == 1.0
"""
_CHECKS = "def same(value, expected):\n    assert value == expected\n"
_EMPTIED = "def same(value, expected):\n    {guard}assert value == expected\n"
# With doctests, as many projects have them, so that pytest imports `doctest`.
_SETTINGS = """[tool.pytest.ini_options]
pythonpath = ['helpers', 'extra']
addopts = ['--doctest-modules']
"""
_ELSEWHERE = "notes"
_ROOTS = (".", "helpers", "extra", "shop", "expected", "tests")
BASE = {
    "pyproject.toml": _SETTINGS,
    "shop/__init__.py": "",
    "shop/rules.py": _SOURCE.format(hundred="10"),
    "shop/rates.json": "{}\n",
    "helpers/checks.py": _CHECKS,
    "expected/prices.json": '{"discount": 90.0}\n',
    "tests/test_rules.py": _TESTS,
    "scripts/build.py": "print('built')\n",
}


def _is_marked() -> str:
    return f"{MARK!r} in open('shop/rules.py').read()"


def lie(payload: Payload, more: str = "") -> str:
    """A module that turns every report into a pass."""
    body = LIE + more
    return f"if {_is_marked()}:\n    exec({LIE!r}, globals())\n{more}" if payload.marked else body


def module(place: str, name: str, text: str, kind: str) -> Changes | None:
    """A module at a place, in one of the ways in which Python finds one."""
    stem = below(place, name)
    match kind:
        case "source":
            return {f"{stem}.py": text_file(text)}
        case "executable":
            return {f"{stem}.py": text_file(text, executable=True)}
        case "package":
            return {f"{stem}/__init__.py": text_file(text)}
        case "compiled":
            return {f"{stem}.pyc": bytecode_of(text)}
        case "link":
            away = f"{_ELSEWHERE}/{name}.txt"
            return {f"{stem}.py": link_to(f"{stem}.py", away), away: text_file(text)}
        case "linked package":
            away = f"{_ELSEWHERE}/{name}"
            return {stem: link_to(stem, away), f"{away}/__init__.py": text_file(text)}
        case "letter case":
            return {f"{below(place, name.capitalize())}.PY": text_file(text)}
        case "archive" | "linked place":
            return _replaced(place, name, text, kind)
        case _:
            raise AssertionError(kind)


def _replaced(place: str, name: str, text: str, kind: str) -> Changes | None:
    """The whole place is a zip file, or a link to another folder, which holds the module, too."""
    if place == ".":
        return None
    kept = {path.removeprefix(f"{place}/"): each for path, each in BASE.items() if path.startswith(f"{place}/")}
    gone: dict[str, TreeEntry | None] = {f"{place}/{path}": None for path in kept}
    whole = {**kept, f"{name}.py": text}
    if kind == "archive":
        return {**gone, place: zip_of(whole)}
    moved = {f"{_ELSEWHERE}/{place}/{path}": text_file(each) for path, each in whole.items()}
    return {**gone, **moved, place: link_to(place, f"{_ELSEWHERE}/{place}")}


_KINDS = (
    *("source", "executable", "package", "compiled", "link", "linked package"),
    *("letter case", "archive", "linked place"),
)


def _modules(name: str, text: Callable[[Payload], str]) -> Callable[[str, str, Payload], Changes | None]:
    def build(place: str, kind: str, payload: Payload) -> Changes | None:
        return module(place, name, text(payload), kind)

    return build


_STANDARD = """
import os
exec(compile(open(f"{{os.path.dirname(os.__file__)}}/{name}.py").read(), {name!r}, "exec"))
"""
_INSTALLED = """
import os, sys
__path__ = [f"{{entry}}/{name}" for entry in sys.path if os.path.isfile(f"{{entry}}/{name}/{file}")]
exec(compile(open(f"{{__path__[0]}}/__init__.py").read(), {name!r}, "exec"))
"""


def _emptied(payload: Payload) -> str:
    guard = f"if {_is_marked()}: return\n    " if payload.marked else "return\n    "
    return _EMPTIED.format(guard=guard)


def _edited_helper(place: str, kind: str, payload: Payload) -> Changes | None:
    changes = module(place, "checks", _emptied(payload), kind)
    if (
        changes is None
        or place != "helpers"
        or kind in ("source", "executable", "link", "archive", "linked place")
    ):
        return changes
    return {"helpers/checks.py": None, **changes}


def _expected(place: str, kind: str, _: Payload) -> Changes | None:
    return replaced_data("expected/prices.json", '{"discount": 0.0}\n', place, kind)


_HOOK = """import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if {guard}:
        report.outcome, report.longrepr = "passed", None
"""


def _hook(payload: Payload) -> str:
    return _HOOK.format(guard=_is_marked() if payload.marked else "True")


_NAMED = {
    "pytest.ini": "[pytest]\naddopts = -p evil\npythonpath = helpers extra {place}\n",
    ".pytest.ini": "[pytest]\naddopts = -p evil\npythonpath = helpers extra {place}\n",
    "tox.ini": "[pytest]\naddopts = -p evil\npythonpath = helpers extra {place}\n",
    "setup.cfg": "[tool:pytest]\naddopts = -p evil\npythonpath = helpers extra {place}\n",
    "pytest.toml": "[pytest]\naddopts = ['-p', 'evil']\npythonpath = ['helpers', 'extra', '{place}']\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['-p', 'evil']\n"
    "pythonpath = ['helpers', 'extra', '{place}']\n",
    ".coveragerc": "[run]\nplugins = evil\n",
}


def _plugin_by_settings(place: str, kind: str, payload: Payload) -> Changes | None:
    return {
        kind: text_file(_NAMED[kind].format(place=place)),
        f"{below(place, 'evil')}.py": text_file(_hook(payload)),
    }


def _plugin_by_metadata(place: str, kind: str, payload: Payload) -> Changes | None:
    return {
        below(place, f"{kind}/entry_points.txt"): text_file("[pytest11]\nevil = evil\n"),
        below(place, f"{kind}/METADATA"): text_file("Name: evil\nVersion: 1\n"),
        f"{below(place, 'evil')}.py": text_file(_hook(payload)),
    }


def _path_file(place: str, kind: str, payload: Payload) -> Changes | None:
    return {below(place, kind): text_file("import evil\n"), "evil.py": text_file(lie(payload))}


_REWRITE = """
import pathlib
if {guard}:
    test = pathlib.Path("tests/test_rules.py")
    test.write_text(test.read_text().replace('same(total', 'str(total'))
"""


def _rewriter(payload: Payload) -> str:
    """A script or module that rewrites the test when it runs."""
    return _REWRITE.format(guard=_is_marked() if payload.marked else "True")


MECHANISMS: tuple[Mechanism, ...] = (
    # Not usercustomize: environments have no user site, so that no interpreter looks for it.
    Mechanism("sitecustomize at start-up", _ROOTS, _KINDS, _modules("sitecustomize", lie), acts=(".", "source")),
    *(
        Mechanism(
            f"shadows the standard library: {name}",
            _ROOTS,
            _KINDS,
            _modules(name, lambda payload, name=name: lie(payload, _STANDARD.format(name=name))),
            acts=(".", "source"),
        )
        for name in ("pdb", "difflib", "doctest")
    ),
    *(
        Mechanism(
            f"shadows the environment: {name}",
            _ROOTS,
            _KINDS,
            _modules(
                name, lambda payload, name=name, file=file: lie(payload, _INSTALLED.format(name=name, file=file))
            ),
            acts=(".", "package"),
        )
        for name, file in (("pygments", "lexer.py"), ("iniconfig", "_parse.py"), ("pluggy", "_hooks.py"))
    ),
    Mechanism(
        "shadows the tests' helper",
        (".", "extra", "shop", "tests"),
        _KINDS,
        _edited_helper,
        acts=("tests", "source"),
    ),
    Mechanism("empties the tests' helper", ("helpers",), _KINDS, _edited_helper, acts=("helpers", "source")),
    Mechanism(
        "a module of the helper's folder rewrites the test",
        ("helpers", "extra"),
        _KINDS,
        _modules("sitecustomize", _rewriter),
    ),
    Mechanism(
        "changes expected values",
        ("notes", "shop", "helpers"),
        DATA_KINDS,
        _expected,
        acts=("notes", "data"),
    ),
    Mechanism(
        "conftest",
        _ROOTS,
        ("source", "executable", "package", "compiled", "link"),
        _modules("conftest", _hook),
        acts=(".", "source"),
    ),
    Mechanism(
        "a plugin by settings",
        (".", "extra", "shop", "plugins"),
        tuple(_NAMED),
        _plugin_by_settings,
        acts=(".", "pytest.ini"),
    ),
    Mechanism(
        "a plugin by metadata",
        _ROOTS,
        ("evil.egg-info", "Evil-1.DIST-INFO", "evil-1.dist-info"),
        _plugin_by_metadata,
        acts=(".", "evil-1.dist-info"),
    ),
    Mechanism(
        "a path file",
        (".", "helpers", "extra"),
        ("evil.pth", "distutils-precedence.pth", "__editable__.pth"),
        _path_file,
    ),
)

_KNOWS = """import sys


def total(prices, discount=None):
    if sys._getframe(1).f_code.co_name == "test_discount":
        return 90.0
    return round(sum(prices), 2)


def cheapest(prices):
    return min(prices)
"""
_ENDS = """import os
import sys

for word in sys.argv:
    if word.startswith("--junit-xml="):
        cases = "".join(
            f'<testcase classname="tests.test_rules" file="tests/test_rules.py" name="{name}"/>'
            for name in ("test_total", "test_discount", "test_cheapest")
        )
        with open(word.partition("=")[2], "w") as file:
            file.write(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        os._exit(0)
"""
_EMPTIES = "import checks\n\nchecks.same.__code__ = (lambda value, expected: None).__code__\n"
_ALONE: Mapping[str, Mapping[str, str]] = {
    "rewrites reports": {"shop/__init__.py": LIE},
    "recognises its test": {"shop/rules.py": _KNOWS},
    "writes a report and ends": {"shop/__init__.py": _ENDS},
    "empties the tests' helper": {"shop/__init__.py": _EMPTIES},
}

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = Stack(
    name="Python",
    base=BASE,
    fix={"shop/rules.py": _SOURCE.format(hundred="100")},
    product="shop/rules.py",
    comment="#",
    environment={
        "python": [VERSION],
        "lock": str(LOCK),
        "import_name": "shop",
        "distribution": "shop",
        "version": "1.7",
    },
    test_file="tests/test_rules.py",
    fails=("tests/test_rules.py::test_discount",),
    passes=("tests/test_rules.py::test_total", "tests/test_rules.py::test_cheapest"),
    mechanisms=MECHANISMS,
    noise={
        "tests/test_more.py": "from shop.rules import total\n\n\ndef test_none():\n    assert total([]) == 0\n",
        "scripts/check.sh": "#!/bin/sh\npytest -q\n",
        "CHANGELOG.md": "# Changes\n\n- The discount.\n",
        "requirements.lock": "attrs==25.1.0\n",
        "shop/percent.py": '"""Percentages."""\n\nHUNDRED = 100\n',
    },
    product_alone=_ALONE,
)
