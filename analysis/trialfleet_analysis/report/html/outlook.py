"""What designs would detect, as lengths."""

from __future__ import annotations

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.outlook import More
from trialfleet_analysis.report.figures import decimals
from trialfleet_analysis.report.html.forest import Row, forest, lines
from trialfleet_analysis.report.html.markup import Node
from trialfleet_analysis.report.html.plots.bar import lengths
from trialfleet_analysis.report.html.plots.scale import nice
from trialfleet_analysis.report.numbers.outlook import against, design

KEYS = (("bar", "these tasks"), ("bar like", "tasks like these"))


def more(report: Report) -> Node:
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
        Row(
            design(one),
            "as run" if n == 0 else against(one, found[0]),
            lengths(scale, (one.mde_these_tasks, one.mde_tasks_like_these), _said(one), aim=aim),
            lines(("", _points(one.mde_these_tasks)), ("", _points(one.mde_tasks_like_these))),
        )
        for n, one in enumerate(found)
    ]
    caption = "The least true difference, in points, that each design would detect: shorter is better."
    if aim is not None:
        caption += f" Line: the declared effect, {decimals(100 * aim, 1)} points."
    return forest("What designs would detect", rows, scale, caption, keys=KEYS)


def _points(value: float | None) -> str:
    return "not known, or above 100" if value is None else f"{decimals(100 * value, 1)} points"


def _said(one: More) -> str:
    return (
        f"{design(one)}: these tasks {_points(one.mde_these_tasks)}, tasks like these "
        f"{_points(one.mde_tasks_like_these)}"
    )
