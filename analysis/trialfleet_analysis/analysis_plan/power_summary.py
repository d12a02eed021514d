"""What the campaign could have seen, and what more reps or more tasks would: from nuisance values, never from the
effect that was observed. On these tasks it is simulated from each task's own blinded rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from trialfleet_designs.comparison.columns import CellCounts, FourCounts, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.tasks_like_these import TasksClaim
from trialfleet_designs.monitoring import design_of, drop_block_of, futility_of
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import revised_reps
from trialfleet_statistics.comparisons import variance_components
from trialfleet_statistics.comparisons.repositories import TaskRepositories
from trialfleet_statistics.estimates import Estimand, Floats, Integers, Interval, cannot_reject
from trialfleet_statistics.power import (
    CampaignEffect,
    Population,
    SimulatedPower,
    campaign_power,
    stratified_power,
)
from trialfleet_statistics.power.allocation import (
    ONE_TASK,
    TOO_LARGE,
    balance_reps,
    least_effect,
    same_trials,
    within_variance,
)
from trialfleet_statistics.power.campaigns import EDGE, FACTORS, settled
from trialfleet_statistics.sequential import sequential_power

LARGEST_SHIFT = 80.0  # logits
UNSEEN = 0.5  # the first guess where the normal approximation asks for more than 100 points


@dataclass(frozen=True, eq=False)
class OwnTasks:
    """`rates`: of both arms together per task, (passes + ½) / (valid + 1), which shows no difference between them.
    `reps`: per arm and task, the harmonic mean of the arms' valid trials in whole trials."""

    rates: Floats
    reps: Integers

    @property
    def trials(self) -> int:
        """Of both arms."""
        return 2 * int(self.reps.sum())


def own_tasks(four: FourCounts) -> OwnTasks:
    x_a, n_a, x_b, n_b = four
    rates = np.asarray((x_a + x_b + 0.5) / (n_a + n_b + 1))
    return OwnTasks(rates, np.rint(2 / (1 / n_a + 1 / n_b)).astype(np.int64))


def power_at(
    effect: float, tasks: OwnTasks, *, alpha: float, simulations: int, seed: int
) -> SimulatedPower | None:
    """None where the tasks' rates leave no room for that effect."""
    arms = apart(tasks.rates, effect)
    if arms is None:
        return None
    return stratified_power(*arms, tasks.reps, simulations=simulations, seed=seed, alpha=alpha)


def detected(tasks: OwnTasks, *, power: float, alpha: float, simulations: int, seed: int) -> CampaignEffect:
    """The least effect with that power, in `simulations` campaigns for each look at the power curve.

    The first look is about the normal approximation with the variance mean_t 2 p (1 − p) / reps_t.
    """
    within = float(np.mean(2 * tasks.rates * (1 - tasks.rates) / tasks.reps))
    guess = least_effect(math.sqrt(within / tasks.rates.size), df=None, alpha=alpha, power=power)
    each = math.ceil(simulations / len(FACTORS))

    def reached(effect: float, own_seed: int) -> float:
        found = power_at(effect, tasks, alpha=alpha, simulations=each, seed=own_seed)
        return found.power if found else 0.0

    return settled(
        reached,
        "these_tasks",
        guess=guess or UNSEEN,
        largest=1 - EDGE,
        each=each,
        power=power,
        seed=seed,
    )


def apart(blinded: Floats, effect: float) -> tuple[Floats, Floats] | None:
    """Rates of two arms about the tasks' blinded rates, with that mean difference: one shift in logits, half in
    each arm. None when no shift gives it."""
    centre = special.logit(blinded)

    def arms(shift: float) -> tuple[Floats, Floats]:
        return special.expit(centre + shift / 2), special.expit(centre - shift / 2)

    def short(shift: float) -> float:
        a, b = arms(shift)
        return float(np.mean(a - b)) - effect

    if short(LARGEST_SHIFT) <= 0 or short(-LARGEST_SHIFT) >= 0:
        return None
    return arms(float(optimize.brentq(short, -LARGEST_SHIFT, LARGEST_SHIFT)))


@dataclass(frozen=True)
class Detectable:
    """The least difference that the achieved design detects with that power; None with the `reason`. It is made of
    the harmonic mean of the cells' valid trials; `reps` is that mean, rounded. `monte_carlo_se`: of a simulated
    effect; None: a normal approximation."""

    estimand: Estimand
    tasks: int
    reps: int
    power: float
    alpha: float
    mde: float | None
    reason: str | None
    monte_carlo_se: float | None


@dataclass(frozen=True)
class More:
    """What a design would detect: first the one that was run, then more reps, then more tasks, losing as many
    trials in proportion; `reps` are rounded as in `Detectable`. On these tasks the effect that was simulated for
    the first design, divided by √(trials / its trials); on tasks like these normal approximations. For choosing
    between designs; None: more than 100 points, or not known."""

    tasks: int
    reps: int
    trials_per_arm: int
    mde_these_tasks: float | None
    mde_tasks_like_these: float | None


@dataclass(frozen=True)
class DeclaredPower:
    """Power at the effect that the campaign declared, at the achieved n: simulated with the test that analyses.
    Never at the effect that was observed."""

    estimand: Estimand
    effect: float
    power: float | None
    monte_carlo_se: float | None
    simulations: int
    reason: str | None


@dataclass(frozen=True)
class PlannedPower:
    """Of the whole plan with its looks, on these tasks: what it had before anything ran, whenever it stopped.
    Simulated with the test that decides, from the tasks' own blinded rates. `effect`: the declared one, or the one
    that a test at the end alone finds with a power of 80%, by a normal approximation."""

    effect: float
    power: float
    monte_carlo_se: float
    blocks: int


@dataclass(frozen=True)
class PowerSummary:
    """Of the primary contrast, or of the first contrast where none was declared. `mean`, `icc`, `sigma_int`: the
    nuisance values that these numbers rest on, of both arms together. `equal`: designs of as many trials, fewest
    tasks first; `balance_reps`: the reps at which the noise within tasks equals the spread of effects between them
    (None: not known, or no more spread than chance was seen). `planned`: where looks are declared. `freedom`:
    degrees of freedom of the test on tasks like these."""

    mean: float | None
    icc: Interval
    sigma_int: float | None
    detectable: tuple[Detectable, ...]
    more: tuple[More, ...]
    declared: tuple[DeclaredPower, ...]
    equal: tuple[More, ...] = ()
    balance_reps: float | None = None
    planned: PlannedPower | None = None
    freedom: float | None = None


POWER = 0.8
SIMULATED_TRIALS = 6_000_000  # per power figure: trials of all simulated campaigns together
TIMES = (1, 2, 4)
PLANS = 1_000  # simulated
NO_POWER = "power 0: too few tasks could distinguish them"
UNKNOWN_SPREAD = "how far effects differ between tasks is not known"
THESE: Estimand = "these_tasks"
LIKE: Estimand = "tasks_like_these"


@dataclass(frozen=True)
class Nuisance:
    """`mean` pass rate, both arms together; `icc` between tasks; `sigma_int`; `tasks`; `reps`: the harmonic mean
    of the cells' valid trials, which is what unequal cells are worth: a single loss in cells of 5 leaves 4.9.
    `repositories`: of the tasks."""

    mean: float
    icc: Interval
    sigma_int: float | None
    tasks: int
    reps: float
    repositories: TaskRepositories

    @property
    def whole_reps(self) -> int:
        """For display, and for campaigns that are simulated: those have whole trials."""
        return max(1, round(self.reps))


def power_summary(contrast: Contrast | None, scheme: Scheme, counts: CellCounts) -> PowerSummary:
    """Of the primary contrast, or of the first of the unplanned ones."""
    four = None
    if contrast is not None:
        four = counts.arms(*scheme.pair(contrast), counts.tasks_of(scheme, contrast))
    if contrast is None or four is None or not four[0].size:
        nothing = Interval(None, None, None, 0.95, 0, "pooled_random_icc", LIKE, "no task with valid trials")
        return PowerSummary(None, nothing, None, (), (), ())
    mask = counts.tasks_of(scheme, contrast)
    found, tasks = _nuisance(contrast, four, TasksClaim.of(scheme, mask, primary=True).named), own_tasks(four)
    on_these = _on_these_detectable(found, tasks, scheme)
    return PowerSummary(
        mean=found.mean,
        icc=found.icc,
        sigma_int=found.sigma_int,
        detectable=(on_these, _like_these_detectable(contrast, found, scheme)),
        more=tuple(_more(t, r, found, on_these.mde, scheme.alpha) for t, r in _larger()),
        declared=tuple(_declared(scheme, tasks, found)),
        equal=tuple(
            _as_many(t, r, found, on_these.mde, scheme.alpha)
            for t, r in same_trials(found.tasks, found.whole_reps)
        ),
        balance_reps=_balance(found),
        planned=_planned(tasks, scheme),
        freedom=found.repositories.count_freedom(found.tasks),
    )


def _planned(tasks: OwnTasks, scheme: Scheme) -> PlannedPower | None:
    """None without looks, and where these tasks' rates leave no room for the effect."""
    declared = scheme.declared
    if declared is None or declared.stop is None or declared.anytime is not None:
        return None
    design = design_of(declared, scheme.planned_reps, revised_reps(scheme.decisions))
    within = float(np.mean(2 * tasks.rates * (1 - tasks.rates) / design.blocks))
    alone = least_effect(math.sqrt(within / tasks.rates.size), df=None, alpha=scheme.alpha, power=POWER)
    effect = declared.effect or alone
    arms = None if effect is None else apart(tasks.rates, effect)
    if effect is None or arms is None:
        return None
    found = sequential_power(
        *arms,
        design,
        futility=futility_of(declared),
        drop_saturated=drop_block_of(declared),
        simulations=PLANS,
        seed=scheme.seed_of("power of the plan", THESE),
    )
    return PlannedPower(effect, found.power, found.se, design.blocks)


def _larger() -> list[tuple[int, int]]:
    """Times the tasks, times the reps: what was run, then more of one or of the other."""
    return [(1, 1), *((1, n) for n in TIMES[1:]), *((n, 1) for n in TIMES[1:])]


def _nuisance(contrast: Contrast, four: FourCounts, of: TaskRepositories) -> Nuisance:
    x_a, n_a, x_b, n_b = four
    both = np.concatenate([n_a, n_b])
    icc = variance_components(x_a + x_b, n_a + n_b).icc
    mean = float(np.mean((x_a / n_a + x_b / n_b) / 2))
    harmonic = both.size / float(np.sum(1 / both))  # `shared` tasks have trials in both arms
    return Nuisance(mean, icc, contrast.heterogeneity.sigma_int, int(n_a.size), harmonic, of)


def _on_these_detectable(found: Nuisance, tasks: OwnTasks, scheme: Scheme) -> Detectable:
    """Simulated with the tasks' own rates: where most tasks are saturated, a normal approximation is too small."""
    least = detected(
        tasks,
        power=POWER,
        alpha=scheme.alpha,
        simulations=_simulations(tasks),
        seed=scheme.seed_of("detectable", THESE),
    )
    return Detectable(
        THESE, found.tasks, found.whole_reps, POWER, scheme.alpha, least.effect, least.reason, least.se
    )


def _like_these_detectable(contrast: Contrast, found: Nuisance, scheme: Scheme) -> Detectable:
    if cannot_reject(contrast.tasks_like_these.test, scheme.alpha):
        return Detectable(LIKE, found.tasks, found.whole_reps, POWER, scheme.alpha, None, NO_POWER, None)
    mde = _on_others_detects(found.tasks, found.reps, found, scheme.alpha)
    reason = None if mde is not None else TOO_LARGE
    if mde is None and (found.tasks == 1 or found.sigma_int is None):
        reason = ONE_TASK if found.tasks == 1 else UNKNOWN_SPREAD
    reason = found.repositories.refused or reason
    return Detectable(LIKE, found.tasks, found.whole_reps, POWER, scheme.alpha, mde, reason, None)


def _on_others_detects(tasks: int, reps: float, found: Nuisance, alpha: float) -> float | None:
    """The least effect of that design, by the formula of `reps_versus_tasks`. Without an estimate of the ICC tasks
    are taken as alike, which asks for more, not fewer, reps."""
    if found.sigma_int is None or found.repositories.explain_refusal(tasks):
        return None
    mean = min(max(found.mean, 0.01), 0.99)
    within = within_variance(mean, mean, found.icc.estimate or 0.0) / (tasks * reps)
    free, error = found.repositories.count_freedom(tasks), math.sqrt(within + found.sigma_int**2 / tasks)
    inflated = found.repositories.inflate_error(tasks) if found.sigma_int else 1.0  # as campaigns are drawn
    return least_effect(error * inflated, df=free, alpha=alpha, power=POWER)


def _more(times_tasks: int, times_reps: int, found: Nuisance, on_these: float | None, alpha: float) -> More:
    """As many trials lost, in proportion, as in what was run. On these tasks the simulated effect of what was run
    (`on_these`), less by the square root of the trials."""
    tasks, reps = found.tasks * times_tasks, found.whole_reps * times_reps
    on_others = _on_others_detects(tasks, found.reps * times_reps, found, alpha)
    scaled = None if on_these is None else on_these / math.sqrt(times_tasks * times_reps)
    return More(tasks, reps, tasks * reps, scaled, on_others)


def _as_many(tasks: int, reps: int, found: Nuisance, on_these: float | None, alpha: float) -> More:
    """A design of as many trials or slightly fewer, with as many lost in proportion."""
    share = tasks * reps / (found.tasks * found.whole_reps)
    on_others = _on_others_detects(tasks, reps * found.reps / found.whole_reps, found, alpha)
    return More(tasks, reps, tasks * reps, None if on_these is None else on_these / math.sqrt(share), on_others)


def _balance(found: Nuisance) -> float | None:
    if not found.sigma_int or found.icc.estimate is None or not 0 < found.mean < 1:
        return None
    return balance_reps(mean=found.mean, icc=found.icc.estimate, sigma_int=found.sigma_int)


def _simulations(tasks: OwnTasks) -> int:
    return max(200, min(2_000, SIMULATED_TRIALS // tasks.trials))


def _declared(scheme: Scheme, tasks: OwnTasks, found: Nuisance) -> Sequence[DeclaredPower]:
    declared = scheme.declared
    if declared is None or declared.effect is None:
        return ()
    simulations = _simulations(tasks)
    return (
        _on_these(declared, declared.effect, tasks, scheme, simulations),
        _on_others(declared, declared.effect, scheme, found, simulations),
    )


def _on_these(
    declared: Primary, effect: float, tasks: OwnTasks, scheme: Scheme, simulations: int
) -> DeclaredPower:
    found = power_at(
        effect, tasks, alpha=declared.alpha, simulations=simulations, seed=scheme.seed_of("power", THESE)
    )
    if found is None:
        return DeclaredPower(THESE, effect, None, None, 0, "these tasks' rates leave no room for that effect")
    return DeclaredPower(THESE, effect, found.power, found.se, simulations, None)


def _on_others(
    declared: Primary, effect: float, scheme: Scheme, found: Nuisance, simulations: int
) -> DeclaredPower:
    if (refused := found.repositories.refused) is not None:
        return DeclaredPower(LIKE, effect, None, None, 0, refused)
    if found.sigma_int is None or found.icc.estimate is None:
        return DeclaredPower(LIKE, effect, None, None, 0, UNKNOWN_SPREAD)
    low, high = found.mean - effect / 2, found.mean + effect / 2
    if not 0 < low < high < 1:
        reason = f"a mean rate of {100 * found.mean:.1f}% leaves no room for that effect"
        return DeclaredPower(LIKE, effect, None, None, 0, reason)
    try:
        power = campaign_power(
            Population(low, high, found.icc.estimate, found.sigma_int),
            tasks=found.tasks,
            reps=found.whole_reps,
            estimand=LIKE,
            repositories=found.repositories,
            alpha=declared.alpha,
            simulations=simulations,
            seed=scheme.seed_of("power", LIKE),
        )
    except ValueError as impossible:  # such a population of tasks cannot be: the message says why
        return DeclaredPower(LIKE, effect, None, None, 0, str(impossible))
    return DeclaredPower(LIKE, effect, power.power, power.se, simulations, None)
