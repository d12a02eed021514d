"""What the campaign could have seen, and what more reps or more tasks would: from nuisance values, never from the
effect that was observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from trialfleet_analysis.comparisons import variance_components
from trialfleet_analysis.estimates import Estimand, Floats, Interval
from trialfleet_analysis.plan_of_analysis.columns import Counts, Scheme, places
from trialfleet_analysis.power import Population, campaign_power, stratified_power
from trialfleet_analysis.power.allocation import ONE_TASK, TOO_LARGE, least_effect, within_variance
from trialfleet_analysis.report.document.contrasts import Contrast
from trialfleet_analysis.report.document.outlook import DeclaredPower, Detectable, More, Outlook
from trialfleet_runner.campaign import Primary

POWER = 0.8
SIMULATED_TRIALS = 6_000_000  # per power figure: trials of all simulated campaigns together
FACTORS = (1, 2, 4)
UNKNOWN_SPREAD = "how far effects differ between tasks is not known"
THESE: Estimand = "these_tasks"
LIKE: Estimand = "tasks_like_these"


@dataclass(frozen=True)
class Nuisance:
    """`mean` pass rate, both arms together; `icc` between tasks; `sigma_int`; `tasks`; `reps`: the harmonic mean
    of the cells' valid trials, which is what unequal cells are worth: a single loss in cells of 5 leaves 4.9."""

    mean: float
    icc: Interval
    sigma_int: float | None
    tasks: int
    reps: float

    @property
    def whole_reps(self) -> int:
        """For display, and for campaigns that are simulated: those have whole trials."""
        return max(1, round(self.reps))


def outlook(contrast: Contrast | None, scheme: Scheme, counts: Counts) -> Outlook:
    """Of the primary contrast, or of the first of the unplanned ones."""
    found = None if contrast is None else _nuisance(contrast, scheme, counts)
    if found is None or contrast is None:
        nothing = Interval(None, None, None, 0.95, 0, "pooled_random_icc", LIKE, "no task with valid trials")
        return Outlook(None, nothing, None, (), (), ())
    return Outlook(
        mean=found.mean,
        icc=found.icc,
        sigma_int=found.sigma_int,
        detectable=(_detectable(THESE, found, scheme), _detectable(LIKE, found, scheme)),
        more=tuple(_more(t, r, found, scheme.alpha) for t, r in _larger()),
        declared=tuple(_declared(contrast, scheme, counts, found)),
    )


def _larger() -> list[tuple[int, int]]:
    """Times the tasks, times the reps: what was run, then more of one or of the other."""
    return [(1, 1), *((1, n) for n in FACTORS[1:]), *((n, 1) for n in FACTORS[1:])]


def _nuisance(contrast: Contrast, scheme: Scheme, counts: Counts) -> Nuisance | None:
    place = places(scheme.conditions)
    x_a, n_a, x_b, n_b = counts.arms(place[contrast.treatment], place[contrast.control])
    if not n_a.size:
        return None
    both = np.concatenate([n_a, n_b])
    icc = variance_components(x_a + x_b, n_a + n_b).icc
    mean = float(np.mean((x_a / n_a + x_b / n_b) / 2))
    harmonic = both.size / float(np.sum(1 / both))  # `shared` tasks have trials in both arms
    return Nuisance(mean, icc, contrast.heterogeneity.sigma_int, int(n_a.size), harmonic)


def _detects(tasks: int, reps: float, found: Nuisance, alpha: float) -> dict[Estimand, float | None]:
    """The least effects of that design, by the formulas of `reps_versus_tasks`. Without an estimate tasks are
    taken as alike, which asks for more, not fewer, reps."""
    mean, sigma = min(max(found.mean, 0.01), 0.99), found.sigma_int
    within = within_variance(mean, mean, found.icc.estimate or 0.0) / (tasks * reps)
    on_these = least_effect(math.sqrt(within), df=None, alpha=alpha, power=POWER)
    if sigma is None:
        return {THESE: on_these, LIKE: None}
    spread = math.sqrt(within + sigma**2 / tasks)
    return {THESE: on_these, LIKE: least_effect(spread, df=tasks - 1, alpha=alpha, power=POWER)}


def _detectable(estimand: Estimand, found: Nuisance, scheme: Scheme) -> Detectable:
    mde = _detects(found.tasks, found.reps, found, scheme.alpha)[estimand]
    reason = None if mde is not None else TOO_LARGE
    if estimand == LIKE and mde is None and (found.tasks == 1 or found.sigma_int is None):
        reason = ONE_TASK if found.tasks == 1 else UNKNOWN_SPREAD
    return Detectable(estimand, found.tasks, found.whole_reps, POWER, scheme.alpha, mde, reason)


def _more(times_tasks: int, times_reps: int, found: Nuisance, alpha: float) -> More:
    """As many trials lost, in proportion, as in what was run."""
    tasks, reps = found.tasks * times_tasks, found.whole_reps * times_reps
    detects = _detects(tasks, found.reps * times_reps, found, alpha)
    return More(tasks, reps, tasks * reps, detects[THESE], detects[LIKE])


def _declared(contrast: Contrast, scheme: Scheme, counts: Counts, found: Nuisance) -> Sequence[DeclaredPower]:
    declared = scheme.declared
    if declared is None or declared.effect is None:
        return ()
    simulations = max(200, min(2_000, SIMULATED_TRIALS // (2 * found.tasks * found.whole_reps)))
    return (
        _on_these(contrast, declared, declared.effect, scheme, counts, simulations),
        _on_others(declared, declared.effect, scheme, found, simulations),
    )


def _on_these(
    contrast: Contrast, declared: Primary, effect: float, scheme: Scheme, counts: Counts, simulations: int
) -> DeclaredPower:
    place = places(scheme.conditions)
    x_a, n_a, x_b, n_b = counts.arms(place[contrast.treatment], place[contrast.control])
    blinded = np.asarray((x_a + x_b + 0.5) / (n_a + n_b + 1))
    arms = apart(blinded, effect)
    if arms is None:
        return DeclaredPower(THESE, effect, None, None, 0, "these tasks' rates leave no room for that effect")
    reps = np.rint(2 / (1 / n_a + 1 / n_b)).astype(np.int64)  # the arms' are drawn alike, from as many each
    found = stratified_power(
        *arms, reps, simulations=simulations, seed=scheme.seed_of("power", THESE), alpha=declared.alpha
    )
    return DeclaredPower(THESE, effect, found.power, found.se, simulations, None)


def _on_others(
    declared: Primary, effect: float, scheme: Scheme, found: Nuisance, simulations: int
) -> DeclaredPower:
    if found.sigma_int is None or found.icc.estimate is None:
        return DeclaredPower(LIKE, effect, None, None, 0, UNKNOWN_SPREAD)
    try:
        power = campaign_power(
            Population(found.mean - effect / 2, found.mean + effect / 2, found.icc.estimate, found.sigma_int),
            tasks=found.tasks,
            reps=found.whole_reps,
            estimand=LIKE,
            alpha=declared.alpha,
            simulations=simulations,
            seed=scheme.seed_of("power", LIKE),
        )
    except ValueError as impossible:  # such a population of tasks cannot be: the message says why
        return DeclaredPower(LIKE, effect, None, None, 0, str(impossible))
    return DeclaredPower(LIKE, effect, power.power, power.se, simulations, None)


def apart(blinded: Floats, effect: float) -> tuple[Floats, Floats] | None:
    """Rates of two arms about the tasks' blinded rates, with that mean difference: one shift in logits, half in
    each arm. None when no shift gives it."""
    centre = special.logit(blinded)

    def arms(shift: float) -> tuple[Floats, Floats]:
        return special.expit(centre + shift / 2), special.expit(centre - shift / 2)

    def short(shift: float) -> float:
        a, b = arms(shift)
        return float(np.mean(a - b)) - effect

    if short(80.0) <= 0 or short(-80.0) >= 0:
        return None
    return arms(float(optimize.brentq(short, -80.0, 80.0)))
