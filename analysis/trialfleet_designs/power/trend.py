"""What a declared trend over doses is expected to find: simulated, with the test that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trialfleet_designs.document.figures import NOTHING, percent, unsigned_points
from trialfleet_designs.document.tables import number, table
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.own_plan import OwnPlan, PlanText
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.power import TaskRates, dosed_rates, trend_power

USUAL = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)  # effects, where none is declared
FACTORS = (0.0, 0.5, 1.0, 1.5)  # of the declared one
EXACT = 0.0025  # of a rate: how finely the least effect is searched


@dataclass(frozen=True)
class TrendScenario:
    """`effect`: the true difference of rates between the highest and the lowest dose, on average over tasks."""

    effect: float
    power: float
    se: float


@dataclass(frozen=True)
class TrendRow:
    """`detects`: the least effect with the power wanted; None where even the largest has less."""

    reps: int
    trials: int
    scenarios: tuple[TrendScenario, ...]
    detects: float | None


@dataclass(frozen=True)
class TrendPlan(OwnPlan):
    """`population`: the tasks at the lowest dose, in words; logits move with the dose."""

    campaign: str
    conditions: tuple[str, ...]
    doses: tuple[int, ...]
    tasks: int
    population: str
    effort: Effort
    rows: tuple[TrendRow, ...]

    kind: ClassVar[str] = "trend"

    def describe(self) -> PlanText:
        doses = ", ".join(f"{name} {dose:,}" for name, dose in zip(self.conditions, self.doses, strict=True))
        each = [(row, one) for row in self.rows for one in row.scenarios]
        shown = table(
            "",
            each,
            number("reps", lambda one: str(one[0].reps)),
            number("trials", lambda one: one[0].trials),
            number("highest − lowest", lambda one: f"{unsigned_points(one[1].effect)} points"),
            number("power", lambda one: percent(one[1].power)),
            number(f"{percent(self.effort.power)} power from", lambda one: _detected(one[0])),
        )
        return PlanText(
            f"{self.campaign}: trend over the doses {doses}, {plural(self.tasks, 'task')}, these tasks",
            shown,
            (
                f"exact trend test, alpha {self.effort.alpha:g}, "
                f"{plural(self.effort.simulations, 'campaign')} a figure; at the lowest dose "
                f"{self.population}; logits move with the dose",
            ),
        )


def _detected(row: TrendRow) -> str:
    return NOTHING if row.detects is None else f"{unsigned_points(row.detects)} points"


def trend_rows(
    declared: TrendPrimary, lowest: TaskRates, reps: tuple[int, ...], effect: float | None, effort: Effort
) -> tuple[TrendRow, ...]:
    """`effect`: scenarios are multiples of it. Raises `ValueError` for one that no shift can have."""
    return tuple(_row(declared, lowest, one, effect, effort) for one in reps)


def _row(declared: TrendPrimary, lowest: TaskRates, reps: int, effect: float | None, effort: Effort) -> TrendRow:
    wanted = USUAL if effect is None else tuple(factor * effect for factor in FACTORS)
    room = 1 - lowest.mean

    def at(true_effect: float) -> TrendScenario:
        highest, least = lowest.compare(true_effect, none_differs=True)
        rates = dosed_rates(least, highest, declared.steps)
        found = trend_power(
            rates, reps, declared.steps, alpha=effort.alpha, simulations=effort.simulations, seed=effort.seed
        )
        return TrendScenario(true_effect, found.power, found.se)

    possible = [one for one in wanted if one < room or one == effect]
    least, most = 0.0, 0.98 * room
    detects = most if at(most).power >= effort.power else None
    while detects is not None and most - least > EXACT:
        middle = (least + most) / 2
        least, most = (least, middle) if at(middle).power >= effort.power else (middle, most)
        detects = most
    trials = reps * lowest.tasks * len(declared.trend)
    return TrendRow(reps, trials, tuple(map(at, possible)), detects)
