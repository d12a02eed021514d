"""Rows of name, drawing and value under one scale: contrasts, tasks, scenarios, designs, first edits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from trialfleet_analysis.analysis_plan.power_summary import More
from trialfleet_analysis.analysis_plan.screens import TaskEffect
from trialfleet_analysis.analysis_plan.sensitivity import ScenarioFinding
from trialfleet_analysis.analysis_plan.timing import EditTiming
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import declared_result
from trialfleet_analysis.report.findings.contrasts import ROLES
from trialfleet_analysis.report.findings.reliability import SCENARIOS, against, decision, design
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.plots import Mark, Scale, axis, differences, lengths, nice, parts, rates, row
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.correction import AdjustedPValue
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    brief,
    decimals,
    p_value,
    percent,
    point_limits,
    points_between,
    quantity,
)
from trialfleet_statistics.estimates import Interval, Test

TALL = 30  # rows above which a forest scrolls in its frame


@dataclass(frozen=True)
class ForestRow:
    """`tag`: one word next to the name."""

    name: str
    tag: str | None
    drawing: Element
    value: Element


def forest(
    title: str, rows: Sequence[ForestRow], scale: Scale, caption: str, *, keys: Sequence[tuple[str, str]] = ()
) -> Element:
    """A figure; on a narrow screen the drawing moves below its name. Long ones scroll in a frame."""
    cells = [
        [
            h("span", breakable(one.name), h("small", one.tag, class_="tag") if one.tag else None, class_="name"),
            one.drawing,
            one.value,
        ]
        for one in rows
    ]
    under = [h("span", class_="side under"), h("div", axis(scale), class_="under"), h("span", class_="side under")]
    grid = h("div", cells, under, class_="forest")
    if len(rows) > TALL:
        grid = h("div", grid, class_="frame tall", tabindex=0, role="region", aria_label=title)
    return h("figure", legend(keys), grid, h("figcaption", caption))


def legend(keys: Sequence[tuple[str, str]]) -> Element | None:
    """What the marks stand for: shapes, not colours alone."""
    if not keys:
        return None
    return h("div", [h("span", h("i", class_=f"key {kind}"), name) for kind, name in keys], class_="legend")


def lines(*pairs: tuple[str, str]) -> Element:
    """One line per mark of the row: the estimate, and what belongs to it."""
    return h(
        "span",
        [h("span", h("b", one), " ", h("span", other, class_="muted")) for one, other in pairs],
        class_="value",
    )


def strip(headline: Contrast) -> Node:
    """The declared contrast in both estimands, on one line of points."""
    if all(part.estimate is None for part in _parts(headline)):
        return None
    scale = _scale([headline])
    label = f"{headline.name}: {_said(headline)}"
    drawing = h("div", row(scale, _marks(headline), label, zero=0.0), axis(scale), class_="strip")
    return h("figure", legend(KEYS), drawing)


KEYS = (("these", "these tasks"), ("like", "tasks like these"))


def contrasts(report: Report) -> Node:
    found = report.analysis.contrasts
    if all(part.estimate is None for one in found for part in _parts(one)):
        return None
    scale = _scale(found)
    rows = [
        ForestRow(
            one.name,
            ROLES[one.role] if one.role != "secondary" else None,
            row(scale, _marks(one), f"{one.name}: {_said(one)}", zero=0.0),
            lines(
                _value(one.these_tasks.difference, one.these_tasks.test, one.these_tasks.adjusted),
                _value(one.tasks_like_these.difference, one.tasks_like_these.test, one.tasks_like_these.adjusted),
            ),
        )
        for one in found
    ]
    caption = (
        "Difference in percentage points with its interval. Right of zero the treatment passed more often. p: "
        "corrected in its family where it says so."
    )
    return forest("Contrasts", rows, scale, caption, keys=KEYS)


def tasks(report: Report) -> Node:
    screen = report.headline_screen
    if screen is None:
        return None
    scale = differences(limit for one in screen.tasks for limit in (one.low, one.high))
    rows = [
        ForestRow(one.task, "found" if one.found else None, _task_row(scale, one), _counts(one))
        for one in screen.tasks
    ]
    caption = (
        f"Each task’s difference, {screen.treatment} − {screen.control}, in points, with its 95% interval (not "
        "corrected for the number of tasks), in the plan’s order."
    )
    return forest("Tasks", rows, scale, caption)


def scenarios(report: Report) -> Node:
    result = declared_result(report)
    found = result and result.robustness
    if not found or not found.missing_treatment + found.missing_control:
        return None
    scale = differences(one.difference for one in found.scenarios)
    rows = [
        ForestRow(SCENARIOS[one.name], None, _scenario_row(scale, one), lines(_decided(one)))
        for one in found.scenarios
    ]
    caption = (
        f"The primary contrast on {ESTIMANDS[found.estimand]}, in points: as measured, and on first runs if every "
        "lost one had gone one way."
    )
    return forest("Scenarios of what was lost", rows, scale, caption)


def _task_row(scale: Scale, one: TaskEffect) -> Element:
    label = f"{one.task}: {bare_points(one.difference)}, {points_between(one.low, one.high)} points"
    return row(scale, [Mark("these", one.difference, one.low, one.high)], label, zero=0.0)


def _counts(one: TaskEffect) -> Element:
    counts = f"{one.passes_treatment}/{one.valid_treatment} − {one.passes_control}/{one.valid_control}"
    return lines((bare_points(one.difference), counts))


def _scenario_row(scale: Scale, one: ScenarioFinding) -> Element:
    label = f"{SCENARIOS[one.name]}: {bare_points(one.difference)} points"
    return row(scale, [Mark("these", one.difference, None, None)], label, zero=0.0)


def _decided(one: ScenarioFinding) -> tuple[str, str]:
    return bare_points(one.difference), f"p {bare_p(one.p_value)}, {decision(one.rejects, one.sign)}"


def _scale(found: Sequence[Contrast]) -> Scale:
    return differences(limit for one in found for part in _parts(one) for limit in _numbers(part))


def _parts(one: Contrast) -> Iterator[Interval]:
    yield from (one.these_tasks.difference, one.tasks_like_these.difference)


def _numbers(found: Interval) -> Iterable[float | None]:
    return found.estimate, found.low, found.high


def _marks(one: Contrast) -> list[Mark]:
    kinds = (kind for kind, _ in KEYS)
    return [Mark(kind, *_numbers(part)) for kind, part in zip(kinds, _parts(one), strict=True)]


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


DESIGN_KEYS = (("bar", "these tasks"), ("bar like", "tasks like these"))


def designs(report: Report) -> Node:
    found = report.analysis.outlook.more
    known = [
        value for one in found for value in (one.mde_these_tasks, one.mde_tasks_like_these) if value is not None
    ]
    if not known:
        return None
    declared = report.analysis.declared
    aim = abs(declared.effect) if declared and declared.effect is not None else None
    scale = nice(0.0, max([*known, aim or 0.0]), lambda value: decimals(100 * value, 0))
    rows = [
        ForestRow(
            design(one),
            "as run" if n == 0 else against(one, found[0]),
            lengths(scale, (one.mde_these_tasks, one.mde_tasks_like_these), _design_said(one), aim=aim),
            lines(("", _points(one.mde_these_tasks)), ("", _points(one.mde_tasks_like_these))),
        )
        for n, one in enumerate(found)
    ]
    caption = "The least true difference, in points, that each design would detect: shorter is better."
    if aim is not None:
        caption += f" Line: the declared effect, {decimals(100 * aim, 1)} points."
    return forest("What designs would detect", rows, scale, caption, keys=DESIGN_KEYS)


def _points(value: float | None) -> str:
    return "not known, or above 100" if value is None else f"{decimals(100 * value, 1)} points"


def _design_said(one: More) -> str:
    return (
        f"{design(one)}: these tasks {_points(one.mde_these_tasks)}, tasks like these "
        f"{_points(one.mde_tasks_like_these)}"
    )


PHASES = (("phase exploration", "exploration"), ("phase edit", "edit"), ("phase tail", "tail"))


def timing(report: Report) -> Node:
    found = report.analysis.timing.conditions
    return [_first(found), _phases(found)] if found else None


def _first(found: Sequence[EditTiming]) -> Node:
    known = [end for one in found for end in _ends(one) if end is not None]
    if not known:
        return None
    scale = nice(0.0, max(known), lambda tick: brief(tick, "count"))
    rows = [ForestRow(one.condition, None, _drawing(one, scale), _first_value(one)) for one in found]
    caption = (
        "Turn of the first edit: the median over tasks of each task’s median, these tasks, with its interval. A "
        "line to the right end: the limit lies beyond every trial that edited."
    )
    return forest("First edits", rows, scale, caption)


def _ends(one: EditTiming) -> tuple[float | None, ...]:
    return one.first_edit_turn.estimate, one.first_edit_turn.high, one.first_edit_turn.low


def _drawing(one: EditTiming, scale: Scale) -> Element:
    of = one.first_edit_turn
    high = math.inf if of.low is not None and of.high is None else of.high
    label = f"{one.condition}: first edit at turn {quantity(of.estimate, 'count')}, interval {_limits(one)}"
    return row(scale, [Mark("these", of.estimate, of.low, None if high is None else min(high, scale.high))], label)


def _first_value(one: EditTiming) -> Element:
    return lines((quantity(one.first_edit_turn.estimate, "count"), _limits(one)))


def _limits(one: EditTiming) -> str:
    of = one.first_edit_turn
    if of.low is None:
        return NOTHING
    low = quantity(of.low, "count")
    return f"{low} or more" if of.high is None else f"{low} to {quantity(of.high, 'count')}"


def _phases(found: Sequence[EditTiming]) -> Node:
    rows = [
        ForestRow(one.condition, None, parts(_shares(one), _shares_said(one)), lines((_shares_said(one), "")))
        for one in found
        if all(share is not None for share in _shares(one))
    ]
    caption = "Mean share of a trial’s turns in each phase, these tasks, in this order from the left."
    return forest("Exploration, edit, tail", rows, rates(), caption, keys=PHASES) if rows else None


def _shares(one: EditTiming) -> tuple[float | None, ...]:
    return tuple(phase.share.estimate for phase in one.phases)


def _shares_said(one: EditTiming) -> str:
    return " · ".join(percent(share) for share in _shares(one))
