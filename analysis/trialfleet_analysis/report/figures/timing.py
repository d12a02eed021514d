"""First edits, and the phases of trials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trialfleet_analysis.analysis_plan.timing import EditTiming
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.data import DataValue, FigureData
from trialfleet_analysis.report.figures.forest import Forest, Mark, MarkedRow
from trialfleet_analysis.report.figures.scales import Scale, nice, rates
from trialfleet_designs.document.figures import NOTHING, brief, percent, quantity

PHASES: tuple[str, ...] = ("exploration", "edit", "tail")


def find_first_edits(report: Report) -> Forest | None:
    """The turn of the first edit under each condition; None where nobody edited."""
    found = report.analysis.timing.conditions
    known = [end for one in found for end in _ends(one) if end is not None]
    if not known:
        return None
    return Forest(
        anchor="first-edits",
        title="First edits",
        axis="turn of the first edit",
        scale=nice(0.0, max(known), lambda tick: brief(tick, "count")),
        rows=tuple(_row(one) for one in found),
        caption="Turn of the first edit: the median over tasks of each task’s median, these tasks, with its "
        "interval. A line to the right end: the limit lies beyond every trial that edited.",
    )


def _row(one: EditTiming) -> MarkedRow:
    of = one.first_edit_turn
    high = math.inf if of.low is not None and of.high is None else of.high
    return MarkedRow(
        one.condition,
        None,
        (Mark("these", of.estimate, of.low, high),),
        ((quantity(of.estimate, "count"), _limits(one)),),
        f"{one.condition}: first edit at turn {quantity(of.estimate, 'count')}, interval {_limits(one)}",
    )


def _ends(one: EditTiming) -> tuple[float | None, ...]:
    return one.first_edit_turn.estimate, one.first_edit_turn.high, one.first_edit_turn.low


def _limits(one: EditTiming) -> str:
    of = one.first_edit_turn
    if of.low is None:
        return NOTHING
    low = quantity(of.low, "count")
    return f"{low} or more" if of.high is None else f"{low} to {quantity(of.high, 'count')}"


@dataclass(frozen=True)
class PhaseShares:
    """Of one condition's turns, in the order of `PHASES`."""

    name: str
    shares: tuple[float, ...]

    @property
    def said(self) -> str:
        return " · ".join(percent(share) for share in self.shares)


@dataclass(frozen=True)
class PhaseFigure:
    """Shares of one whole, side by side."""

    anchor: str
    title: str
    axis: str
    scale: Scale
    rows: tuple[PhaseShares, ...]
    caption: str

    def list_data(self) -> FigureData:
        """One row a phase of a condition."""
        return FigureData(("condition", "phase", "share"), tuple(self._shares()))

    def _shares(self) -> Iterator[tuple[DataValue, ...]]:
        return ((one.name, *each) for one in self.rows for each in zip(PHASES, one.shares, strict=True))


def find_phases(report: Report) -> PhaseFigure | None:
    """Where the turns of each condition's trials went; None where it is not known."""
    of = {
        one.condition: tuple(phase.share.estimate for phase in one.phases)
        for one in report.analysis.timing.conditions
    }
    known = {name: tuple(share for share in shares if share is not None) for name, shares in of.items()}
    rows = tuple(PhaseShares(name, shares) for name, shares in known.items() if len(shares) == len(of[name]))
    if not rows:
        return None
    return PhaseFigure(
        anchor="phases",
        title="Exploration, edit, tail",
        axis="turns of a trial, %",
        scale=rates(),
        rows=rows,
        caption="Mean share of a trial’s turns in each phase, these tasks, in this order from the left.",
    )
