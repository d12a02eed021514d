"""Every figure of a report, in the order of its page."""

from __future__ import annotations

from typing import TypeAlias

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.cells import HeatMap, find_heat
from trialfleet_analysis.report.figures.comparisons import (
    find_contrasts,
    find_differences,
    find_extreme_tasks,
    find_scenarios,
    find_task_differences,
    list_effects,
)
from trialfleet_analysis.report.figures.conditions import find_first_rates, find_rates
from trialfleet_analysis.report.figures.design_drawing import DesignFigure, find_design_figure
from trialfleet_analysis.report.figures.effort import Histograms, PassCurves, find_curves, list_histograms
from trialfleet_analysis.report.figures.forest import Forest
from trialfleet_analysis.report.figures.launch_order import BlockFigure, find_blocks
from trialfleet_analysis.report.figures.planned_sizes import DetectableFigure, find_detectable
from trialfleet_analysis.report.figures.timing import PhaseFigure, find_first_edits, find_phases

Figure: TypeAlias = (
    Forest | HeatMap | Histograms | PassCurves | PhaseFigure | BlockFigure | DetectableFigure | DesignFigure
)


def list_figures(report: Report) -> tuple[Figure, ...]:
    """No two have the same `anchor`."""
    found: tuple[Figure | None, ...] = (
        find_differences(report),
        *list_effects(report),
        find_extreme_tasks(report),
        find_first_rates(report),
        find_contrasts(report),
        find_design_figure(report),
        find_rates(report),
        find_heat(report),
        find_task_differences(report),
        find_scenarios(report),
        *list_histograms(report, "first"),
        find_curves(report),
        *list_histograms(report, "folded"),
        find_first_edits(report),
        find_phases(report),
        find_blocks(report),
        find_detectable(report),
    )
    return tuple(one for one in found if one is not None)
