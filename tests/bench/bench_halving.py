"""Halving of four treatments: false rejections, power and trials of simulated campaigns of 12 × 25."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tests.bench.figure import Figure
from tests.support.task_rates import control_rates
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import halving_block, left_out
from trialfleet_statistics.comparisons import stratified_exact
from trialfleet_statistics.estimates import Floats, Integers, rejects
from trialfleet_statistics.power import shifted

TASKS, REPS, CAMPAIGNS = 12, 25, 1_500
CONTROL, TREATMENTS = "none", ("a", "b", "c", "d")
ALPHA = Primary(treatment="a", control=CONTROL, halve=True).tested.alpha
RATES = {
    "Beta(.6,.6)": (control_rates(TASKS, 0.5, 1 / 2.2), 0.097),
    "rates .5": (np.full(TASKS, 0.5), 0.130),
}  # with the effect of 90 % power of one test
EFFECTS = {"no effect": (0, 0, 0, 0), "one effect D": (0, 0, 0, 1), "0, D/3, 2D/3, D": (0, 1 / 3, 2 / 3, 1)}


def measure() -> list[Figure]:
    return [figure for name in RATES for effects in EFFECTS for figure in _figures(name, effects)]


def _figures(rates: str, effects: str) -> Iterator[Figure]:
    control, effect = RATES[rates]
    shares = EFFECTS[effects]
    treated = [shifted(control, share * effect) if share else control for share in shares]
    for declared in ("d", "a") if any(shares) else ("a",):
        rng, false, found, trials = np.random.default_rng(29), 0, 0, 0
        for _ in range(CAMPAIGNS):
            rejected, ran = _campaign(rng, control, treated, declared)
            false += any(not share and name in rejected for name, share in zip(TREATMENTS, shares, strict=True))
            found, trials = found + ("d" in rejected), trials + ran
        note = f"{CAMPAIGNS:,} campaigns of {TASKS} × {REPS}"
        title = f"{rates}, {effects}, {'the best' if declared == 'd' and any(shares) else 'a null one'} declared"
        error = 3 * math.sqrt(0.05 * 0.95 / CAMPAIGNS)
        yield Figure(f"{title}: any false rejection", false / CAMPAIGNS, "", 0.05 + error, note)
        if any(shares):
            yield Figure(f"{title}: finds D", found / CAMPAIGNS, "", note=note)
        whole = CAMPAIGNS * TASKS * REPS * (1 + len(TREATMENTS))
        yield Figure(f"{title}: share of the trials", trials / whole, "", 0.77, note)


def _campaign(
    rng: np.random.Generator, control: Floats, treated: Sequence[Floats], declared: str
) -> tuple[set[str], int]:
    """The treatments that the final test finds to differ, and how many trials ran."""
    early, every = halving_block(REPS), (control, *treated)
    first = {name: rng.binomial(early, rates) for name, rates in zip((CONTROL, *TREATMENTS), every, strict=True)}
    means = {name: float(passes.sum()) for name, passes in first.items()}
    out = left_out(means, treatment=declared, control=CONTROL)
    passes = {
        name: first[name] + rng.binomial(REPS - early, rates)
        for name, rates in zip((CONTROL, *TREATMENTS), every, strict=True)
        if name not in out
    }
    found = {name for name in passes if name != CONTROL and _differs(passes[name], passes[CONTROL])}
    return found, TASKS * (early * len(every) + (REPS - early) * len(passes))


def _differs(passes: Integers, control: Integers) -> bool:
    valid = np.full(TASKS, REPS)
    return rejects(stratified_exact(passes, valid, control, valid).p_value, ALPHA)
