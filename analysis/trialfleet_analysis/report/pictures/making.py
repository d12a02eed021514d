"""From figures to the files of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.cells import HeatMap
from trialfleet_analysis.report.figures.data import to_csv
from trialfleet_analysis.report.figures.design_drawing import DesignFigure
from trialfleet_analysis.report.figures.effort import Histograms, PassCurves
from trialfleet_analysis.report.figures.every_figure import Figure, list_figures
from trialfleet_analysis.report.figures.forest import Forest
from trialfleet_analysis.report.figures.launch_order import BlockFigure
from trialfleet_analysis.report.figures.planned_sizes import DetectableFigure
from trialfleet_analysis.report.figures.timing import PhaseFigure
from trialfleet_analysis.report.pictures.drawing import PictureFormat, draw_picture, measure_text
from trialfleet_analysis.report.pictures.plots import lay_out_blocks, lay_out_design, lay_out_heat
from trialfleet_analysis.report.pictures.rows_layout import lay_out_rows
from trialfleet_analysis.report.pictures.shapes import Picture
from trialfleet_analysis.report.pictures.sizes import SIZES, PictureWidth, TextFitter
from trialfleet_analysis.report.pictures.strips import (
    StripFigure,
    strips_of_curves,
    strips_of_detectable,
    strips_of_forest,
    strips_of_histograms,
    strips_of_phases,
)
from trialfleet_analysis.report.table_files import TableFormat, table_files
from trialfleet_ledger.output_files import replace_outputs
from trialfleet_ledger.plurals import plural


def lay_out(found: Figure, width: PictureWidth) -> list[Picture]:
    """One picture, or several where one would be too high."""
    fit = TextFitter(SIZES[width], measure_text)
    match found:
        case HeatMap():
            return lay_out_heat(found, fit)
        case BlockFigure():
            return lay_out_blocks(found, fit)
        case DesignFigure():
            return lay_out_design(found, fit)
        case _:
            return lay_out_rows(_as_strips(found, fit), fit)


def _as_strips(
    found: Forest | Histograms | PassCurves | PhaseFigure | DetectableFigure, fit: TextFitter
) -> StripFigure:
    match found:
        case Forest():
            return strips_of_forest(found, fit.size)
        case Histograms():
            return strips_of_histograms(found, fit.size)
        case PassCurves():
            return strips_of_curves(found)
        case PhaseFigure():
            return strips_of_phases(found, fit.size)
        case DetectableFigure():
            return strips_of_detectable(found, fit.size)


def state_note(report: Report) -> str:
    """What must be read with every figure of this campaign; empty for a finished one without a banner."""
    progress = report.progress
    blocks = plural(progress.blocks, "block")
    interim = f"Interim: made of the first {progress.complete_blocks:,} of {blocks}."
    said = (
        interim if report.state == "interim" else None,
        "Records of this campaign were changed or deleted." if report.tampered else None,
        report.banner,
    )
    return " ".join(filter(None, said))


@dataclass(frozen=True)
class FigureFiles:
    """`left`: files of an earlier call that this one does not make and that were edited since."""

    written: tuple[Path, ...]
    left: tuple[Path, ...]


def write_figures(
    report: Report, folder: Path, *, form: PictureFormat, width: PictureWidth, tables: TableFormat | None
) -> FigureFiles:
    """All figures with their data, and the tables, in `folder`, replaced if trialfleet wrote them; figures and
    tables of an earlier call, in the same formats, that this report lacks are removed. `OperatorError`
    when they cannot be written or are somebody else's. Same report, same bytes."""
    note = state_note(report)
    contents = dict(file for found in list_figures(report) for file in figure_files(found, form, width, note))
    if tables is not None:
        contents |= dict(table_files(report, tables))
    left = replace_outputs(folder, contents, what="figures")
    return FigureFiles(tuple(folder / name for name in contents), left)


def figure_files(
    found: Figure, form: PictureFormat, width: PictureWidth, note: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Names and contents: the pictures, and the data as CSV. `note` ends every caption."""
    pictures = lay_out(replace(found, caption=f"{found.caption} {note}".strip()), width)
    for number, picture in enumerate(pictures, 1):
        part = f"-{number}" if len(pictures) > 1 else ""
        yield f"{found.anchor}{part}.{form}", draw_picture(picture, form)
    yield f"{found.anchor}.csv", to_csv(found.list_data()).encode()
