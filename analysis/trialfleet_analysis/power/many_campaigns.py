"""The analyses' p-values for many campaigns of one design: what the campaigns share is worked out once.

The formulas and the convolution are those of `comparisons`; spared are a check of every campaign's counts and the
probabilities of margins that another campaign had too. Counts have shape (campaigns, T), reps shape (T,), in both
arms alike.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.answers import LEAST
from trialfleet_analysis.comparisons.conditional import exact_p
from trialfleet_analysis.comparisons.convolution import convolved, informative_strata, powered, tilted
from trialfleet_analysis.comparisons.paired import SAME
from trialfleet_analysis.estimates import Floats, Integers


def exact_p_values(passes_a: Integers, passes_b: Integers, reps: Integers) -> Floats:
    """`stratified_exact`'s p, mid-p and central, of every campaign."""
    passes, least = passes_a + passes_b, np.maximum(0, passes_a + passes_b - reps)
    above = (passes_a - least).sum(axis=1).tolist()
    margins = zip(passes.tolist(), above, strict=True)
    sizes = reps.tolist()
    return np.array([_exact_p(Counter(zip(sizes, of, strict=True)), at) for of, at in margins])


def paired_t_p_values(rates_a: Floats, rates_b: Floats) -> Floats:
    """`paired_t_on_tasks`' p of every campaign; NaN where it has none."""
    differences = rates_a - rates_b
    tasks = differences.shape[1]
    scale = np.maximum(1.0, np.abs(differences).max(axis=1))
    known = np.ptp(differences, axis=1) > SAME * scale if tasks > 1 else np.zeros(len(differences), bool)
    found = np.full(len(differences), np.nan)
    some = differences[known]
    t = some.mean(axis=1) / (some.std(axis=1, ddof=1) / np.sqrt(tasks)) if len(some) else np.zeros(0)
    found[known] = np.maximum(LEAST, 2 * special.stdtr(tasks - 1, -np.abs(t)))
    return found


def _exact_p(margins: Counter[tuple[int, int]], at: int) -> float:
    """`margins`: how many tasks have these reps per arm and these passes in both arms. `at`: the passes in arm a
    above the least that the margins allow."""
    informative = [(n, passes, often) for (n, passes), often in sorted(margins.items()) if 0 < passes < 2 * n]
    distribution = convolved([powered(_rows(n)[passes - 1], often) for n, passes, often in informative])
    p = exact_p(distribution, at, midp=True, convention="central", alternative="two-sided")
    return min(1.0, max(p, LEAST))


@lru_cache(maxsize=256)
def _rows(n: int) -> tuple[Floats, ...]:
    """P(passes in a = least + k) for 1 … 2n − 1 passes in both arms."""
    passes = np.arange(1, 2 * n)
    least = np.maximum(0, passes - n)
    every = tilted(informative_strata(least, np.full_like(passes, n), passes - least, np.full_like(passes, n)))
    widths = np.minimum(passes, 2 * n - passes) + 1
    return tuple(row[:width].copy() for row, width in zip(every, widths.tolist(), strict=True))
