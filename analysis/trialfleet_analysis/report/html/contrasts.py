"""Forest plots of differences: contrasts, tasks, and scenarios of what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.estimates import Interval, Test
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.contrasts import Adjusted, Contrast, TaskEffect
from trialfleet_analysis.report.document.missing import Scenario
from trialfleet_analysis.report.figures import (
    ESTIMANDS,
    bare_p,
    bare_points,
    p_value,
    point_limits,
)
from trialfleet_analysis.report.html.forest import Row, forest, legend, lines
from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.plots.forest import Mark, row
from trialfleet_analysis.report.html.plots.scale import Scale, axis, differences
from trialfleet_analysis.report.numbers.contrasts import ROLES
from trialfleet_analysis.report.numbers.losses import SCENARIOS, decision


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
        Row(
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
    headline = report.headline
    pair = (headline.treatment, headline.control) if headline else None
    screen = next((s for s in report.analysis.screens if (s.treatment, s.control) == pair), None)
    if screen is None:
        return None
    scale = differences(limit for one in screen.tasks for limit in (one.low, one.high))
    rows = [
        Row(one.task, "found" if one.found else None, _task_row(scale, one), _counts(one)) for one in screen.tasks
    ]
    caption = (
        f"Each task’s difference, {screen.treatment} − {screen.control}, in points, with its 95% interval (not "
        "corrected for the number of tasks), in the plan’s order."
    )
    return forest("Tasks", rows, scale, caption)


def scenarios(report: Report) -> Node:
    declared = report.analysis.declared
    found = next((r for r in report.analysis.robustness if declared and r.estimand == declared.estimand), None)
    if found is None or not found.missing_treatment + found.missing_control:
        return None
    scale = differences(one.difference for one in found.scenarios)
    rows = [
        Row(SCENARIOS[one.name], None, _scenario_row(scale, one), lines(_decided(one))) for one in found.scenarios
    ]
    caption = (
        f"The primary contrast on {ESTIMANDS[found.estimand]}, in points: as measured, and on first runs if every "
        "lost one had gone one way."
    )
    return forest("Scenarios of what was lost", rows, scale, caption)


def _task_row(scale: Scale, one: TaskEffect) -> Element:
    label = f"{one.task}: {bare_points(one.difference)}, {bare_points(one.low)} to {bare_points(one.high)} points"
    return row(scale, [Mark("these", one.difference, one.low, one.high)], label, zero=0.0)


def _counts(one: TaskEffect) -> Element:
    counts = f"{one.passes_treatment}/{one.valid_treatment} − {one.passes_control}/{one.valid_control}"
    return lines((bare_points(one.difference), counts))


def _scenario_row(scale: Scale, one: Scenario) -> Element:
    label = f"{SCENARIOS[one.name]}: {bare_points(one.difference)} points"
    return row(scale, [Mark("these", one.difference, None, None)], label, zero=0.0)


def _decided(one: Scenario) -> tuple[str, str]:
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


def _value(difference: Interval, test: Test, adjusted: Adjusted | None) -> tuple[str, str]:
    said = p_value(test.p_value)
    if adjusted is not None and adjusted.p_value is not None:
        said = f"{p_value(adjusted.p_value)} corrected"
    return bare_points(difference.estimate), f"{point_limits(difference) or 'no interval'}, {said}"
