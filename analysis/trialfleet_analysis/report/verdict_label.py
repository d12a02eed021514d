"""The answer in a word or two, before its sentence."""

from __future__ import annotations

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
OF_METRIC: dict[Outcome, str] = {"more": "More", "less": "Less"}
OF_TREND: dict[Outcome, str] = {"more": "Rises with the dose", "less": "Falls with the dose"}


def label_verdict(report: Report) -> str | None:
    """None where nothing was declared. An interim answer is never more than a tendency."""
    outcome = report.decision
    if outcome is None:
        return None
    if report.state == "interim" and outcome != "undefined":
        return "Not finished: no conclusion yet"
    result = declared_result(report)
    if outcome == "not_shown" and result and result.equivalence and result.equivalence.equivalent:
        return "Alike within the margin"
    own = {"metric": OF_METRIC, "trend": OF_TREND}.get(report.analysis.design, LABELS)
    return own.get(outcome, LABELS[outcome])
