"""What a campaign will cost, from trials that were measured. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trialfleet_ledger.blocks import CellName, PlannedReps
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.untrusted import finite

Costs = Mapping[CellName, Sequence[float]]  # (task, condition) -> US dollars of each measured trial


@dataclass(frozen=True)
class CostEstimate:
    """`usd`: of every planned trial once, without attempts that are lost. `trials`: those it rests on. `cells`: of
    the planned cells those that were measured themselves."""

    usd: float
    trials: int
    cells: int

    def text(self, planned_cells: int) -> str:
        own = (
            ""
            if self.cells == planned_cells
            else f", {self.cells} of {plural(planned_cells, 'cell')} measured themselves"
        )
        return (
            f"about ${self.usd:,.2f}, from {plural(self.trials, 'measured trial')}{own}; "
            "lost attempts are not counted"
        )


def costs(outcomes: Iterable[Mapping[str, Any]]) -> dict[CellName, list[float]]:
    """Of outcomes as they are stored. Trials without a known cost are left out."""
    found: dict[CellName, list[float]] = {}
    for outcome in outcomes:
        usd = None if outcome["scored"] is None else finite(outcome["scored"]["metrics"].get("cost_usd"))
        if usd is not None:
            found.setdefault((outcome["trial"]["task"], outcome["trial"]["condition"]), []).append(usd)
    return found


def estimate(cells: Sequence[CellName], planned: PlannedReps, measured: Costs) -> CostEstimate | None:
    """Every cell at its own mean; a cell without a measured trial at the mean of its condition, else of all cells.
    None when nothing has a cost.

    >>> estimate([("a", "x"), ("b", "x")], PlannedReps(10), {("a", "x"): [1.0, 3.0]})
    CostEstimate(usd=40.0, trials=2, cells=1)
    """
    means = _means(measured)
    if not means:
        return None
    usd = sum(planned.mean_of(cell) * _mean(cell, means) for cell in cells)
    return CostEstimate(usd, sum(map(len, measured.values())), sum(cell in means for cell in cells))


def so_far_and_projected(
    outcomes: Sequence[Mapping[str, Any]], cells: Sequence[CellName], planned: PlannedReps, complete_blocks: int
) -> tuple[float | None, float | None]:
    """Cost of the measured trials; and with those that are open, or whose cost is not known, at the means of the
    complete blocks alone, since trials that finish early are cheaper. None where nothing has a known cost."""
    known = costs(outcomes)
    means = _means(costs(outcome for outcome in outcomes if outcome["trial"]["block"] < complete_blocks))
    abandoned = (one["trial"] for one in outcomes if one["scored"] is None)
    over = Counter((trial["task"], trial["condition"]) for trial in abandoned)
    over.update({cell: len(costs) for cell, costs in known.items()})
    so_far = sum(map(sum, known.values()))
    rest = (
        sum(max(0, planned.mean_of(cell) - over[cell]) * _mean(cell, means) for cell in cells) if means else None
    )
    return round(so_far, 4) if known else None, None if rest is None else round(so_far + rest, 4)


def _means(measured: Costs) -> dict[CellName, float]:
    return {cell: sum(found) / len(found) for cell, found in measured.items() if found}


def _mean(cell: CellName, means: Mapping[CellName, float]) -> float:
    if cell in means:
        return means[cell]
    alike = [mean for (_, condition), mean in means.items() if condition == cell[1]] or list(means.values())
    return sum(alike) / len(alike)
