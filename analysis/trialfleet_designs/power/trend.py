"""What a declared trend over doses is expected to find: simulated, with the test that decides."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.stops import shifted
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import dosed_rates, trend_power

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
class TrendPlan:
    """`lowest_rate`, `icc`: mean and spread of the tasks' rates at the lowest dose; logits move with the dose,
    alike in all tasks."""

    campaign: str
    conditions: tuple[str, ...]
    doses: tuple[int, ...]
    tasks: int
    lowest_rate: float
    icc: float
    effort: Effort
    rows: tuple[TrendRow, ...]


def trend_rows(
    declared: TrendPrimary, lowest: Floats, reps: tuple[int, ...], effect: float | None, effort: Effort
) -> tuple[TrendRow, ...]:
    """`effect`: scenarios are multiples of it. Raises `ValueError` for one that no shift can have."""
    return tuple(_row(declared, lowest, one, effect, effort) for one in reps)


def _row(declared: TrendPrimary, lowest: Floats, reps: int, effect: float | None, effort: Effort) -> TrendRow:
    wanted = USUAL if effect is None else tuple(factor * effect for factor in FACTORS)
    room = 1 - float(lowest.mean())

    def at(true_effect: float) -> TrendScenario:
        rates = dosed_rates(lowest, shifted(lowest, true_effect), declared.steps)
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
    trials = reps * lowest.size * len(declared.trend)
    return TrendRow(reps, trials, tuple(map(at, possible)), detects)
