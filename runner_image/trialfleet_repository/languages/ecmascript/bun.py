"""The JUnit XML of `bun test`. Units are files, names are titles joined by " > "."""

from __future__ import annotations

from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.limits import CaseList

_HOOK = "(unnamed)"


def read_bun(report: bytes) -> ReadResults:
    """The file that `bun test --reporter=junit --reporter-outfile=FILE` writes. Raises `JUnitError`.

    Titles of nested suites stand in Bun's order, the inner one first. A hook that failed has the outcome "error".
    The tests that it prevented, and those of a file that could not be loaded, are not in the report.
    """
    found = CaseList()
    for case in junit.parse(report):
        hook = case.name == _HOOK and case.outcome == "failed"
        name = " > ".join(filter(None, (case.classname, case.name)))
        found.add(case.file or "", name, "error" if hook else case.outcome, case.text or case.message)
    return ReadResults(tuple(found.cases))
