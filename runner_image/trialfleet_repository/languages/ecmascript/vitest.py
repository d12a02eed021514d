"""Vitest's JUnit XML. Units are files, names are titles joined by " > "."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.limits import CaseList


def read_vitest(report: bytes) -> ReadResults:
    """The file that `vitest run --reporter=junit --outputFile=FILE` writes. Raises `JUnitError`.

    A case named like its file is about the file: it could not be loaded, unless it has tests. A suite whose hook
    failed has the outcome "error"; Vitest reports the tests that the hook prevented as skipped.
    """
    found = CaseList()
    cases = junit.parse(report)
    sizes = Counter(case.classname for case in cases)
    names = sorted((case.classname, case.name) for case in cases)
    for case in cases:
        unit, text = case.classname, case.text or case.message
        if case.outcome not in ("failed", "error"):
            found.add(unit, case.name, case.outcome)
        elif case.name != unit:
            found.add(unit, case.name, "error" if _has_tests(names, unit, case.name) else "failed", text)
        elif sizes[unit] == 1:
            found.not_loaded(unit, text)
        else:
            found.outside_tests(unit, text)
    return ReadResults(tuple(found.cases))


def _has_tests(names: list[tuple[str, str]], unit: str, name: str) -> bool:
    """Whether a case is below `name`. `names`: (unit, name) of every case, sorted."""
    within = (unit, name + " > ")
    place = bisect_left(names, within)
    return place < len(names) and names[place][0] == unit and names[place][1].startswith(within[1])
