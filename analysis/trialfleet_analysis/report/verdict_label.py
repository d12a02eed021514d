"""The answer in a word or two, before its sentence."""

from __future__ import annotations

from trialfleet_analysis.report.answer import claims_equivalence
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import declared_result
from trialfleet_designs.comparison.outcome import Outcome

LABELS: dict[Outcome, str] = {
    "more": "Better",
    "less": "Worse",
    "conflict": "Contradictory",
    "not_shown": "Undecided",
    "not_possible": "Undecided",
    "undefined": "No answer",
    "shown": "Shown",
}
ALIKE = "Alike within the margin"
NOT_FINISHED = "Not finished: no conclusion yet"


def label_verdict(report: Report) -> str | None:
    """As the first sentence has it; None where nothing was declared. While trials are missing that may change the
    answer there is none."""
    outcome = report.decision
    if outcome is None:
        return None
    result = declared_result(report)
    if result is not None and claims_equivalence(result, outcome):
        return ALIKE
    if outcome != "undefined" and may_still_change(report, outcome):
        return NOT_FINISHED
    return report.design.name_outcome(report.analysis.found) or LABELS[outcome]


def may_still_change(report: Report, outcome: Outcome) -> bool:
    """Whether later trials may change it."""
    design, found = report.design, report.analysis.found
    if design.has_ended(found):
        return False
    if outcome in ("not_shown", "not_possible") and design.goes_on(found):
        return True
    if outcome == "undefined" and report.progress.interim and design.goes_on(found):
        return True  # before its first look; what has all its trials and is undefined stays so
    return report.analysis.monitored and not design.allows_for_looks
