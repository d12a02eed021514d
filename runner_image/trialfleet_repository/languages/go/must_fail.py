"""Tests that must fail, in Go: a new file of the package of a fail-to-pass test, where the product's packages are
loaded. Its functions fail by the methods of `testing.T` that the test's file uses, and by
its functions of testify."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from trialfleet_repository.languages.must_fail import (
    MAX_CHARS,
    MAX_TESTS,
    FailingFile,
    FailToPass,
    NoMustFail,
    path_beside,
)

_COMMENT = re.compile(r"/\*(?:[\s\S]*?\*/|[\s\S]*)|//[^\n]*")
_PACKAGE = re.compile(r"\s*package\s+(\w{1,100})\b")
_NAME = re.compile(r"Test\w{0,150}")
_METHOD = re.compile(r"\bt\.(Errorf?|Fatalf?|Fail|FailNow)\(")
_METHODS = {"Error": '"x"', "Errorf": '"x"', "Fatal": '"x"', "Fatalf": '"x"', "Fail": "", "FailNow": ""}
_TESTIFY = re.compile(
    r'^[ \t]*(?:import[ \t]+)?(?:(\w{1,40})[ \t]+)?"(github\.com/stretchr/testify/(assert|require))"', re.M
)
_ARGUMENTS = {
    "Equal": "t, 1, 2",
    "EqualValues": "t, 1, 2",
    "NotEqual": "t, 1, 1",
    "True": "t, false",
    "False": "t, true",
    "Nil": "t, 1",
    "NotNil": "t, nil",
    "NoError": 't, errors.New("x")',
    "Error": "t, nil",
    "Len": "t, []int{1}, 2",
    "Contains": 't, "a", "b"',
    "Empty": "t, []int{1}",
    "NotEmpty": "t, []int{}",
    "Panics": "t, func() {}",
}


def make_go_file(tests: FailToPass) -> FailingFile:
    """In the package of the first fail-to-pass test whose function is in one of the files. Raises `NoMustFail`."""
    for name in dict.fromkeys(test.partition("::")[2].partition("/")[0] for test in tests.ids):
        path = _declaring(name, tests) if _NAME.fullmatch(name) else None
        package = _PACKAGE.match(_COMMENT.sub(" ", tests.files[path])) if path else None
        if path and package:
            text = _file(package[1], name, tests.mark, tests.files[path])
            new = path_beside(path, tests.mark, ("_test",))
            return FailingFile(new, text, (new,))
    raise NoMustFail("no file of its tests declares a function that fails before the fix")


def _declaring(name: str, tests: FailToPass) -> str | None:
    """The first file that declares the function."""
    declared = re.compile(rf"^func {name}\(", re.M)
    files = (path for path, text in tests.files.items() if len(text) <= MAX_CHARS and path.endswith("_test.go"))
    return next((path for path in files if declared.search(tests.files[path])), None)


def _file(package: str, name: str, mark: str, source: str) -> str:
    imports = {alias or kind: path for alias, path, kind in _TESTIFY.findall(source)}
    used: set[str] = set()
    functions: list[str] = []
    for number, (root, call) in enumerate(islice(_failing_calls(source, imports), MAX_TESTS), start=1):
        used |= {root} | ({"errors"} if "errors.New" in call else set())
        functions.append(f"func {name}_{mark}_{number}(t *testing.T) {{ {call} }}\n")
    lines = ['import "testing"', *(['import "errors"'] if "errors" in used else [])]
    lines += [f'import {alias} "{path}"' for alias, path in imports.items() if alias in used]
    return "\n".join([f"package {package}", "", *lines, "", *functions])


def _failing_calls(source: str, imports: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(name of the package or `t`, call)."""
    for method in dict.fromkeys([*_METHOD.findall(source), "Error"]):
        yield "t", f"t.{method}({_METHODS[method]})"
    for alias in imports:
        for name in dict.fromkeys(re.findall(rf"\b{alias}\.(\w{{1,30}})\(", source)):
            if name in _ARGUMENTS:
                yield alias, f"{alias}.{name}({_ARGUMENTS[name]})"
