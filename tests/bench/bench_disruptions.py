"""How far evictions move a pass rate that is tried again until it is measured, at two budgets of retries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.bench.figure import Figure
from trialfleet_statistics.power import stratified_power

TRIALS = 200_000
PASS = 0.5
MINUTES_OF_A_PASS, MINUTES_OF_A_FAILURE = 10.0, 30.0  # means of log-normal times
SPREAD = 0.5  # standard deviation of their logarithms
QUICK_FAILURES = 15.0  # the same of a condition whose failures are given up sooner
BUDGETS = (2, 20)
PER_HOUR = (0.5, 2.0)  # a node that is reclaimed every two hours, and every half
EXPECTED = {0.5: 0.538, 2.0: 0.638}  # what is measured: the same at every budget
TASKS, REPS = 8, 25


@dataclass(frozen=True)
class Measured:
    """`rate`: of the trials that have a verdict; `abandoned`: the share of those without; `bounds`: of the true
    rate, when every trial whose first run was lost counts as missing; `hours`: of agents, per trial."""

    rate: float
    abandoned: float
    bounds: tuple[float, float]
    hours: float


def simulated(per_hour: float, budget: int, *, minutes_of_a_failure: float = MINUTES_OF_A_FAILURE) -> Measured:
    """Evictions come at a constant rate, the same for every trial; each attempt is a new run of the agent."""
    random = np.random.default_rng(7)
    passed = np.zeros(TRIALS, dtype=bool)
    open_trials = np.arange(TRIALS)
    hours, bounds = 0.0, (0.0, 1.0)
    for attempt in range(budget + 1):
        passes = random.random(open_trials.size) < PASS
        mean = np.where(passes, MINUTES_OF_A_PASS, minutes_of_a_failure)
        lasts = mean * random.lognormal(-(SPREAD**2) / 2, SPREAD, open_trials.size) / 60
        evicted_at = random.exponential(1 / per_hour, open_trials.size)
        lost = evicted_at < lasts
        hours += float(np.minimum(lasts, evicted_at).sum())
        passed[open_trials] = passes & ~lost
        if attempt == 0:
            bounds = (float(np.mean(passes & ~lost)), float(np.mean((passes & ~lost) | lost)))
        open_trials = open_trials[lost]
    measured = TRIALS - open_trials.size
    return Measured(float(passed.sum()) / measured, open_trials.size / TRIALS, bounds, hours / TRIALS)


def measure() -> list[Figure]:
    return [*_rates(), *_contrasts()]


def _rates() -> Iterator[Figure]:
    for per_hour in PER_HOUR:
        for budget in BUDGETS:
            found, where = simulated(per_hour, budget), f"{per_hour:g} evictions an hour, budget {budget}"
            expected, (low, high) = EXPECTED[per_hour], found.bounds
            note = f"true rate {PASS:g}; bounds by first runs {low:.2f} to {high:.2f}; {found.hours:.2f} h a trial"
            yield Figure(f"rate, {where}", found.rate, "", expected + 0.003, note, floor=expected - 0.003)
            yield Figure(f"without a verdict, {where}", 100 * found.abandoned, "%")
            yield Figure(f"bounds hold, {where}", float(low <= PASS <= high), "", floor=1)


def _contrasts() -> Iterator[Figure]:
    """Two conditions that pass equally often: the failures of one are given up sooner."""
    for per_hour in PER_HOUR:
        for budget in BUDGETS:
            slow = simulated(per_hour, budget).rate
            quick = simulated(per_hour, budget, minutes_of_a_failure=QUICK_FAILURES).rate
            power = stratified_power([slow] * TASKS, [quick] * TASKS, REPS, seed=1, simulations=2000).power
            where = f"{per_hour:g} evictions an hour, budget {budget}"
            yield Figure(f"false difference, {where}", slow - quick, "")
            yield Figure(f"rejected without an effect, {where}", 100 * power, "%", note=f"{TASKS} tasks × {REPS}")
