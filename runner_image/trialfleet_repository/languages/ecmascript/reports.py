"""The reports of Jest, Mocha and node:test. Units are files, names are titles joined by " > "."""

from __future__ import annotations

from typing import get_args

from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.junit import CaseOutcome
from trialfleet_repository.results.limits import (
    CaseList,
    ResultError,
    as_list,
    as_object,
    as_text,
    check_size,
    decoded_object,
    json_object,
    lines_of,
)

_BETWEEN = " > "
MOCHA_BEGINS = b'{\n  "stats": {'  # its report
_JEST: dict[str, CaseOutcome] = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "todo": "skipped",
    "skipped": "skipped",
    "disabled": "skipped",
}


def read_jest(report: bytes, workspace: str) -> ReadResults:
    """The file that `jest --json --outputFile=FILE` writes. Raises `ResultError`."""
    found = CaseList()
    for file in _objects(_report(report, "testResults"), "testResults"):
        unit, failed = _relative(file.get("name"), workspace), file.get("status") == "failed"
        tests = [test for test in _objects(file, "assertionResults") if as_text(test.get("status")) in _JEST]
        for test in tests:
            titles = [as_text(title) for title in (*as_list(test.get("ancestorTitles")), test.get("title"))]
            text = "\n".join(map(as_text, as_list(test.get("failureMessages"))))
            found.add(unit, _BETWEEN.join(titles), _JEST[as_text(test["status"])], text)
        if failed and not tests:
            found.not_loaded(unit, as_text(file.get("message")))
        elif failed and all(test["status"] != "failed" for test in tests):
            found.outside_tests(unit, as_text(file.get("message")))
    return ReadResults(tuple(found.cases))


def read_mocha(report: bytes, workspace: str) -> ReadResults:
    """The file that `mocha --reporter json --reporter-options output=FILE` writes. Raises `ResultError`.

    Mocha joins the titles of nested suites with spaces: only the test's own title is set apart. A hook that
    failed has the outcome "error"; the tests that it prevented are not in the report.
    """
    whole = _report(report, "tests")
    found = CaseList()
    failures = {_mocha_key(failure): failure for failure in _objects(whole, "failures")}
    pending = {_mocha_key(test) for test in _objects(whole, "pending")}
    tests = _objects(whole, "tests")
    for test in tests:
        failed = _mocha_key(test) in failures or bool(as_object(test.get("err")))
        outcome: CaseOutcome = "failed" if failed else "skipped" if _mocha_key(test) in pending else "passed"
        found.add(_relative(test.get("file"), workspace), _mocha_name(test), outcome, _mocha_text(test))
    for key in failures.keys() - {_mocha_key(test) for test in tests}:
        hook = failures[key]
        found.add(_relative(hook.get("file"), workspace), _mocha_name(hook), "error", _mocha_text(hook))
    return ReadResults(tuple(found.cases))


def read_node(report: bytes, workspace: str) -> ReadResults:
    """The lines of `node_reporter.mjs`. Raises `ResultError`.

    A file that fails without a finished test could not be loaded. Before Node 20 suites look like tests.
    """
    found = CaseList()
    units_with_tests: set[str] = set()
    for line in lines_of(report):
        entry = json_object(line) or {}
        unit = _relative(entry.get("file"), workspace)
        name, text = as_text(entry.get("name")), as_text(entry.get("text"))
        outcome = next((value for value in get_args(CaseOutcome) if value == entry.get("outcome")), None)
        if outcome is None or not name:
            continue
        if entry.get("whole") is True:
            if outcome == "failed":
                (found.outside_tests if unit in units_with_tests else found.not_loaded)(unit, text)
        elif entry.get("suite") is True:
            if entry.get("hook") is True:
                found.add(unit, name, "error", text)
        else:
            found.add(unit, name, outcome, "" if outcome == "passed" else text)
            units_with_tests.add(unit)
    return ReadResults(tuple(found.cases))


def _report(report: bytes, key: str) -> dict[str, object]:
    check_size(report)
    whole = decoded_object(report)
    if whole is None or not isinstance(whole.get(key), list):
        raise ResultError(f'not a JSON object with a list "{key}"')
    return whole


def _objects(holder: dict[str, object], key: str) -> list[dict[str, object]]:
    return [entry for entry in map(as_object, as_list(holder.get(key))) if entry is not None]


def _relative(file: object, workspace: str) -> str:
    return as_text(file).removeprefix(workspace.rstrip("/") + "/")


def _mocha_key(test: dict[str, object]) -> tuple[str, str]:
    return as_text(test.get("file")), as_text(test.get("fullTitle"))


def _mocha_name(test: dict[str, object]) -> str:
    title, full = as_text(test.get("title")), as_text(test.get("fullTitle"))
    suites = full.removesuffix(title).rstrip()
    return f"{suites}{_BETWEEN}{title}" if suites else title


def _mocha_text(test: dict[str, object]) -> str:
    error = as_object(test.get("err")) or {}
    return as_text(error.get("stack")) or as_text(error.get("message"))
