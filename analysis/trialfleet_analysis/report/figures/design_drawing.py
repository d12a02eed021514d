"""The drawing of the declared design's own section."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import report_context
from trialfleet_analysis.report.figures.data import FigureData
from trialfleet_designs.document.drawing import Drawing


@dataclass(frozen=True)
class DesignFigure:
    """Shapes with the names that the page's style has for them."""

    anchor: str
    title: str
    axis: str
    drawing: Drawing
    caption: str

    def list_data(self) -> FigureData:
        """The points, in their order."""
        return FigureData(self.drawing.columns, self.drawing.rows)


def find_design_figure(report: Report) -> DesignFigure | None:
    """None where the design draws nothing."""
    design, found, context = report.design, report.analysis.found, report_context(report)
    drawing, section = design.draw(found, context), design.section(found, context)
    if drawing is None or section is None:
        return None
    said = drawing.label[:1].upper() + drawing.label[1:]
    return DesignFigure(section.anchor, section.title, "", drawing, f"{said}.")
