"""Pass rates of the blocks in launch order."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_analysis.process import BlockResult
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.data import FigureData
from trialfleet_designs.document.figures import percent
from trialfleet_ledger.plurals import plural


@dataclass(frozen=True)
class BlockFigure:
    """`mean`: of all blocks together; None without a valid trial."""

    anchor: str
    title: str
    axis: str
    blocks: tuple[BlockResult, ...]
    mean: float | None
    caption: str

    @property
    def said(self) -> str:
        return f"Pass rate of {plural(len(self.blocks), 'block')} in launch order; overall {percent(self.mean)}"

    def list_data(self) -> FigureData:
        """One row a block."""
        rows = ((r.block, r.passes, r.valid, r.lost, r.passes / r.valid if r.valid else None) for r in self.blocks)
        return FigureData(("block", "passes", "valid", "lost", "rate"), tuple(rows))


def find_blocks(report: Report) -> BlockFigure | None:
    """None where no block is complete."""
    if not report.blocks:
        return None
    passes, valid = sum(one.passes for one in report.blocks), sum(one.valid for one in report.blocks)
    return BlockFigure(
        anchor="blocks",
        title="Pass rate in launch order",
        axis="pass rate, %",
        blocks=report.blocks,
        mean=passes / valid if valid else None,
        caption="Pass rate of each launch block over the compared tasks, first to last; dashed: all blocks.",
    )
