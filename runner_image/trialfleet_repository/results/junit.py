"""JUnit XML, written by a program that may be hostile, to outcomes per pytest id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.parsers import expat

from trialfleet_ledger.records.measurements import TestResult

MAX_BYTES = 64 * 2**20
MAX_CASES = 200_000
_BUFFER = 2**16  # bytes of text that come in one piece

CaseOutcome = Literal["passed", "failed", "error", "skipped"]
_SEVERITY: Mapping[CaseOutcome, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
_CHILDREN: Mapping[str, CaseOutcome] = {"failure": "failed", "error": "error", "skipped": "skipped"}


class JUnitError(ValueError):
    """Not a JUnit XML file, or one that nobody has to read."""


@dataclass(frozen=True)
class JunitCase:
    """One `testcase`. `message` and `text` are of its failure or error, as far as there is one."""

    classname: str
    name: str
    file: str | None
    outcome: CaseOutcome
    message: str = ""
    text: str = ""

    @property
    def at_collection(self) -> bool:
        """pytest reports a module that cannot be collected as a case with this message."""
        return self.outcome == "error" and self.message == "collection failure"


def parse(data: bytes) -> tuple[JunitCase, ...]:
    """Every test case. Raises `JUnitError`; declarations of documents and entities are refused, so nothing grows
    and nothing outside is read."""
    if len(data) > MAX_BYTES:
        raise JUnitError(f"larger than {MAX_BYTES} bytes")
    reader = _JunitReader()
    parser = expat.ParserCreate()
    parser.buffer_text = True  # else a string per line: thirty times the size of the file
    parser.buffer_size = _BUFFER
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise JUnitError(f"not XML: {error}") from None
    if not reader.is_junit:
        raise JUnitError("no <testsuite>")
    return tuple(reader.cases)


def results(ids: Iterable[str], cases: Sequence[JunitCase]) -> tuple[TestResult, ...]:
    """The outcome of every id, in order; "missing" when no case is its.

    A test whose set-up, call and teardown are reported apart has the worst of them.
    """
    table = _Table(cases)
    return tuple(TestResult(id=i, outcome=table.outcome(i) or "missing") for i in ids)


def outcomes(cases: Sequence[JunitCase], files: Iterable[str]) -> dict[str, CaseOutcome]:
    """pytest id -> outcome for every case that lies in one of the test files (paths as pytest was given them).

    >>> outcomes([JunitCase("tests.test_a.TestB", "test_c[x]", None, "passed")], ["tests/test_a.py"])
    {'tests/test_a.py::TestB::test_c[x]': 'passed'}
    """
    modules = sorted(((module_name(file), file) for file in files), key=lambda pair: -len(pair[0]))
    found: dict[str, CaseOutcome] = {}
    for case in cases:
        identity = None if case.at_collection else _identify(case, modules)
        if identity is not None:
            found[identity] = _worst(found.get(identity), case.outcome)
    return found


def collection_failures(cases: Sequence[JunitCase]) -> tuple[JunitCase, ...]:
    """What could not be collected."""
    return tuple(case for case in cases if case.at_collection)


def module_name(file: str) -> str:
    """A test file as pytest's class names spell it.

    >>> module_name("tests/unit/test_a.py")
    'tests.unit.test_a'
    """
    return re.sub(r"\.py$", "", file.removeprefix("./").replace("/", "."))


def address(test_id: str) -> tuple[str, str]:
    """(classname, name) that pytest's JUnit XML gives a test id (`mangle_test_address` of `_pytest.junitxml`).

    >>> address("tests/test_a.py::TestB::test_c[x::y]")
    ('tests.test_a.TestB', 'test_c[x::y]')
    """
    path, bracket, parameters = test_id.partition("[")
    names = path.split("::")
    names[0] = module_name(names[0])
    names[-1] += bracket + parameters
    return ".".join(names[:-1]), _escaped(names[-1])


def function_id(test_id: str) -> str:
    """The id without its parameters: what stays when the code changes the parameters.

    >>> function_id("a[b]/test_a.py::test_c[x]")
    'a[b]/test_a.py::test_c'
    """
    path, separator, rest = test_id.partition("::")
    return path + separator + rest.partition("[")[0]


def _escaped(text: str) -> str:
    """As pytest writes what XML cannot hold. The set that pytest negates takes ten times as long to compile."""
    return re.sub(
        "[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]",
        lambda m: f"#x{ord(m[0]):02X}" if ord(m[0]) <= 0xFF else f"#x{ord(m[0]):04X}",
        text,
    )


def _worst(one: CaseOutcome | None, other: CaseOutcome) -> CaseOutcome:
    return other if one is None or _SEVERITY[other] > _SEVERITY[one] else one


def _identify(case: JunitCase, modules: list[tuple[str, str]]) -> str | None:
    for module, file in modules:
        rest = _after(case.classname, module)
        if rest is not None:
            return "::".join([file, *filter(None, rest.split(".")), case.name])
    return None


def _after(classname: str, module: str) -> str | None:
    """What follows the module in a class name. pytest names files from its root folder, which may lie below the
    folder it was started in: so the module's tail is enough."""
    tail = module
    while tail:
        if classname == tail or classname.startswith(tail + "."):
            return classname[len(tail) + 1 :]
        tail = tail.partition(".")[2]
    return None


class _Table:
    """Cases by (classname, name); ids whose classname is unknown are matched by their tail, if that is unique."""

    def __init__(self, cases: Sequence[JunitCase]) -> None:
        self.exact: dict[tuple[str, str], CaseOutcome] = {}
        self.by_name: dict[str, set[str]] = {}
        for case in cases:
            key = (case.classname, case.name)
            self.exact[key] = _worst(self.exact.get(key), case.outcome)
            self.by_name.setdefault(case.name, set()).add(case.classname)

    def outcome(self, test_id: str) -> CaseOutcome | None:
        classname, name = address(test_id)
        if (classname, name) in self.exact:
            return self.exact[classname, name]
        near = [
            c
            for c in self.by_name.get(name, ())
            if c and (classname.endswith("." + c) or c.endswith("." + classname))
        ]
        return self.exact[near[0], name] if len(near) == 1 else None


class _JunitReader:
    def __init__(self) -> None:
        self.cases: list[JunitCase] = []
        self.is_junit = False
        self._open: dict[str, str] | None = None
        self._outcome: CaseOutcome = "passed"
        self._message = ""
        self._text: list[str] | None = None
        self._kept: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("testsuite", "testsuites"):
            self.is_junit = True
        elif name == "testcase":
            self._open, self._outcome, self._message, self._kept = attributes, "passed", "", []
        elif self._open is not None and name in _CHILDREN:
            worst = _worst(self._outcome, _CHILDREN[name])
            if worst != self._outcome or not self._message:
                self._message = attributes.get("message", "")
            self._outcome, self._text = worst, []

    def text(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def end(self, name: str) -> None:
        if name in _CHILDREN and self._text is not None:
            self._kept.append("".join(self._text))
            self._text = None
        elif name == "testcase" and self._open is not None:
            if len(self.cases) >= MAX_CASES:
                raise JUnitError(f"more than {MAX_CASES} test cases")
            self.cases.append(
                JunitCase(
                    classname=self._open.get("classname", ""),
                    name=self._open.get("name", ""),
                    file=self._open.get("file"),
                    outcome=self._outcome,
                    message=self._message,
                    text="\n".join(self._kept),
                )
            )
            self._open = None


def _refuse(*_: object) -> None:
    raise JUnitError("declares a document type or entities")
