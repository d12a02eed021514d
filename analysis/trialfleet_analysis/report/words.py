"""The result in sentences, and what a reader must know before believing it."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_analysis.rates import ConditionResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import limits, percent, plural, points
from trialfleet_analysis.tables import Use


def answer(report: Report) -> tuple[str, ...]:
    """What was found, descriptively: the declared contrast, or every condition when none was declared."""
    return tuple(_contrast(report) if report.primary else _conditions(report))


def cautions(report: Report) -> tuple[str, ...]:
    """In the order of their weight."""
    return (
        *_interim(report),
        *_quarantine(report),
        *_tasks(report),
        *_losses(report),
        *_delivery(report),
        *_traces(report),
    )


def estimand(report: Report) -> str:
    """What the conditions' rates stand for: never printed without."""
    return f"these tasks ({len(report.compared)} of {len(report.tasks)})"


def _contrast(report: Report) -> Iterator[str]:
    primary = report.primary
    assert primary is not None
    results = {result.condition: result for result in report.conditions}
    if primary.difference is None:
        yield (
            f"The declared contrast {primary.treatment} − {primary.control} has no value yet: {primary.reason}."
        )
        return
    yield (
        f"On these tasks, {primary.treatment} passed {_rate(results[primary.treatment])} and "
        f"{primary.control} {_rate(results[primary.control])}: a difference of {points(primary.difference)} "
        f"in the mean pass rate over {plural(len(report.compared), 'task')}."
    )
    if primary.estimand == "tasks_like_these":
        yield (
            "The campaign declares the other estimand, tasks like these, as primary: these intervals do not "
            "speak of tasks that were not run."
        )
    yield (
        "This describes what was measured. It is not a test: whether chance alone explains the difference is "
        "answered by the comparisons, which this report does not contain."
    )


def _conditions(report: Report) -> Iterator[str]:
    measured = [result for result in report.conditions if result.rate.estimate is not None]
    if not measured:
        yield "Nothing to count: no complete block holds a verdict that can be used."
        return
    parts = [f"{result.condition} {_rate(result)}" for result in measured]
    yield f"Mean pass rates on these tasks: {'; '.join(parts)}."
    yield "The campaign declares no primary contrast, so none is singled out here; nothing was tested."


def _rate(result: ConditionResult) -> str:
    return f"{percent(result.rate.estimate)} ({limits(result.rate)})"


def _interim(report: Report) -> Iterator[str]:
    progress = report.progress
    if progress.interim:
        state = "The campaign was cancelled" if progress.cancelled else "The campaign is not finished"
        yield (
            f"Interim. {state}: {progress.terminal:,} of {plural(progress.planned, 'trial')} are terminal. Rates "
            f"are made of the first {plural(progress.complete_blocks, 'complete block')} of {progress.blocks} "
            f"only; {progress.beyond:,} later trials wait, since early finishers would bias them. "
            "This look is recorded."
        )
    if progress.extended_after_look:
        yield "Reps were added after somebody had looked at results: intervals do not account for that."


def _quarantine(report: Report) -> Iterator[str]:
    if report.quarantined:
        yield (
            f"Left out as missing data: {plural(len(report.quarantined), 'trial')} whose bundle or end is not "
            "what the ledger says (listed under losses)."
        )
    if not report.verified:
        yield "Bundles were not verified for this report (--no-verify): only their existence was checked."
    if report.unplanned:
        yield f"Left out: {plural(len(report.unplanned), 'outcome')} that the plan has no place for."


def _tasks(report: Report) -> Iterator[str]:
    for row in report.tasks:
        if row.use is Use.HALTED:
            yield f"Task {row.task} is halted in all conditions and left out: {row.reason}"
    for left in report.left_out:
        yield f"Task {left.task} is left out of every condition’s mean: {left.reason}."
    apart = [row.task for row in report.tasks if row.use is Use.NO_ORACLE]
    if apart:
        yield f"Without a fail-to-pass test, reported apart: {', '.join(apart)}."


def _losses(report: Report) -> Iterator[str]:
    missing = sum(result.first_runs_missing for result in report.conditions)
    if missing:
        yield (
            f"In {plural(missing, 'trial')} the first run that started was lost, or there is no verdict at all. "
            "The bounds beside each rate say how far that could move it."
        )


def _delivery(report: Report) -> Iterator[str]:
    for channel in report.channels:
        if channel.declared and channel.not_reached:
            yield (
                f"{channel.condition}: the {channel.channel} delivery was not seen to reach the model in "
                f"{plural(channel.not_reached, 'trial')}."
            )
        if not channel.declared and channel.reached:
            yield f"{channel.condition}: undeclared {channel.channel} reached the model."
    for inline in report.inline:
        if inline.none:
            yield (
                f"{inline.condition}: the inline text had nothing to say in {plural(inline.none, 'trial')} "
                "(no covering node): there its prompt equals that of the condition without inline text."
            )


def _traces(report: Report) -> Iterator[str]:
    warnings = [line for line in report.manifest if line.group == "Warnings of the bundles"]
    for line in warnings:
        yield f"Isolation: {line.name} ({line.value})."
