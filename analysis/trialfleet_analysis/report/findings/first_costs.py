"""The first screen's table of what passes and trials took."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from trialfleet_analysis.analysis_plan.measures import CostPerPass
from trialfleet_analysis.process import Typical
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import NOTHING, quantity
from trialfleet_designs.document.tables import Cell, ReportTable, number, table, text
from trialfleet_ledger.metric_table import BY_NAME

FIRST_METRICS = ("agent_s", "turns")


def tabulate_cost(report: Report) -> ReportTable | None:
    """For the first screen: what a pass and a trial of the compared conditions took. None where nothing was
    measured."""
    found = {(one.condition, one.measure): one for one in report.metrics}
    costs = {one.condition: one for one in report.analysis.costs}
    sides = [name for name in report.conditions_compared if name in report.condition_names]
    names = [one for one in FIRST_METRICS if any(known == one and name in sides for name, known in found)]
    means = {
        "Cost of a pass": {name: _cost_of_pass(costs.get(name)) for name in sides},
        "Cost of a trial": {name: _cost_of_trial(costs.get(name)) for name in sides},
    }
    if NOTHING in means["Cost of a trial"].values():  # a cost is missing: its mean is not known, its median is
        means["Median cost of a trial"] = {name: _median_of(found, name, "cost_usd") for name in sides}
        del means["Cost of a trial"]
    rows: list[tuple[str, Mapping[str, str]]] = [
        *((title, cells) for title, cells in means.items() if any(cell != NOTHING for cell in cells.values())),
        *(
            (f"{BY_NAME[one].label} of a trial", {name: _median_of(found, name, one) for name in sides})
            for one in names
        ),
    ]
    if not rows:
        return None
    return table(
        "What it took",
        rows,
        text(_name_means(costs=len(rows) - len(names), others=len(names)), lambda row: row[0]),
        *(number(name, partial(_cell_of, name)) for name in sides),
    )


def _name_means(*, costs: int, others: int) -> str:
    """How many rows there are of each kind."""
    if costs and others:
        return "Costs are means, the rest medians"
    return "Means" if costs else "Medians"


def _cell_of(name: str, row: tuple[str, Mapping[str, str]]) -> Cell:
    return row[1][name]


def _cost_of_pass(found: CostPerPass | None) -> str:
    return NOTHING if found is None else quantity(found.without_losses, "usd")


def _cost_of_trial(found: CostPerPass | None) -> str:
    """Failed trials count, lost ones do not."""
    if found is None or found.cost is None or not found.trials:
        return NOTHING
    return quantity(found.cost / found.trials, "usd")


def _median_of(found: Mapping[tuple[str, str], Typical], condition: str, measure: str) -> str:
    entry = found.get((condition, measure))
    return NOTHING if entry is None else quantity(entry.value, BY_NAME[measure].unit)
