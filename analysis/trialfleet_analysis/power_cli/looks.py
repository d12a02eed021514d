"""What a campaign's declared looks are expected to save: simulated, with the test that decides at them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from trialfleet_analysis.monitoring import design_of, futility_of
from trialfleet_analysis.statistics.estimates import Floats, floats
from trialfleet_analysis.statistics.sequential import SequentialDesign, sequential_power
from trialfleet_ledger.campaign_spec import Primary

FACTORS = (0.0, 0.5, 1.0, 1.5)  # of the effect
MOST_INFLATION = 1.5


@dataclass(frozen=True)
class LooksScenario:
    """At one true mean effect: the power with looks and with one test at the end; the mean share of the plan's
    trials that are run, and how many these are in both arms; `futile`: how often the rule gives up."""

    effect: float
    power: float
    fixed_power: float
    share: float
    trials: float
    futile: float


@dataclass(frozen=True)
class LooksPlan:
    """`effect`: the one that scenarios are multiples of; `inflation`: how many times the reps give the power of
    one test at the end back (None: not within 1.5). `se`: the largest Monte Carlo standard error of a power."""

    looks: tuple[int, ...]
    spending: str
    effect: float
    scenarios: tuple[LooksScenario, ...]
    inflation: float | None
    se: float


def looks_plan(
    primary: Primary,
    *,
    tasks: int,
    reps: int,
    control: float,
    icc: float,
    effect: float,
    simulations: int,
    seed: int,
) -> LooksPlan:
    """For a campaign of these tasks: control rates are quantiles of Beta(`control`, `icc`), and the treatment
    shifts all of them alike in logits. Raises `ValueError` for an effect that no shift can have; 1.5 times the
    effect is left out where it is one."""
    base = control_rates(tasks, control, icc)
    design, rule = design_of(primary, reps), futility_of(primary)
    once = SequentialDesign((reps,), alpha=primary.alpha)
    found: list[LooksScenario] = []
    se = 0.0
    for factor in FACTORS:
        if factor > 1 and not 0 < base.mean() + factor * effect < 1:
            continue
        treated = shifted(base, factor * effect)
        looked = sequential_power(treated, base, design, futility=rule, simulations=simulations, seed=seed)
        fixed = sequential_power(treated, base, once, simulations=simulations, seed=seed)
        se = max(se, looked.se)
        scenario = LooksScenario(
            effect=factor * effect,
            power=looked.power,
            fixed_power=fixed.power,
            share=looked.share,
            trials=looked.share * 2 * tasks * reps,
            futile=float(looked.futile.sum()),
        )
        found.append(scenario)
    goal = found[FACTORS.index(1.0)].fixed_power
    inflation = _inflation(primary, base, shifted(base, effect), reps, goal, simulations, seed)
    return LooksPlan(design.looks, design.spending, effect, tuple(found), inflation, se)


def _inflation(
    primary: Primary, base: Floats, treated: Floats, reps: int, goal: float, simulations: int, seed: int
) -> float | None:
    """The reps, as a multiple, from which on the power with looks is not below `goal`, by bisection; looks move
    with the reps."""
    rule, spending = futility_of(primary), design_of(primary, reps).spending
    looks = len(design_of(primary, reps).looks)

    def enough(more: int) -> bool:
        design = SequentialDesign.of(more, looks, spending=spending, alpha=primary.alpha)
        found = sequential_power(treated, base, design, futility=rule, simulations=simulations, seed=seed)
        return found.power >= goal

    short, most = reps - 1, int(MOST_INFLATION * reps)
    if not enough(most):
        return None
    while most - short > 1:
        middle = (short + most) // 2
        short, most = (short, middle) if enough(middle) else (middle, most)
    return most / reps


def control_rates(tasks: int, mean: float, icc: float) -> Floats:
    """The quantiles (i − ½) / T of the Beta distribution of that mean and intraclass correlation, shape (T,)."""
    if icc == 0:
        return np.full(tasks, mean)
    size = (1 - icc) / icc
    at = (np.arange(tasks) + 0.5) / tasks
    return floats(stats.beta.ppf(at, mean * size, (1 - mean) * size))


def shifted(rates: Floats, effect: float) -> Floats:
    """The rates moved by one shift in logits to a mean that is `effect` higher.

    >>> shifted(np.array([0.2, 0.5]), 0.1).round(3).tolist()
    [0.285, 0.615]
    """
    held = np.clip(rates, 1e-9, 1 - 1e-9)

    def moved(by: float) -> Floats:
        return floats(special.expit(special.logit(held) + by))

    def excess(by: float) -> float:
        return float(moved(by).mean() - held.mean()) - effect

    if effect == 0:
        return rates
    if excess(60.0) < 0 or excess(-60.0) > 0:
        raise ValueError(
            f"no treatment can have a mean effect of {effect:+.3f} over a control of {held.mean():.3f}"
        )
    return moved(float(optimize.brentq(excess, -60.0, 60.0)))
