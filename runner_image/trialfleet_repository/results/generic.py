"""JUnit XML of any test runner."""

from __future__ import annotations

from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.limits import CaseList


def read_junit(report: bytes) -> ReadResults:
    """The cases as they are written. The unit is the `file` attribute, or the `classname` where there is none.

    Which of them stand for a file that could not be loaded differs from runner to runner: only pytest's spelling
    is known. Raises `JUnitError`.
    """
    found = CaseList()
    for case in junit.parse(report):
        unit, text = case.file or case.classname, case.text or case.message
        if case.at_collection:
            found.not_loaded(unit, text)
        else:
            found.add(unit, case.name, case.outcome, text)
    return ReadResults(tuple(found.cases))
