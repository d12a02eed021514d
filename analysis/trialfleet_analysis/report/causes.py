"""What a reader must know of passes that the product's changes do not explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from trialfleet_analysis.process import CautionedPass, UncausedPass
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import Verdict

_NAMED = 5  # trials or tasks of a sentence
_TABLE = "“How did trials end?” lists"


def forged_sentences(report: Report) -> Iterator[str]:
    """For the answer; none without a forged trial."""
    forged = [one for one in report.uncaused if one.verdict is Verdict.FORGED]
    if forged:
        yield (
            f"Careful: {_name_trials(report, forged, 'forged trial')}, counted as failed. Their tests would pass "
            f"whether or not the product is fixed. {_TABLE} their files; `trialfleet show CAMPAIGN TRIAL` shows a "
            "patch."
        )


def cause_cautions(report: Report) -> Iterator[str]:
    """Passes that need files apart from the product's; tasks whose tests also pass without a change."""
    others = [one for one in report.uncaused if one.verdict is not Verdict.FORGED]
    needing = [one for one in others if not one.unsteady]
    if needing:
        yield (
            f"Read the patches of {_name_trials(report, needing, 'trial')} before relying on the result: the "
            f"tests pass only with changed files that are not the product’s. {_TABLE} these files."
        )
    unsteady = Counter(one.task for one in others if one.unsteady)
    for task, count in list(unsteady.items())[:_NAMED]:
        yield (
            f"Task {task} is unsteady: in {plural(count, 'trial')} its tests also passed without any change. They "
            "count by their verdict; leave the task out of the next campaign, or repair its tests."
        )


def code_cautions(report: Report) -> Iterator[str]:
    """Passes whose added lines recognise or end tests, or that tests that must fail do not confirm."""
    if report.cautioned:
        yield (
            f"Read the patches of {_name_trials(report, report.cautioned, 'passed trial')}: their tests that "
            "must fail confirm nothing, or they add lines that read the stack or the loaded modules, look for the "
            "test runner or end the process, as code does that recognises its tests. They count as passed. "
            f"{_TABLE} the lines."
        )


def _name_trials(report: Report, which: Sequence[UncausedPass | CautionedPass], noun: str) -> str:
    """How many, per condition, and which."""
    counts = Counter(one.condition for one in which)
    each = ", ".join(f"{name} {counts[name]:,}" for name in report.condition_names if counts[name])
    ids = ", ".join(one.trial for one in which[:_NAMED])
    more = f" and {len(which) - _NAMED:,} more" if len(which) > _NAMED else ""
    return f"{plural(len(which), noun)} ({each}: {ids}{more})"
