"""The declared contrast, all contrasts, their tasks, and what losses could make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialfleet_analysis.analysis_plan.screens import TaskEffect
from trialfleet_analysis.analysis_plan.sensitivity import ScenarioFinding
from trialfleet_analysis.cells import ENDINGS
from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.answer import claims_equivalence
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import declared_result, outcome_of
from trialfleet_analysis.report.figures.forest import KEYS, MOST_DOTS, Forest, Mark, MarkedRow, MarkKind, RepDots
from trialfleet_analysis.report.figures.scales import Scale, amounts, differences, ratios
from trialfleet_analysis.report.findings.contrasts import ROLES
from trialfleet_analysis.report.findings.reliability import SCENARIOS, decision
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.correction import AdjustedPValue
from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    change,
    cut_at,
    level,
    p_value,
    point_limits,
    points,
    points_between,
    times,
    unsigned_points,
)
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_statistics.estimates import Interval, Test

POINTS = "difference in pass rate, percentage points"
AT_EITHER_END = 4  # tasks on the first screen, where there are more than twice as many


def find_differences(report: Report) -> Forest | None:
    """The declared contrast on these tasks and on tasks like these; None where nothing was declared or found."""
    headline, declared = report.headline, report.analysis.declared
    if headline is None or declared is None or all(part.estimate is None for part in _parts(headline)):
        return None
    margins = () if declared.margin is None else (declared.margin, -declared.margin)
    intervals = _list_intervals(report, headline)
    rows = tuple(
        MarkedRow(
            name,
            "declared" if estimand == declared.reach else None,
            (Mark(kind, *_numbers(part)),),
            ((points(part.estimate), _cut_limits(part)),) if part.estimate is not None else (),
            f"{name}: {bare_points(part.estimate)}, interval {point_limits(part) or 'undefined'} points",
        )
        for (kind, name), estimand, part in zip(KEYS, ESTIMANDS, intervals, strict=True)
    )
    return Forest(
        anchor="difference",
        title=f"Difference in pass rate, {headline.treatment} − {headline.control}",
        axis=POINTS,
        scale=differences([*(limit for part in intervals for limit in _numbers(part)), *margins]),
        rows=rows,
        caption=f"Dot or diamond: the estimate. Line: its {level(intervals[0].level)} interval."
        f"{_name_margins(margins)}{_explain_widths(report, *intervals)}",
        zero=0.0,
        below="worse",
        above="better",
        margins=margins,
    )


def _explain_widths(report: Report, these: Interval, like: Interval) -> str:
    """An interval for more tasks that is the narrower one looks like an error. With looks it allows for none, and
    that is why."""
    if report.design.allows_for_looks:
        return ""
    width, wider = (None if one.low is None or one.high is None else one.high - one.low for one in (these, like))
    if width is None or wider is None or width <= wider:
        return ""
    return " The narrower one is no surer: such differences happen to lie close together."


def list_effects(report: Report) -> list[Forest]:
    """What is declared in place of a contrast, one figure an estimate."""
    return [
        _draw_effect(number, one)
        for number, one in enumerate(report.design.list_effects(report.analysis.found))
        if one.interval.estimate is not None
    ]


def _draw_effect(number: int, one: DrawnEffect) -> Forest:
    of, ratio = one.interval, one.unit == "ratio"
    limits = one.limits or "no interval"
    shown, axis, scale = _measure_effect(one)
    mark = Mark(_kind_of(of.estimand), of.estimate, of.low, of.high)
    if one.limits is not None:  # an open end reaches to the scale's
        low, high = (scale.low if of.low is None else of.low), (scale.high if of.high is None else of.high)
        mark = replace(mark, low=low, high=high)
    line = f" Line: its {level(of.level)} interval." if one.limits is not None else ""
    return Forest(
        anchor=f"effect-{number}",
        title=one.title,
        axis=axis,
        scale=scale,
        rows=(MarkedRow("", None, (mark,), ((shown, limits),), f"{one.title}: {shown}, {limits}"),),
        caption=f"Dot: the estimate.{line}{_name_margins(one.margins)}",
        zero=1.0 if ratio else 0.0,
        below=one.less,
        above=one.more,
        margins=one.margins,
    )


def _measure_effect(one: DrawnEffect) -> tuple[str, str, Scale]:
    """Its estimate in words, its axis and its scale."""
    estimate, ends = one.interval.estimate, [*_numbers(one.interval), *one.margins]
    if one.unit == "ratio":
        return times(estimate), "ratio", ratios(ends)
    if one.unit == "difference":
        return NOTHING if estimate is None else points(estimate), POINTS, differences(ends)
    return change(estimate, one.unit), "difference a trial, on average", amounts(ends, one.unit)


def _name_margins(margins: Sequence[float]) -> str:
    if not margins:
        return ""
    sign = "±" if len(margins) > 1 else "−"
    return f" Dashed: the declared margin, {sign}{unsigned_points(abs(margins[0]))} points."


def _list_intervals(report: Report, headline: Contrast) -> tuple[Interval, Interval]:
    """Those of the tests that decide: against the margin, where the answer is that the two are alike."""
    result = declared_result(report)
    against = {one.estimand: one.interval for one in report.analysis.equivalence}
    if result is None or not claims_equivalence(result, outcome_of(result)) or len(against) < len(ESTIMANDS):
        return _parts(headline)
    these, like = (against[name] for name in ESTIMANDS)
    return these, like


def _cut_limits(found: Interval) -> str:
    if (found.low, found.high) == (-1, 1):
        return "−100 to +100: nothing is known"
    cut = cut_at(found)
    return f"{point_limits(found) or 'no interval'}{f' ({cut})' if cut else ''}"


def find_contrasts(report: Report) -> Forest | None:
    """Every contrast; None where the declared one is alone, which stands on the first screen."""
    found = report.analysis.contrasts
    if all(part.estimate is None for one in found for part in _parts(one)):
        return None
    if len(found) == 1 and report.headline is not None:
        return None
    rows = tuple(
        MarkedRow(
            one.name,
            ROLES[one.role] if one.role != "secondary" else None,
            tuple(Mark(kind, *_numbers(part)) for (kind, _), part in zip(KEYS, _parts(one), strict=True)),
            (
                _value(one.these_tasks.difference, one.these_tasks.test, one.these_tasks.adjusted),
                _value(one.tasks_like_these.difference, one.tasks_like_these.test, one.tasks_like_these.adjusted),
            ),
            f"{one.name}: {_said(one)}",
        )
        for one in found
    )
    return Forest(
        anchor="contrasts",
        title="Contrasts",
        axis=POINTS,
        scale=differences(_all_limits(found)),
        rows=rows,
        caption="Difference in percentage points with its interval. Right of zero the treatment passed more "
        "often. p: corrected in its family where it says so.",
        keys=KEYS,
        zero=0.0,
    )


def find_task_differences(report: Report) -> Forest | None:
    """Each task of the declared contrast with its interval, in the plan's order."""
    screen = report.headline_screen
    if screen is None:
        return None
    rows = tuple(
        MarkedRow(
            one.task,
            "by itself" if one.found else None,
            (Mark("these", one.difference, one.low, one.high),),
            ((bare_points(one.difference), _counts(one)),),
            f"{one.task}: {bare_points(one.difference)}, {points_between(one.low, one.high)} points",
        )
        for one in screen.tasks
    )
    return Forest(
        anchor="tasks",
        title="Tasks",
        axis=POINTS,
        scale=differences(limit for one in screen.tasks for limit in (one.low, one.high)),
        rows=rows,
        caption=f"Each task’s difference, {screen.treatment} against {screen.control}, in points, with its 95% "
        "interval (not corrected for the number of tasks), in the plan’s order.",
        zero=0.0,
    )


def find_extreme_tasks(report: Report) -> Forest | None:
    """For the first screen: the trials of the tasks that it helped most, then of those that it hurt most."""
    sides = tuple(report.analysis.sides) if report.headline is None else ()
    own = next((one for one in report.analysis.screens if (one.treatment, one.control) == sides), None)
    screen = report.headline_screen or own
    if screen is None:
        return None
    sides = (screen.treatment, screen.control)
    cells = {(one.task, one.condition): one for one in report.cells}
    known = [one for one in screen.tasks if all((one.task, name) in cells for name in sides)]
    ranked = sorted(known, key=lambda one: -one.difference)
    if not ranked:
        return None
    shown = ranked if len(ranked) <= 2 * AT_EITHER_END else [*ranked[:AT_EITHER_END], *ranked[-AT_EITHER_END:]]
    rows = tuple(
        MarkedRow(
            one.task,
            "by itself" if one.found else None,
            (),
            (
                (bare_points(one.difference), f"{one.passes_treatment}/{one.valid_treatment} {screen.treatment}"),
                ("", f"{one.passes_control}/{one.valid_control} {screen.control}"),
            ),
            f"{one.task}: passed {_counts(one)}, {bare_points(one.difference)} points",
            dots=tuple(_dots(cells[one.task, name]) for name in sides),
        )
        for one in shown
    )
    some = (
        ""
        if len(shown) == len(ranked)
        else f" The first and last {AT_EITHER_END} of {plural(len(ranked), 'task')}, by difference."
    )
    return Forest(
        anchor="helped",
        title="Where it helped, and where it hurt",
        axis="",
        scale=differences(()),
        rows=rows,
        caption=f"{_explain_dots(rows)} Difference in points. {_judge_tasks(shown)}{some}",
    )


def _judge_tasks(shown: Sequence[TaskEffect]) -> str:
    if any(one.found for one in shown):
        return "By itself: a difference in the task’s own test, corrected for the number of tasks."
    return "No single task shows a difference by itself."


def _explain_dots(rows: Sequence[MarkedRow]) -> str:
    if all(len(one.passed) <= MOST_DOTS for row in rows for one in row.dots):
        lost = any(end is None for row in rows for one in row.dots for end in one.passed)
        return f"Each dot is a trial; filled: passed, hollow: not{', dash: lost' if lost else ''}."
    return "Bar: the share of the trials that passed."


def _dots(cell: CellResult) -> RepDots:
    passed, lost = ENDINGS[Verdict.PASSED], ENDINGS[None]
    ends = tuple(None if one == lost else one == passed for one in cell.endings)
    return RepDots(cell.condition, ends)


def find_scenarios(report: Report) -> Forest | None:
    """What the declared contrast would be if lost runs had gone one way; None where none was lost."""
    result = declared_result(report)
    found = result and result.robustness
    if not found or not found.missing_treatment + found.missing_control:
        return None
    rows = tuple(
        MarkedRow(
            SCENARIOS[one.name],
            None,
            (Mark(_kind_of(found.estimand), one.difference, None, None),),
            (_decided(one),),
            f"{SCENARIOS[one.name]}: {bare_points(one.difference)} points",
        )
        for one in found.scenarios
    )
    return Forest(
        anchor="losses",
        title="Scenarios of what was lost",
        axis=POINTS,
        scale=differences(one.difference for one in found.scenarios),
        rows=rows,
        caption=f"The primary contrast on {ESTIMANDS[found.estimand]}, in points: as measured, and on first runs "
        "if every lost one had gone one way.",
        zero=0.0,
    )


def _counts(one: TaskEffect) -> str:
    return f"{one.passes_treatment}/{one.valid_treatment} − {one.passes_control}/{one.valid_control}"


def _kind_of(estimand: str | None) -> MarkKind:
    return "like" if estimand == "tasks_like_these" else "these"


def _decided(one: ScenarioFinding) -> tuple[str, str]:
    return bare_points(one.difference), f"p {bare_p(one.p_value)}, {decision(one.rejects, one.sign)}"


def _all_limits(found: Sequence[Contrast]) -> Iterator[float | None]:
    return (limit for one in found for part in _parts(one) for limit in _numbers(part))


def _parts(one: Contrast) -> tuple[Interval, Interval]:
    return one.these_tasks.difference, one.tasks_like_these.difference


def _numbers(found: Interval) -> tuple[float | None, float | None, float | None]:
    return found.estimate, found.low, found.high


def _said(one: Contrast) -> str:
    return "; ".join(
        f"{name} {bare_points(part.estimate)}, interval {point_limits(part) or 'undefined'} points"
        for (_, name), part in zip(KEYS, _parts(one), strict=True)
    )


def _value(difference: Interval, test: Test, adjusted: AdjustedPValue | None) -> tuple[str, str]:
    said = p_value(test.p_value)
    if adjusted is not None and adjusted.p_value is not None:
        said = f"{p_value(adjusted.p_value)} corrected"
    return bare_points(difference.estimate), f"{point_limits(difference) or 'no interval'}, {said}"
