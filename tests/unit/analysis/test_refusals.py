"""What the statistics refuse: each error names the argument, in every module by the same rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from trialfleet_statistics.comparisons import (
    barnard,
    boschloo,
    breslow_day,
    cochran_mantel_haenszel,
    conditional_odds_ratio,
    fisher,
    fisher_rejects,
    mantel_haenszel_odds_ratio,
    stratified_exact,
)
from trialfleet_statistics.continuous import (
    cliffs_delta,
    hierarchical_bootstrap,
    hodges_lehmann,
    restricted_mean_difference,
    restricted_time_to_pass_difference,
    signed_rank,
    stratified_permutation,
)
from trialfleet_statistics.drift import DriftTrial, autocorrelation
from trialfleet_statistics.intervals import (
    clopper_pearson,
    effective_sample_wilson,
    miettinen_nurminen,
    newcombe,
    pooled_fixed,
    pooled_random,
    stratified_miettinen_nurminen,
    stratified_score_z,
    wilson,
)
from trialfleet_statistics.missing import bounds, loss_by_condition, robustness
from trialfleet_statistics.multiplicity import attainability, holm
from trialfleet_statistics.power import (
    Population,
    boschloo_power,
    calibrated,
    fisher_power,
    minimum_detectable_effect,
    reps_versus_tasks,
    required_reps,
    stratified_power,
)
from trialfleet_statistics.repeats import pass_at_k, pass_hat_k
from trialfleet_statistics.timing import median_over_tasks, slope_after_first_edit

NAN, INF = math.nan, math.inf
Function = Callable[..., Any]
OF_TWO_ARMS: tuple[Function, ...] = (
    *(barnard, boschloo, breslow_day, cochran_mantel_haenszel, conditional_odds_ratio, fisher, stratified_exact),
    *(mantel_haenszel_odds_ratio, miettinen_nurminen, newcombe, stratified_miettinen_nurminen),
)
OF_RATES: tuple[Function, ...] = (wilson, clopper_pearson, effective_sample_wilson, pooled_fixed, pooled_random)
OF_RATES += tuple(partial(method, k=1) for method in (pass_at_k, pass_hat_k))
ONE_TASK: tuple[Function, ...] = (effective_sample_wilson, pooled_fixed, pooled_random, *OF_RATES[5:])
hl, sr, permuted = hodges_lehmann, signed_rank, partial(stratified_permutation, seed=1)
boot = partial(hierarchical_bootstrap, estimand="these_tasks", seed=1)
rmst, pass_time = restricted_mean_difference, restricted_time_to_pass_difference
simulated, designs = partial(stratified_power, seed=1), partial(reps_versus_tasks, 3)
slope = partial(slope_after_first_edit, estimand="these_tasks")
CASES: list[tuple[str, Function, tuple[Any, ...], dict[str, Any]]] = [
    *(("passes", f, wrong, {}) for f in OF_TWO_ARMS for wrong in ((6, 5, 1, 5), (-1, 5, 1, 5), (1.5, 5, 1, 5))),
    *(("passes", f, (1, 5, NAN, 5), {}) for f in OF_TWO_ARMS),
    *(
        ("passes|trials", f, wrong, {})
        for f in OF_RATES
        for wrong in ((6, 5), (-1, 5), (1.5, 5), (NAN, 5), (1, INF))
    ),
    *(("passes", f, wrong, {}) for f in OF_RATES for wrong in ((True, 5), ("1", 5))),
    *(("level", f, (1, 5), {"level": level}) for f in OF_RATES for level in (0.0, 1.0, NAN)),
    *(("level", f, (1, 5, 1, 5), {"level": level}) for f in OF_TWO_ARMS[-3:] for level in (0.0, 1.0, NAN)),
    *(("shape", f, ([[1, 2]], [[5, 5]]), {}) for f in ONE_TASK),
    *(("k must be", f, (3, 5, k), {}) for f in (pass_at_k, pass_hat_k) for k in (0, -1, 1.5, True, NAN)),
    *(("k = 6 is above", pass_at_k, (*of, 6), {}) for of in ((3, 5), ([3, 3], [5, 8]), (0, 0))),
    ("alternative", fisher, (1, 5, 1, 5), {"alternative": "both"}),
    ("alpha", fisher_rejects, (5, 5), {"alpha": 1.0}),
    ("convention", stratified_exact, (1, 5, 1, 5), {"convention": "blaker"}),
    ('weights="mh"', stratified_exact, (1, 5, 1, 5), {"convention": "minlike"}),
    ("alternative", stratified_exact, (1, 5, 1, 5), {"alternative": "both"}),
    ("shape", stratified_exact, ([[1]], [[5]], [[1]], [[5]]), {}),
    ("level", conditional_odds_ratio, (1, 5, 1, 5), {"level": 95}),
    ("convention", boschloo, (1, 5, 1, 5), {"convention": "blaker"}),
    ("alternative", barnard, (1, 5, 1, 5), {"alternative": "both"}),
    *(
        ("weights", stratified_miettinen_nurminen, ([1, 2], [5, 5], [1, 2], [5, 5]), {"weights": weights})
        for weights in ([1.0], [1.0, -1.0], [0.0, 0.0], [1.0, NAN], [INF, 1.0], "inverse_variance")
    ),
    *(("difference", stratified_score_z, (1, 5, 1, 5, d), {}) for d in (-1.1, 1.0001, NAN)),
    ("values: 2 of 3 are not finite", boot, ([NAN, NAN, 1], [1, 0, 1], [0] * 3), {}),
    ("estimand", boot, ([1, 2], [1, 0], [0, 0]), {"estimand": "all_tasks"}),
    ("statistic", boot, ([1, 2], [1, 0], [0, 0]), {"statistic": "sum"}),
    (r"at least 39 for level 0\.95, got 38", boot, ([1, 2], [1, 0], [0, 0]), {"resamples": 38}),
    ("level", cliffs_delta, ([1, 2], [1, 0]), {"seed": 1, "level": 95}),
    ("values: 1 of 2 are not finite", permuted, ([1, NAN], [0, 1], [0, 0]), {}),
    ("arm: only 0, 1", permuted, ([1, 2], [0, 2], [0, 0]), {}),
    ("arm: 1 entries for 2 rows", permuted, ([1, 2], [0], [0, 0]), {}),
    ("stratum", permuted, ([1, 2], [0, 1], [0]), {}),
    ("1 of 2 labels are not a number", permuted, ([1, 2], [0, 1], [0, NAN]), {}),
    ("labels of one kind", permuted, ([1, 2], [0, 1], np.array(["x", None], dtype=object)), {}),
    ("values: expected numbers", permuted, (["1", "2"], [0, 1], [0, 0]), {}),
    ("resamples", permuted, ([1, 2], [0, 1], [0, 0]), {"resamples": 0}),
    ("statistic", permuted, ([1, 2], [0, 1], [0, 0]), {"statistic": "median"}),
    ("differences: 2 of 3 are not finite", sr, ([NAN, 1, INF],), {}),
    ("zeros must be one of pratt, wilcox", sr, ([1],), {"zeros": "drop"}),
    ("alternative", sr, ([1],), {"alternative": "both"}),
    ("level", hl, ([1],), {"level": 95}),
    ("shape", hl, ([[1, 2]],), {}),
    *(
        ("limit", f, ([1, 2], [1, 1], [1, 0], [0, 0]), {"limit": x})
        for f in (rmst, pass_time)
        for x in (0, -1, NAN, INF)
    ),
    ("started_s", DriftTrial, ("t", "none", 0, 0, NAN, True, False), {}),
    ("resamples", autocorrelation, ([],), {"resamples": 0}),
    ("shape", robustness, ([[1]], [[5]], [[0]], [[1]], [[5]], [[0]]), {}),
    ("alpha", robustness, (1, 5, 0, 1, 5, 0), {"alpha": 1.0}),
    *(
        (
            "passes|trials|valid|lost",
            f,
            tuple(wrong if n == place else of for n, of in enumerate((2, 5, 1, 2, 5, 1))),
            {},
        )
        for f in (robustness, bounds)
        for place in range(6)
        for wrong in (-1, 0.5, NAN)
    ),
    ("passes", loss_by_condition, ([6, 1], [5, 5]), {}),
    ("shape", loss_by_condition, ([[1, 1]], [[5, 5]]), {}),
    ("attainable", holm, ([0.1, 0.2],), {"attainable": [0.1]}),
    ("attainable", holm, ([0.1],), {"attainable": [0.2]}),
    ("alpha", holm, ([0.1],), {"alpha": 0.0}),
    ("family_size", attainability, (0.01, 0.01), {"family_size": 0}),
    ("given_totals", attainability, (0.02, 0.01), {"family_size": 2}),
    ("p_a", fisher_power, (1.2, 0.5, 10), {}),
    ("p_b", fisher_power, (0.2, NAN, 10), {}),
    ("n_a", fisher_power, (0.2, 0.5, 0), {}),
    ("n_b", fisher_power, (0.2, 0.5, 10, 2.5), {}),
    ("alternative", fisher_power, (0.2, 0.5, 10), {"alternative": "more"}),
    ("alpha", boschloo_power, (0.2, 0.5, 10), {"alpha": 0}),
    ("convention", boschloo_power, (0.2, 0.5, 10), {"convention": "middle"}),
    ("equal", required_reps, (0.4, 0.4), {}),
    ("power", required_reps, (0.4, 0.5), {"power": 1}),
    ("test", required_reps, (0.4, 0.5), {"test": "z"}),
    ("n:", minimum_detectable_effect, (0,), {}),
    ("p_b", minimum_detectable_effect, (5,), {"p_b": -0.1}),
    ("rates_a and rates_b", simulated, ([0.5], [0.5, 0.5], 5), {}),
    ("rates_a and rates_b", simulated, ([], [], 5), {}),
    ("rates_a", simulated, (np.ones((3, 2)), np.ones((3, 2)), 5), {}),
    ("reps", simulated, ([0.5] * 2, [0.5] * 2, [5, 5, 5]), {}),
    ("reps", simulated, ([0.5] * 2, [0.5] * 2, 0), {}),
    ("sigma_int", simulated, ([0.5], [0.5], 5), {"sigma_int": -1}),
    ("analysis", simulated, ([0.5], [0.5], 5), {"analysis": "z"}),
    ("budget", designs, (), {"cost_task": 3, "cost_rep": 1, "mean": 0.5, "icc": 0, "sigma_int": 0}),
    ("cost_rep", designs, (), {"cost_task": 0, "cost_rep": 0, "mean": 0.5, "icc": 0, "sigma_int": 0}),
    ("mean", designs, (), {"cost_task": 0, "cost_rep": 1, "mean": 1, "icc": 0, "sigma_int": 0}),
    ("icc", designs, (), {"cost_task": 0, "cost_rep": 1, "mean": 0.5, "icc": 1, "sigma_int": 0}),
    ("treatment", calibrated, (Population(0.5, 1.0, 0.4, 0.1),), {}),
    ("sigma_int", calibrated, (Population(0.5, 0.6, 0.0, 0.9),), {}),
    ("icc", calibrated, (Population(0.5, 0.6, 0.999, 0.1),), {}),
    *(("finite", slope, columns, {}) for columns in (([1, INF], [1, 2], [0, 0]), ([1, 2], [1, NAN], [0, 0]))),
    ("entries", slope, ([1, 2], [1], [0, 0]), {}),
    *(("shape", slope, ([1, 2], [1, 2], *labels), {}) for labels in (([0],), ([0, 0], [1]))),
    *(("values", median_over_tasks, (v, [0, 0]), {"seed": 1}) for v in ([NAN, 1.0], [-INF, 1.0], [[1.0, 2.0]])),
    ("resamples", median_over_tasks, ([1, 2], [0, 0]), {"resamples": 9, "seed": 1}),
]


@pytest.mark.parametrize(("named", "function", "arguments", "options"), CASES)
def test_what_cannot_be_is_refused(
    named: str, function: Function, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=named):
        function(*arguments, **options)
