"""The output of `cargo test --message-format=json-render-diagnostics`, both streams in one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from trialfleet_repository.languages.rust.cargo_build import CargoBuild
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.junit import CaseOutcome
from trialfleet_repository.results.limits import BoundedText, CaseList, check_count, json_object, lines_of

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_RUNNING = re.compile(r"\s+Running (?:unittests )?([^`(]+) \((.+)\)$")
_DOCTESTS = re.compile(r"\s+Doc-tests \S+$")
_ANNOUNCED = re.compile(r"running (\d{1,6}) tests?$")
_OUTCOME = re.compile(r"(ok|FAILED|ignored)(?:, .*| <[0-9.]+s>)?$")
_HEADER = re.compile(r"---- (.+) stdout ----$")
_OUTCOMES: dict[str, CaseOutcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


@dataclass
class _RustTest:
    outcome: CaseOutcome
    text: BoundedText = field(default_factory=BoundedText)


@dataclass
class _TestProgram:
    unit: str
    tests: dict[str, _RustTest] = field(default_factory=dict[str, _RustTest])
    text: BoundedText = field(default_factory=BoundedText)
    pending: str | None = None  # a test whose name is printed, but not its outcome
    in_texts: bool = False  # below "failures:" or "successes:"
    shown: _RustTest | None = None  # the test whose text follows
    announced: int = 0  # tests, before the first runs
    finished: bool = False
    crashed: bool = False


def read_libtest(output: bytes, workspace: str) -> ReadResults:
    """The results of `cargo test`. The unit is the source path of the test program, relative to `workspace`.

    Documentation tests are left out: their names hold line numbers. A test that runs while its program ends has
    no outcome, unless tests run one at a time: then it has failed. Raises `ResultError`.
    """
    reader = _LibtestReader(workspace)
    for line in lines_of(output):
        reader.line(_ESCAPES.sub("", line))
    text = bytes(reader.output).decode("utf-8", "replace")
    return ReadResults(tuple(reader.cases().cases), text, tuple(reader.list_tests()))


class _LibtestReader:
    def __init__(self, workspace: str) -> None:
        self.output = bytearray()
        self._build = CargoBuild(workspace)
        self._programs: list[_TestProgram] = []
        self._tests = 0
        self._started = False
        self._now: _TestProgram | None = None  # None: before the first program, or in documentation tests

    def line(self, line: str) -> None:
        message = None if self._started else json_object(line)
        if message is not None and "reason" in message:
            self._build.message(message)
            return
        self.output += line.encode()
        if self._starts(line.rstrip()):
            self._started = True
        elif not self._started:
            self._build.line(line)
        elif self._now is not None:
            self._of_program(self._now, line)

    def cases(self) -> CaseList:
        found = CaseList()
        for failure in self._build.failures(ran=self._started):
            found.not_loaded(failure.unit, failure.text)
        for program in self._programs:
            if program.pending is not None and not program.finished:
                program.tests[program.pending] = _RustTest("failed", program.text)
            for name, test in program.tests.items():
                found.add(program.unit, name, test.outcome, str(test.text))
            if program.crashed:
                found.outside_tests(program.unit, str(program.text))
        return found

    def list_tests(self) -> Iterator[str]:
        """Ids of all tests; those without a result have names of ours, for a program says only how many it has."""
        for program in self._programs:
            yield from (f"{program.unit}::{name}" for name in program.tests)
            missing = range(len(program.tests), program.announced)
            yield from (f"{program.unit}::test {number + 1} of {program.announced}" for number in missing)

    def _starts(self, line: str) -> bool:
        """Whether cargo starts a test program or documentation tests here."""
        inside_text = self._now is not None and self._now.in_texts
        running = _RUNNING.match(line)
        executable = running[2] if running else _verbose_executable(line)
        source = self._build.source(executable) if executable else None
        if source is None and running and not inside_text:
            source = running[1]
        if source is not None:
            check_count(len(self._programs))
            self._now = _TestProgram(source)
            self._programs.append(self._now)
        elif not inside_text and _DOCTESTS.match(line):
            self._now = None
        else:
            return False
        return True

    def _of_program(self, program: _TestProgram, line: str) -> None:
        program.text.add(line)
        bare = line.rstrip()
        announced = None if program.announced or program.tests else _ANNOUNCED.match(bare)
        if announced:
            check_count(self._tests + int(announced[1]))
            program.announced = int(announced[1])
        elif bare.startswith("test result: "):
            program.finished, program.in_texts = True, False
        elif bare.startswith("process didn't exit successfully: ", 2):
            program.crashed = True
        elif bare in ("failures:", "successes:"):
            program.in_texts, program.shown = True, None
        elif program.in_texts:
            self._of_texts(program, line)
        elif bare.startswith("test ") and " ... " in line:
            name, _, rest = line[len("test ") :].rstrip("\n").partition(" ... ")
            self._of_test(program, name.removesuffix(" - should panic"), rest)
        elif program.pending is not None:
            self._of_test(program, program.pending, bare)

    def _of_test(self, program: _TestProgram, name: str, rest: str) -> None:
        match = _OUTCOME.match(rest)
        program.pending = None if match else name
        if match and (name not in program.tests or match[1] == "FAILED"):
            check_count(self._tests)
            self._tests += 1
            program.tests[name] = _RustTest(_OUTCOMES[match[1]])

    def _of_texts(self, program: _TestProgram, line: str) -> None:
        match = _HEADER.match(line.rstrip())
        test = program.tests.get(match[1]) if match else None
        if test is not None and test.outcome == "failed" and not test.text:
            program.shown = test
        elif program.shown is not None:
            program.shown.text.add(line)


def _verbose_executable(line: str) -> str:
    """The program in cargo's verbose form of the line, which shows the whole command.

    >>> _verbose_executable("     Running `CARGO=/c /w/target/debug/deps/foo-1 --exact`")
    '/w/target/debug/deps/foo-1'
    """
    command = line.lstrip()
    if not command.startswith("Running `"):
        return ""
    words = command.removeprefix("Running `").rstrip("`").split(" ")
    return next((word for word in words if "=" not in word), "")
