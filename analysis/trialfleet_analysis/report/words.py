"""The result in sentences, and what a reader must know before believing it."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_analysis.estimates import Interval, Test, rejects
from trialfleet_analysis.rates import ConditionResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.contrasts import Contrast, Declared
from trialfleet_analysis.report.document.missing import Robustness
from trialfleet_analysis.report.figures import limits, p_value, percent, plural, point_limits, points
from trialfleet_analysis.report.warnings import cautions

__all__ = ["answer", "cautions", "estimand"]


def answer(report: Report) -> tuple[str, ...]:
    """The declared contrast in one sentence, with estimand, effect, interval, p and robustness; then the other
    estimand, which cannot rescue it. Without a declared contrast, every condition, and no test."""
    headline, declared = report.headline, report.analysis.declared
    if headline is None or declared is None:
        return tuple(_conditions(report))
    return (_first(report, headline, declared), *_second(headline, declared))


def estimand(report: Report) -> str:
    """What the conditions' rates on these tasks stand for: never printed without."""
    return f"these tasks ({len(report.compared)} of {len(report.tasks)})"


def _first(report: Report, headline: Contrast, declared: Declared) -> str:
    test, difference = _declared_part(headline, declared)
    if difference.estimate is None or test.p_value is None:
        reason = test.reason or difference.reason
        return f"The declared contrast {headline.name} has no answer yet: {reason}."
    verb = _verb(difference.estimate, rejects(test.p_value, declared.alpha))
    robust = next((r for r in report.analysis.robustness if r.estimand == declared.estimand), None)
    return (
        f"{_on(headline, declared.estimand)}, {headline.treatment} {verb} {headline.control}: "
        f"{percent(headline.treatment_rate)} against {percent(headline.control_rate)}, a difference of "
        f"{points(difference.estimate)} ({_limits(difference)}), {p_value(test.p_value)}"
        f"{', not valid under monitoring' if report.analysis.monitored else ''}; {_robust(robust)}."
    )


def _declared_part(headline: Contrast, declared: Declared) -> tuple[Test, Interval]:
    part = headline.these_tasks if declared.estimand == "these_tasks" else headline.tasks_like_these
    return part.test, part.difference


def _verb(difference: float, rejected: bool) -> str:
    if not rejected:
        return "could not be told from"
    return "passed more often than" if difference > 0 else "passed less often than"


def _on(headline: Contrast, estimand: str) -> str:
    tasks = plural(headline.tasks, "task")
    if estimand == "these_tasks":
        return f"On {'this' if headline.tasks == 1 else 'these'} {tasks}"
    return f"On tasks like these, judged by {tasks}"


def _limits(difference: Interval) -> str:
    text = point_limits(difference)
    return f"{100 * difference.level:g}% interval {text}" if text else f"no interval: {difference.reason}"


def _robust(found: Robustness | None) -> str:
    if found is None:
        return "robustness to losses is not known"
    missing = found.missing_treatment + found.missing_control
    if not missing:
        return "no first run was lost, so losses cannot have made this"
    trials = plural(missing, "lost first run")
    if found.robust:
        return f"robust: the {trials} cannot change that decision"
    if found.tipping_point is None:
        return f"not robust to the {trials}"
    few = "" if found.tipping_exhaustive else "at most "
    return f"not robust: of the {trials}, {few}{found.tipping_point} could change that decision"


def _second(headline: Contrast, declared: Declared) -> Iterator[str]:
    on_these = declared.estimand == "these_tasks"
    name = "tasks like these" if on_these else "these tasks"
    other = headline.tasks_like_these if on_these else headline.these_tasks
    if other.difference.estimate is None or other.test.p_value is None:
        yield f"The other estimand, {name}, has no answer: {other.test.reason or other.difference.reason}."
        return
    adjusted = other.adjusted.p_value if other.adjusted else None
    yield (
        f"The other estimand, {name}, is secondary and cannot rescue this: {points(other.difference.estimate)} "
        f"({_limits(other.difference)}), {p_value(other.test.p_value)}"
        + (f", {p_value(adjusted)} after Holm's correction." if adjusted is not None else ".")
    )


def _conditions(report: Report) -> Iterator[str]:
    measured = [result for result in report.conditions if result.these_tasks.estimate is not None]
    if not measured:
        yield "Nothing to count: no complete block holds a verdict that can be used."
        return
    parts = [f"{result.condition} {_rate(result)}" for result in measured]
    yield f"Mean pass rates on these tasks: {'; '.join(parts)}."
    yield (
        "The campaign declares no primary contrast, so there is no headline test: pairwise contrasts are listed "
        "as unplanned, corrected for their number."
    )


def _rate(result: ConditionResult) -> str:
    return f"{percent(result.these_tasks.estimate)} ({limits(result.these_tasks)})"
