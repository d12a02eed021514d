"""Regions of the tables of a design (n_a, n_b), and a test that asks each different table once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.comparisons import hypergeometric
from trialfleet_analysis.comparisons.answers import answer, probability, table_reasons
from trialfleet_analysis.comparisons.nuisance import supremum
from trialfleet_analysis.estimates import Alternative, Counts, Floats, Integers, Test, Tests, floats, four_counts

Mask: TypeAlias = NDArray[np.bool_]
Found: TypeAlias = tuple[float, float, float]  # p, the statistic, the least p that these arms allow


def size(region: Mask, n_a: int, n_b: int) -> float:
    """Probability of the region at the worst common pass rate."""
    return supremum(weights(region, n_a, n_b))


def weights(region: Mask, n_a: int, n_b: int) -> Floats:
    """Probability of the region given the passes in both arms, for 0 … n_a + n_b of them."""
    chances, passes = _space(n_a, n_b)
    return floats(np.bincount(passes[region], weights=chances[region], minlength=n_a + n_b + 1))


@lru_cache(maxsize=4)
def _space(n_a: int, n_b: int) -> tuple[Floats, Integers]:
    return hypergeometric.conditional(n_a, n_b), hypergeometric.totals(n_a, n_b)


def each_table(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    one: Callable[[int, int, int, int], Found],
    method: str,
    alternative: Alternative,
) -> Test | Tests:
    """Every different table once, designs together so that their tables stay cached."""
    x_a, n_a, x_b, n_b = four_counts(passes_a, trials_a, passes_b, trials_b)
    reasons = table_reasons(n_a, n_b, x_a + x_b)
    tables = np.stack([np.ravel(values) for values in (n_a, n_b, x_a, x_b)], axis=1)
    different, place = np.unique(tables, axis=0, return_inverse=True)
    found = np.full((len(different), 3), np.nan)
    for row, (trials_one, trials_two, in_one, in_two) in enumerate(different.tolist()):
        if trials_one and trials_two:
            found[row] = one(in_one, in_two, trials_one, trials_two)
    p_value, statistic, least = (found[place.ravel(), column].reshape(x_a.shape) for column in range(3))
    informative = np.where(reasons == None, n_a + n_b, 0)  # noqa: E711 (elementwise)
    return answer(
        probability(p_value),
        floats(statistic),
        probability(least),
        informative,
        reasons,
        method=method,
        alternative=alternative,
    )
