"""The events of `go test -json`, see `go doc test2json` and `go help buildjson`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from trialfleet_repository.languages.go.must_fail import make_go_file
from trialfleet_repository.languages.report_format import ReadFile, ReportFormat, each_once, units_of
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.junit import CaseOutcome
from trialfleet_repository.results.limits import (
    BoundedText,
    CaseList,
    as_text,
    check_count,
    encodable,
    json_object,
    lines_of,
)

_ENDS: dict[str, CaseOutcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_NOT_BUILT = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]")
_BUILD_HEADER = re.compile(r"# ([^\s\[]\S*)")


@dataclass
class _GoTest:
    text: BoundedText = field(default_factory=BoundedText)
    outcome: CaseOutcome | None = None
    shown: bool = False


@dataclass
class _GoPackage:
    text: BoundedText = field(default_factory=BoundedText)
    tests: dict[str, _GoTest] = field(default_factory=dict[str, _GoTest])
    failed: bool = False
    built: bool = True
    build: str = ""  # the import path, as the compiler's words name it, that could not be built


def read_go(stdout: bytes) -> ReadResults:
    """The results of `go test -json`. The unit is the import path, the name "TestX" or "TestX/sub".

    Before Go 1.24 the compiler's words are plain lines of the standard error: they are found when `stdout` holds
    both streams. A test that started and has no end has failed: it ended the program. Raises `ResultError`.
    """
    reader = _GoReader()
    for line in lines_of(stdout):
        event = json_object(line)
        if event is None:
            reader.plain(line)
        elif as_text(event.get("Action")):
            reader.event(event)
    return ReadResults(tuple(reader.cases().cases), bytes(reader.output).decode("utf-8", "replace"))


class _GoReader:
    def __init__(self) -> None:
        self.output = bytearray()
        self._packages: dict[str, _GoPackage] = {}
        self._builds: dict[str, BoundedText] = {}
        self._plain = BoundedText()  # the plain lines after the last header of the compiler
        self._tests = 0

    def plain(self, line: str) -> None:
        self._print(line)
        header = _BUILD_HEADER.match(line)
        if header:
            self._plain = self._build(header[1])
        self._plain.add(line)
        match = _NOT_BUILT.match(line)
        if match:
            self._package(match[1]).built = False

    def event(self, event: dict[str, object]) -> None:
        action, text = as_text(event.get("Action")), as_text(event.get("Output"))
        if action == "build-output":
            self._build(as_text(event.get("ImportPath"))).add(text)
        name, test = as_text(event.get("Package")), as_text(event.get("Test"))
        if not name:
            self._print(text)
            return
        package = self._package(name)
        if test:
            self._of_test(package, test, action, text)
            return
        self._print_tests(package)
        self._print(text)
        package.text.add(text)
        match = _NOT_BUILT.match(text)
        if match and match[1] == name:
            package.built = False
        if action == "fail":
            package.failed = True
            package.build = as_text(event.get("FailedBuild"))
            package.built = package.built and not package.build

    def cases(self) -> CaseList:
        found = CaseList()
        for name, package in self._packages.items():
            for test, seen in package.tests.items():
                outcome = seen.outcome or "failed"
                found.add(name, test, outcome, "" if outcome == "passed" else str(seen.text))
            blamed = any(seen.outcome in ("failed", None) for seen in package.tests.values())
            if not package.built:
                found.not_loaded(name, self._words(name, package))
            elif package.failed and not package.tests:
                found.not_loaded(name, str(package.text))
            elif package.failed and not blamed:
                found.outside_tests(name, str(package.text))
        if not self._packages and str(self._plain).startswith("go: "):
            found.not_loaded("go.mod", str(self._plain))
        return found

    def _of_test(self, package: _GoPackage, test: str, action: str, text: str) -> None:
        if test not in package.tests:
            check_count(self._tests)
            self._tests += 1
            package.tests[test] = _GoTest()
        package.tests[test].text.add(text)
        end = _ENDS.get(action)
        if end and package.tests[test].outcome != "failed":
            package.tests[test].outcome = end

    def _print_tests(self, package: _GoPackage) -> None:
        """Of tests that passed, nothing: so does `go test` without -json and -v."""
        for seen in package.tests.values():
            if seen.outcome in ("failed", None) and not seen.shown:
                self._print(str(seen.text))
                seen.shown = True

    def _words(self, name: str, package: _GoPackage) -> str:
        words = self._builds.get(package.build) or self._builds.get(name) or self._plain
        return str(words) + str(package.text)

    def _package(self, name: str) -> _GoPackage:
        if name not in self._packages:
            check_count(len(self._packages))
        return self._packages.setdefault(name, _GoPackage())

    def _build(self, name: str) -> BoundedText:
        if name not in self._builds:
            check_count(len(self._builds))
        return self._builds.setdefault(name, BoundedText())

    def _print(self, text: str) -> None:
        self.output += encodable(text).encode()


def _go_package(unit: str) -> str:
    """The folder of a file; an import path as it is.

    >>> _go_package("x_test.go"), _go_package("a/x_test.go"), _go_package("example.com/m")
    ('.', './a', 'example.com/m')
    """
    if not unit.endswith(".go"):
        return unit
    folder = str(PurePosixPath(unit).parent)
    return "." if folder == "." else f"./{folder}"


def _give_packages(tests: Sequence[str], _: ReadFile) -> tuple[str, ...]:
    return each_once(map(_go_package, units_of(tests)))


# Go writes a program that names the tests of each package. `go test -list` would call TestMain, which may end it.
_LISTING = r"""
tab=$(printf '\t')
{
printf '{"collected":['
go list -e -test -f '{{if .GoFiles}}{{.ImportPath}} {{index .GoFiles 0}}{{end}}' "$@" |
while read -r package file; do case $package in
*.test) sed -n "s/^$tab{\"\(\(Test\|Fuzz\|Example\)[^\"]*\)\", .*/\1/p" "$file" | while read -r name; do
printf '"%s::%s",' "${package%.test}" "$name"; done;; esac; done
printf '""],"ignored":['
go list -e -f '{{range .IgnoredGoFiles}}"{{$.Dir}}/{{.}}",{{end}}' "$@"
printf '""]}'
} >"$HOME/test-settings.json"
"""
GO_TEST = ReportFormat(
    "go",
    lambda files: read_go(files.read_stream("stdout") + files.read_stream("stderr")),
    ("_test.go",),
    "go test",
    _give_packages,
    must_fail=make_go_file,
    listing=_LISTING,
)
