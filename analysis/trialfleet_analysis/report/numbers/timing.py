"""First edits, the turns before and after them, and trials that hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.continuous import BootstrapInterval
from trialfleet_analysis.estimates import Interval
from trialfleet_analysis.process import Unit
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.timing import AfterFirstEdit, EditTiming, HitOf, HitSplit, Phase
from trialfleet_analysis.report.figures import NOTHING, decimals, percent, quantity
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    full,
    maybe,
    rate,
    rate_limits,
    table,
)

PHASES: dict[Phase, str] = {"exploration": "Exploration", "edit": "Edit", "tail": "Tail"}
HITS: dict[HitOf, str] = {
    "target_hit": "its patch changes a file of the fix",
    "predicted_hit": "a predicted file is one of the fix",
    "preflight_hit": "the pre-flight pointed at a file of the fix",
}


def timing(report: Report) -> Section:
    found = report.analysis.timing
    return Section(
        "timing",
        "First edits",
        "When agents first edited, and how their turns divide into exploration (before the first edit), edit "
        "(first to last) and tail (after). All of it describes; whether a condition moved the first edit is "
        "tested under What trials took.",
        full(_first(found.conditions), _phases(found.conditions), _after(found.after), _hits(found.hits)),
    )


def _first(found: Sequence[EditTiming]) -> Table:
    columns = (
        "Condition",
        "Trials",
        "Edited",
        "Interval",
        "First edit, turn",
        "Interval",
        "First edit, time",
        "Interval",
        "Edits not seen",
    )
    rows = (
        (
            one.condition,
            one.trials,
            rate(one.share_edited),
            rate_limits(one.share_edited),
            *_median(one.first_edit_turn, "count"),
            *_median(one.first_edit_s, "s"),
            one.unseen,
        )
        for one in found
    )
    lead = (
        "On these tasks: share of trials with an edit, and the median over tasks of each task’s median. A trial "
        "without an edit counts as one that would have edited later than all others. Not seen: files changed, "
        "but by a command that the log does not show as an edit; these trials are in no row here."
    )
    return table("When agents first edited", columns, rows, lead=lead)


def _median(found: BootstrapInterval, unit: Unit) -> tuple[Value, Value]:
    limited = found.estimate is not None
    return (
        maybe(quantity(found.estimate, unit), found.reason),
        maybe(_between(found, unit), found.reason if limited else None),
    )


def _between(found: Interval, unit: Unit) -> str:
    if found.low is None and found.high is None:
        return NOTHING
    low, high = (quantity(limit, unit) if limit is not None else None for limit in (found.low, found.high))
    return f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less"


def _phases(found: Sequence[EditTiming]) -> Table:
    columns = ("Condition", Words("Phase"), "Share of turns", "Interval", "Turns, median", "Interval")
    lead = (
        "On these tasks: the mean over tasks of a trial’s share of its turns, and medians as above. The three "
        "shares add up to 100%, so that one cannot grow without another shrinking. A trial without an edit "
        "explored to its end."
    )
    return table("Exploration, edit, tail", columns, (row for one in found for row in _phase_rows(one)), lead=lead)


def _phase_rows(one: EditTiming) -> Iterator[Sequence[Cell]]:
    for phase in one.phases:
        yield (
            one.condition,
            PHASES[phase.phase],
            rate(phase.share),
            rate_limits(phase.share),
            *_median(phase.turns, "count"),
        )


def _after(found: Sequence[AfterFirstEdit]) -> Table:
    columns = (
        "Trials of",
        "Trials",
        "Turns after, per turn later",
        "Interval, these tasks",
        "Interval, tasks like these",
        "Cut off by a budget",
    )
    lead = (
        "How many turns more follow the first edit when it comes one turn later, within a task: +1 is one turn "
        "more, 0 none. The whole session is not regressed on its first edit, which is part of it: that slope "
        "would be this one plus 1, by arithmetic. No causal claim: what makes an agent search long may make it "
        "work long. A limit on turns cuts the late ones most."
    )
    rows = (
        (
            one.condition or "all conditions, with condition effects",
            one.trials,
            maybe(_slope(one.these_tasks.estimate), one.these_tasks.reason),
            _slope_limits(one.these_tasks),
            _slope_limits(one.tasks_like_these),
            one.cut_off,
        )
        for one in found
    )
    return table("What follows a later first edit", columns, rows, lead=lead)


def _slope(value: float | None) -> str:
    return (
        NOTHING
        if value is None
        else ("+" if round(value, 2) > 0 else "") + decimals(value).replace("−0.00", "0.00")
    )


def _slope_limits(found: Interval) -> Value:
    if found.low is None or found.high is None:
        return Value(NOTHING, found.reason)
    return Value(f"{_slope(found.low)} to {_slope(found.high)}")


def _hits(found: Sequence[HitSplit]) -> Table:
    columns = (
        "Condition",
        Words("Hit: whether"),
        Words("Hit"),
        "Trials",
        "In tasks",
        "Passed",
        "First edit, turn",
        "Turns",
    )
    lead = (
        "A description, never an effect: a hit comes after the treatment began, and whoever hits had the easier "
        "task or was on the way to a pass. Medians over trials; compare conditions, not these rows."
    )
    return table(
        "Trials that hit, and trials that did not", columns, (r for s in found for r in _split(s)), lead=lead
    )


def _split(found: HitSplit) -> Iterator[Sequence[Cell]]:
    for group in found.groups:
        passed = percent(group.passes / group.trials) if group.trials else NOTHING
        yield (
            found.condition,
            HITS[found.of],
            "yes" if group.hit else "no",
            group.trials,
            group.tasks,
            passed,
            quantity(group.median_first_edit, "count"),
            quantity(group.median_turns, "count"),
        )
