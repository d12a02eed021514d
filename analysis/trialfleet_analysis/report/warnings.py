"""What a reader must know before believing the result, in the order of its weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.report.document import BelowPlan, Report
from trialfleet_analysis.report.document.contrasts import Contrast
from trialfleet_analysis.report.figures import p_value, percent, plural
from trialfleet_analysis.tables import Use

SUSPICIOUS = (
    0.01  # p of a diagnostic below which it is said aloud: with five checks, one in twenty clean campaigns
)

CELLS_NAMED = 8


def cautions(report: Report) -> tuple[str, ...]:
    """In the order of their weight."""
    return (
        *_interim(report),
        *_confounded(report),
        *_quarantine(report),
        *_tasks(report),
        *_losses(report),
        *_disagreement(report),
        *_few_tasks(report),
        *_drift(report),
        *_delivery(report),
        *_isolation(report),
    )


def _interim(report: Report) -> Iterator[str]:
    progress = report.progress
    if progress.interim:
        state = "The campaign was cancelled" if progress.cancelled else "The campaign is not finished"
        counted = f"Interim. {state}: {progress.terminal:,} of {plural(progress.planned, 'trial')} are terminal."
        yield f"{counted} {_waiting(report) if report.analysis.monitored else _only_halted(report)}"
        yield from _below(report)
    if progress.extended_after_look:
        yield (
            "Reps were added after somebody had looked at results: p-values and intervals do not account for that."
        )


def _below(report: Report) -> Iterator[str]:
    found = report.below_plan
    if not found:
        return
    more = len(found) - CELLS_NAMED
    rest = f" and {plural(more, 'more cell')}, all in report.json" if more > 0 else ""
    least = "is" if len(found) == 1 else "are"
    yield (
        f"{plural(len(found), 'cell')} of {len(report.cells):,} {least} below the plan, trials over of trials "
        f"planned: {emptiest(found)}{rest}."
    )


def emptiest(below: Sequence[BelowPlan]) -> str:
    """Some cells by name, with what they have."""
    return ", ".join(
        f"{one.task} × {one.condition} ({one.terminal} of {one.planned})" for one in below[:CELLS_NAMED]
    )


def _waiting(report: Report) -> str:
    progress = report.progress
    return (
        f"All numbers are made of the first {plural(progress.complete_blocks, 'complete block')} of "
        f"{progress.blocks} only; {progress.beyond:,} later trials wait, since early finishers would bias them. "
        "This look is recorded, and no p-value is valid under monitoring: looking again and again finds something "
        "by chance."
    )


def _only_halted(report: Report) -> str:
    return (
        f"All {plural(report.progress.blocks, 'block')} of the tasks that are not halted are complete: what is "
        "still open changes no number here."
    )


def _confounded(report: Report) -> Iterator[str]:
    headline = report.headline
    if headline is None or not headline.composition.confounded:
        return
    yield (
        f"The declared contrast compares packages: {headline.name} differ in {_changes(headline)}. Whatever the "
        "difference is, it cannot be put down to one of them."
        + (
            f" A condition {' and one '.join(headline.composition.missing)} would tell."
            if headline.composition.missing
            else ""
        )
    )


def _changes(contrast: Contrast) -> str:
    parts = [f"{change.delivery} ({change.change})" for change in contrast.composition.changes]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _quarantine(report: Report) -> Iterator[str]:
    if report.quarantined:
        yield (
            f"Left out as missing data: {plural(len(report.quarantined), 'trial')} whose bundle or chain of "
            "attempts is not what its outcome says (listed under losses)."
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
    for name in dict.fromkeys(one.treatment for one in report.analysis.contrasts if one.role == "ceiling"):
        yield f"Condition {name} tells the agent what only the fix knows: a ceiling, in a family of its own."
    apart: dict[str, list[str]] = {}
    for row in report.tasks:
        if row.use is Use.NO_ORACLE:
            apart.setdefault(row.reason or "no reason kept", []).append(row.task)
    for reason, names in apart.items():
        yield f"Reported apart, in no condition’s rate: {', '.join(names)} ({reason})."


def _losses(report: Report) -> Iterator[str]:
    missing = sum(result.first_runs_missing for result in report.conditions)
    if missing:
        yield (
            f"In {plural(missing, 'trial')} the first run that started was lost, or there is no verdict at all. "
            "The bounds beside each rate say how far that could move it."
        )
    test = report.analysis.loss_test.test
    if test.p_value is not None and test.p_value < SUSPICIOUS:
        yield f"Conditions lost first runs unequally often ({p_value(test.p_value)}): that may favour one of them."


def _disagreement(report: Report) -> Iterator[str]:
    headline = report.headline
    if headline is not None and headline.these_tasks.agrees is False:
        yield (
            "On these tasks the exact test and the interval decide differently, as happens near the border: the "
            "interval inverts another test. The p-value decides."
        )


def _few_tasks(report: Report) -> Iterator[str]:
    headline, declared = report.headline, report.analysis.declared
    if headline is None or declared is None or declared.estimand != "tasks_like_these":
        return
    part = headline.tasks_like_these
    if part.caveat is not None:
        share = (
            f": {part.largest_task} alone makes {percent(part.largest_share)} of it" if part.largest_task else ""
        )
        yield f"With {plural(headline.tasks, 'task')}, the claim about tasks like these {part.caveat}{share}."


def _drift(report: Report) -> Iterator[str]:
    for check in report.analysis.drift:
        if check.contiguous:
            yield (
                f"Ran alone in one stretch of time: {', '.join(check.contiguous)}. What time did cannot be told "
                "from what the condition did."
            )
        elif check.test.p_value is not None and check.test.p_value < SUSPICIOUS:
            yield (
                f"{check.question} Probably so ({p_value(check.test.p_value)}): trust the comparison within "
                "task × block above the one within tasks."
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


def _isolation(report: Report) -> Iterator[str]:
    warnings = [line for line in report.manifest if line.group == "Warnings of the bundles"]
    for line in warnings:
        yield f"Isolation: {line.name} ({line.value})."
