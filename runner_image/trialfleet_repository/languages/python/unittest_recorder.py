"""Runs a call of a test runner that is built on unittest, and records it: a stand-alone program for Python 3.8 and
later.

    python -m unittest_recorder REPORT -m unittest tests.test_cart.TotalTest
    python -m unittest_recorder REPORT manage.py test cart.tests

The call runs in this process as it would without this program: its loader, its settings, its databases. Every test
of the suites that it runs, and its outcome, is written to REPORT as JUnit XML, with test files as class names and
`Class::method` as names. Which tests were loaded goes to a file in HOME.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import traceback
import unittest
from functools import lru_cache
from xml.sax.saxutils import quoteattr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROOT = os.path.realpath(os.getcwd())  # noqa: PTH109 - pathlib costs start-up time
RECORD = os.path.join(os.path.expanduser("~"), "test-settings.json")  # noqa: PTH111, PTH118
MAX_TEXT = 20_000  # characters of a failure
ORDER = ("passed", "skipped", "failed", "error")  # from the best to the worst
TAGS = {"skipped": "skipped", "failed": "failure", "error": "error"}
COLLECTION = "collection failure"  # the message of a module that cannot be imported
FIXTURE = re.compile(r"(?P<fixture>\w+) \((?P<owner>[\w.]+)\)")  # as unittest names those of classes and modules
SCENARIO = re.compile(r"(?P<method>\w+)(?:\((?P<name>.*)\)|:(?P<number>\d+)\b.*)", re.DOTALL)
NOT_OF_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufde0-\ufffd\U00010000-\U0010ffff]")
OUTCOMES = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "failed",
    "addSkip": "skipped",
    "addExpectedFailure": "skipped",
    "addUnexpectedSuccess": "failed",
    "addSubTest": "passed",  # or what it failed with
}


def path_of(file: str) -> str | None:
    """From the root; None outside of it."""
    path = os.path.relpath(os.path.realpath(file), ROOT)
    return None if path.startswith("..") else path.replace(os.sep, "/")


@lru_cache(maxsize=None)
def path_of_module(name: str) -> str:
    """The file of a module, or of the module that holds what is named; the name itself where there is none."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        file = getattr(sys.modules.get(".".join(parts[:end])), "__file__", None)
        places = [os.path.join(entry or ".", *parts[:end]) + ".py" for entry in sys.path]  # noqa: PTH118
        for place in filter(None, [file, *places]):
            path = path_of(place)
            if path is not None and os.path.isfile(place):  # noqa: PTH113
                return path
    return name


def address(test: Any) -> tuple[str, str]:
    """(File, `Class::method`). What a scenario or a parameter adds to a name stands in brackets."""
    kind = test.__class__
    example = getattr(test, "_dt_test", None)  # a doctest
    if example is not None:
        return path_of(example.filename or "") or str(example.filename), str(example.name)
    names: list[str] = str(kind.__qualname__).split(".")
    whole = str(test.id())
    start = ".".join((kind.__module__, *names, ""))
    if whole.startswith(start):
        method = whole[len(start) :]
    elif whole.startswith(f"{kind.__module__}."):  # a function, to nose2
        names, method = [], whole[len(kind.__module__) + 1 :]
    else:
        method = str(getattr(test, "_testMethodName", whole))
    made = SCENARIO.fullmatch(method)
    if made is not None:
        method = f"{made['method']}[{made['name'] or made['number']}]"
    return path_of_module(kind.__module__), "::".join((*names, method))


def tests_of(suite: Any) -> Iterator[Any]:
    try:
        inner = list(suite)
    except TypeError:
        if suite is not None:
            yield suite
        return
    for each in inner:
        yield from tests_of(each)


def is_failed_import(test: Any) -> bool:
    return type(test).__name__ in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure", "ErrorHolder")


def text_of(problem: Any, details: Any) -> tuple[str, str]:
    """(Message, text) of what a result was told."""
    kind, error, trace = problem if _is_exception(problem) else (None, None, None)
    if kind is not None:
        text = "".join(traceback.format_exception(kind, error, trace))
        message = "".join(traceback.format_exception_only(kind, error)).strip()
    elif details:
        text = "\n".join(str(each.as_text()) for each in details.values() if each.content_type.type == "text")
        message = text.strip().rpartition("\n")[2]
    else:
        text = message = "" if problem is None else str(problem)
    return message[:1000], text[-MAX_TEXT:]


def _is_exception(problem: Any) -> bool:
    """With its kind and its traceback."""
    return problem.__class__ is tuple and len(problem) == 3


class RecordedCase:
    """One test and the worst that it was told."""

    def __init__(self, file: str, name: str, outcome: str, message: str = "", text: str = "") -> None:
        self.file, self.name, self.outcome, self.message, self.text = file, name, outcome, message, text

    def xml(self) -> str:
        head = f"<testcase classname={quote_text(self.file)} name={quote_text(self.name)}"
        tag = TAGS.get(self.outcome)
        if tag is None:
            return head + "/>"
        text = NOT_OF_XML.sub("?", self.text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"{head}><{tag} message={quote_text(self.message)}>{text}</{tag}></testcase>"


def quote_text(text: str) -> str:
    return quoteattr(NOT_OF_XML.sub(lambda found: f"#x{ord(found[0]):02X}", text))


class SuiteRecorder:
    """What the call's suites did. `loaded`: address -> the dotted name of its class."""

    def __init__(self, report: str) -> None:
        self.report, self.pid, self.running = report, os.getpid(), False
        self.cases: dict[tuple[str, str], RecordedCase] = {}
        self.loaded: dict[tuple[str, str], str] = {}
        self.named: dict[int, str] = {}  # of tests that stand for a name that cannot be loaded
        self.taken_back: list[str] = []

    def add(self, file: str, name: str, outcome: str, message: str = "", text: str = "") -> None:
        case = self.cases.get((file, name))
        if case is None or ORDER.index(outcome) > ORDER.index(case.outcome):
            self.cases.pop((file, name), None)
            self.cases[file, name] = RecordedCase(file, name, outcome, message, text)

    def load(self, suite: Any, name: str | None = None) -> None:
        """Note what a loader returned, or what is about to run."""
        for test in tests_of(suite):
            if is_failed_import(test):
                if name is not None:
                    self.named.setdefault(id(test), name)
            else:
                self.loaded.setdefault(address(test), f"{type(test).__module__}.{type(test).__qualname__}")

    def tell(self, call: str, test: Any, problem: Any, details: Any) -> None:
        """Note what a result was told of a test."""
        outcome = OUTCOMES[call]
        message, text = text_of(problem, details)
        fixture = FIXTURE.fullmatch(str(getattr(test, "description", "")))
        if type(test).__name__ == "_SubTest":
            test, outcome = test.test_case, "passed" if outcome == "skipped" else outcome
        if fixture is not None and not isinstance(test, unittest.TestCase):
            self.fail_fixture(fixture, "skipped" if outcome == "skipped" else "error", message, text)
        elif is_failed_import(test):
            name = self.named.get(id(test), str(getattr(test, "_testMethodName", test.id())))
            self.add(path_of_module(name), "", "error", COLLECTION, text)
        else:
            self.add(*address(test), outcome, message, text)

    def fail_fixture(self, fixture: Any, outcome: str, message: str, text: str) -> None:
        """Of a class or module: it concerns the tests that did not run for it, else the one that ran last."""
        owner = fixture["owner"]
        own = [at for at, name in self.loaded.items() if f"{name}.".startswith(f"{owner}.")]
        concerned = [at for at in own if at not in self.cases] or own[-1:]
        for file, name in concerned or [(path_of_module(owner), fixture["fixture"])]:
            self.add(file, name, outcome, message, text)

    def watch(self, result: Any) -> None:
        """Have a result tell this what it is told."""
        if getattr(result, "failfast", False) and not {"-f", "--failfast"} & set(sys.argv[1:]):
            result.failfast = False
            self.taken_back.append("--failfast")
        for call in OUTCOMES:
            if hasattr(result, call):
                setattr(result, call, self.telling(call, getattr(result, call)))

    def telling(self, call: str, original: Any) -> Any:
        def tell_both(test: Any, *args: Any, **kwargs: Any) -> Any:
            if call != "addSubTest":
                self.tell(call, test, args[0] if args else kwargs.get("err"), kwargs.get("details"))
            elif args[1] is not None:
                self.tell("addFailure", test, args[1], None)
            return original(test, *args, **kwargs)

        return tell_both

    def write(self) -> None:
        """Everything so far. Not in a process that a test forked."""
        if os.getpid() != self.pid:
            return
        rows = "\n".join(case.xml() for case in self.cases.values())
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuite name="unittest">\n{rows}\n</testsuite>\n'
        multiplied = {(file, name.partition("[")[0]) for file, name in self.cases}  # by scenarios, as they ran
        collected = [f"{at[0]}::{at[1]}" for at in self.loaded if at in self.cases or at not in multiplied]
        with open(self.report, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
        try:
            with open(RECORD, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                json.dump({"taken_back": self.taken_back, "collected": collected}, file)
        except OSError:  # tests may have no HOME that they can write
            return


def record_suites(recorder: SuiteRecorder) -> None:
    """The outermost suites: what tests run themselves is their own."""
    run = unittest.BaseTestSuite.__call__

    def record_call(suite: Any, *args: Any, **kwargs: Any) -> Any:
        result = args[0] if args else kwargs.get("result")
        if recorder.running or result is None:
            return run(suite, *args, **kwargs)
        recorder.load(suite)
        recorder.watch(result)
        recorder.running = True
        try:
            return run(suite, *args, **kwargs)
        finally:
            recorder.running = False
            recorder.write()

    setattr(unittest.BaseTestSuite, "__call__", record_call)  # noqa: B010 - its type is another


def record_loader(recorder: SuiteRecorder) -> None:
    """What the standard loader makes of each name that it is given, whether or not it is run then."""
    load = unittest.TestLoader.loadTestsFromName

    def record_call(loader: Any, name: str, module: Any = None) -> Any:
        if recorder.running:
            return load(loader, name, module)
        try:
            suite = load(loader, name, module)
        except Exception:  # of a module's own code: unittest ends with it
            recorder.add(path_of_module(name), "", "error", COLLECTION, traceback.format_exc()[-MAX_TEXT:])
            recorder.write()
            raise
        recorder.load(suite, name)
        return suite

    setattr(unittest.TestLoader, "loadTestsFromName", record_call)  # noqa: B010 - its type is another


def run_call(words: list[str]) -> None:
    """As the interpreter would."""
    if words[0] == "-m":
        sys.path[0] = os.getcwd()  # noqa: PTH109
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))  # noqa: PTH100, PTH120
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    recorder = SuiteRecorder(sys.argv[1])
    record_suites(recorder)
    record_loader(recorder)
    run_call(sys.argv[2:])
