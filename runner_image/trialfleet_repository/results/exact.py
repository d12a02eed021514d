"""Results whose test ids are exact: `unit::name`, as the test runner wrote both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trialfleet_ledger.records.measurements import TestResult
from trialfleet_repository.results.junit import CaseOutcome, JunitCase

_ORDER: tuple[CaseOutcome, ...] = ("passed", "skipped", "failed", "error")  # from the best to the worst


@dataclass(frozen=True)
class ReadResults:
    """What a test runner reported. `output`: the text that a person would have seen, where the runner printed a
    machine format; None: the output is already that text. `collected`: ids of the tests that the runner says it
    has; None: it does not say it here."""

    cases: tuple[JunitCase, ...]
    output: str | None = None
    collected: tuple[str, ...] | None = None

    @property
    def failures(self) -> str:
        """What the report says of the tests that failed, as a person would read it."""
        failed = [case for case in self.cases if case.outcome in ("failed", "error")]
        words = [f"FAILED {case.classname} {case.name}\n{case.message}\n{case.text}".strip() for case in failed]
        return "\n\n".join(words) + "\n"


def exact_results(ids: Iterable[str], cases: Sequence[JunitCase]) -> tuple[TestResult, ...]:
    """The outcome of every id, in order; "missing" when no case has it, the worst when several have."""
    found = exact_outcomes(cases)
    return tuple(TestResult(id=i, outcome=found.get(i, "missing")) for i in ids)


def exact_outcomes(cases: Sequence[JunitCase]) -> dict[str, CaseOutcome]:
    """Id -> outcome. Cases without a name are failures of a file or package, and no tests.

    >>> exact_outcomes([JunitCase("a/x.test.js", "adds", None, "passed")])
    {'a/x.test.js::adds': 'passed'}
    """
    found: dict[str, CaseOutcome] = {}
    for case in cases:
        if case.name:
            test = f"{case.classname}::{case.name}"
            found[test] = _worse(found.get(test, "passed"), case.outcome)
    return found


def _worse(one: CaseOutcome, other: CaseOutcome) -> CaseOutcome:
    return one if _ORDER.index(one) >= _ORDER.index(other) else other
