"""When each condition first edited, and how its turns divide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.timing import EditTiming
from trialfleet_analysis.report.figures import NOTHING, brief, percent, quantity
from trialfleet_analysis.report.html.forest import Row, forest, lines
from trialfleet_analysis.report.html.markup import Node
from trialfleet_analysis.report.html.plots.bar import parts
from trialfleet_analysis.report.html.plots.forest import Mark, row
from trialfleet_analysis.report.html.plots.scale import Scale, nice, rates

PHASES = (("phase exploration", "exploration"), ("phase edit", "edit"), ("phase tail", "tail"))


def timing(report: Report) -> Node:
    found = report.analysis.timing.conditions
    return [_first(found), _phases(found)] if found else None


def _first(found: Sequence[EditTiming]) -> Node:
    known = [end for one in found for end in _ends(one) if end is not None]
    if not known:
        return None
    scale = nice(0.0, max(known), lambda tick: brief(tick, "count"))
    rows = [Row(one.condition, None, _drawing(one, scale), _value(one)) for one in found]
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


def _value(one: EditTiming) -> Element:
    return lines((quantity(one.first_edit_turn.estimate, "count"), _limits(one)))


def _limits(one: EditTiming) -> str:
    of = one.first_edit_turn
    if of.low is None:
        return NOTHING
    low = quantity(of.low, "count")
    return f"{low} or more" if of.high is None else f"{low} to {quantity(of.high, 'count')}"


def _phases(found: Sequence[EditTiming]) -> Node:
    rows = [
        Row(one.condition, None, parts(_shares(one), _said(one)), lines((_said(one), "")))
        for one in found
        if all(share is not None for share in _shares(one))
    ]
    caption = "Mean share of a trial’s turns in each phase, these tasks, in this order from the left."
    return forest("Exploration, edit, tail", rows, rates(), caption, keys=PHASES) if rows else None


def _shares(one: EditTiming) -> tuple[float | None, ...]:
    return tuple(phase.share.estimate for phase in one.phases)


def _said(one: EditTiming) -> str:
    return " · ".join(percent(share) for share in _shares(one))
