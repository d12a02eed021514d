"""Plans for one cell: treatment and control on one task, by an exact test of one 2×2 table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_analysis.power import (
    TestName,
    boschloo_power,
    fisher_power,
    minimum_detectable_effect,
    required_reps,
)

GOALS = (0.8, 0.9)
CONTROLS = (None, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)  # None: symmetric about 50 %
COMMON_REPS = (5, 10, 25, 50, 100)


@dataclass(frozen=True)
class Goal:
    """Reps per arm for one power; None beyond `n_max`. `stays`: from there on to n_max."""

    power: float
    first: int | None
    power_first: float | None
    stays: int | None
    power_stays: float | None
    n_max: int


@dataclass(frozen=True)
class Reached:
    """The power that some reps per arm have."""

    reps: int
    power: float


@dataclass(frozen=True)
class RepsForEffect:
    """Reps per arm that detect `control` against `treatment`, and what usual numbers of reps reach."""

    control: float
    treatment: float
    alpha: float
    test: TestName
    goals: tuple[Goal, ...]
    reached: tuple[Reached, ...]


@dataclass(frozen=True)
class Detected:
    """The least detectable effect at one control rate (None: symmetric about 50 %), or None, and then the power
    against a treatment that always passes."""

    reps: int
    control: float | None
    effect: float | None
    power_at_most: float | None


@dataclass(frozen=True)
class EffectForReps:
    """The least effect that given reps per arm detect."""

    alpha: float
    power: float
    test: TestName
    rows: tuple[Detected, ...]


def reps_for_effect(
    control: float, treatment: float, *, power: float, alpha: float, test: TestName, reps: Sequence[int]
) -> RepsForEffect:
    """`power` and the usual higher goal; `reps`: those whose power is wanted, the usual ones when none are."""
    goals = [power, *(goal for goal in GOALS if goal > power)]
    return RepsForEffect(
        control,
        treatment,
        alpha,
        test,
        () if reps else tuple(_goal(control, treatment, goal, alpha, test) for goal in goals[:2]),
        tuple(Reached(n, _power(treatment, control, n, alpha=alpha, test=test)) for n in (reps or COMMON_REPS)),
    )


def effect_for_reps(
    reps: Sequence[int], control: float | None, *, power: float, alpha: float, test: TestName
) -> EffectForReps:
    """At one control rate, or at several when none is given."""
    controls = CONTROLS if control is None else (control,)
    rows = tuple(_detected(n, rate, power, alpha, test) for n in reps for rate in controls)
    return EffectForReps(alpha, power, test, rows)


def _goal(control: float, treatment: float, power: float, alpha: float, test: TestName) -> Goal:
    found = required_reps(treatment, control, power=power, alpha=alpha, test=test)
    return Goal(power, found.first, found.power_first, found.stable, found.power_stable, found.n_max)


def _detected(n: int, control: float | None, power: float, alpha: float, test: TestName) -> Detected:
    effect = minimum_detectable_effect(n, p_b=control, power=power, alpha=alpha, test=test)
    at_most = None if effect is not None else _power(1.0, control or 0.0, n, alpha=alpha, test=test)
    return Detected(n, control, effect, at_most)


def _power(p_a: float, p_b: float, n: int, *, alpha: float, test: TestName) -> float:
    return (boschloo_power if test == "boschloo" else fisher_power)(p_a, p_b, n, alpha=alpha)
