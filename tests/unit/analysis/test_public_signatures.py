"""The functions that others import keep their names, their arguments' order and their defaults."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

FOUR = "passes_a, trials_a, passes_b, trials_b"
LEVEL = "level=0.95"
SIDES = "alternative='two-sided'"
SIX = "passes_a, valid_a, lost_a, passes_b, valid_b, lost_b"
RESAMPLED = f"resamples=10000, seed, {LEVEL}"
PUBLIC: dict[str, dict[str, str]] = {
    "intervals": {
        "wilson": f"passes, trials, *, {LEVEL}",
        "clopper_pearson": f"passes, trials, *, {LEVEL}",
        "jeffreys": f"passes, trials, *, {LEVEL}",
        "newcombe": f"{FOUR}, *, {LEVEL}",
        "miettinen_nurminen": f"{FOUR}, *, {LEVEL}",
        "stratified_miettinen_nurminen": f"{FOUR}, *, weights='equal', {LEVEL}",
        "pooled_fixed": f"passes, trials, *, {LEVEL}",
        "pooled_random": f"passes, trials, *, {LEVEL}",
        "effective_sample_wilson": f"passes, trials, *, {LEVEL}",
    },
    "comparisons": {
        "fisher": f"{FOUR}, *, {SIDES}",
        "boschloo": f"{FOUR}, *, convention='central', {SIDES}",
        "barnard": f"{FOUR}, *, pooled=True, {SIDES}",
        "mcnemar": f"only_a, only_b, *, midp=True, {SIDES}",
        "stratified_exact": f"{FOUR}, *, midp=True, convention='central', {SIDES}",
        "conditional_odds_ratio": f"{FOUR}, *, midp=True, {LEVEL}",
        "cochran_mantel_haenszel": f"{FOUR}, *, continuity=False",
        "mantel_haenszel_odds_ratio": f"{FOUR}, *, {LEVEL}",
        "breslow_day": f"{FOUR}, *, tarone=False",
        "paired_t_on_tasks": f"rates_a, rates_b, *, null=0.0, {SIDES}, {LEVEL}",
        "equivalence": f"{FOUR}, *, margin, weights='equal', alpha=0.05",
        "heterogeneity": f"{FOUR}, *, {LEVEL}",
        "variance_components": f"passes, trials, *, {LEVEL}",
        "linear_contrast": f"passes, trials, coefficients, *, estimand, {LEVEL}",
    },
    "continuous": {
        "signed_rank": f"differences, *, zeros='pratt', {SIDES}",
        "hodges_lehmann": f"differences, *, {LEVEL}",
        "stratified_permutation": f"values, arm, stratum, *, statistic='rank', resamples=100000, seed, {SIDES}",
        "cliffs_delta": f"values, arm, stratum=None, *, {RESAMPLED}",
        "hierarchical_bootstrap": f"values, arm, task, *, estimand, statistic='mean', {RESAMPLED}",
        "restricted_mean_difference": f"time, event, arm, stratum, *, limit, {LEVEL}",
        "cumulative_incidence": f"time, cause, *, at, {LEVEL}",
        "cost_per_pass": f"cost, passed, arm, task, *, estimand, {RESAMPLED}",
    },
    "multiplicity": {
        "holm": "p_values, *, attainable=None, alpha=0.05",
        "benjamini_hochberg": "p_values, *, attainable=None, alpha=0.05",
    },
    "missing": {
        "complete_case": "passes, valid, lost",
        "lost_as_failed": "passes, valid, lost",
        "bounds": SIX,
        "robustness": f"{SIX}, *, alpha=0.05",
        "loss_by_condition": "lost, attempts",
    },
    "repeats": {
        "pass_at_k": f"passes, trials, k, *, {LEVEL}",
        "pass_hat_k": f"passes, trials, k, *, {LEVEL}",
    },
    "power": {
        "fisher_power": f"p_a, p_b, n_a, n_b=None, *, alpha=0.05, {SIDES}",
        "boschloo_power": f"p_a, p_b, n_a, n_b=None, *, convention='central', alpha=0.05, {SIDES}",
        "required_reps": "p_a, p_b, *, power=0.8, alpha=0.05, test='fisher', n_max=500",
        "minimum_detectable_effect": "n, *, p_b=None, power=0.8, alpha=0.05, test='fisher'",
        "stratified_power": "rates_a, rates_b, reps, *, sigma_int=0.0, analysis='stratified_exact', "
        "simulations=2000, seed, alpha=0.05",
        "reps_versus_tasks": "budget, *, cost_task, cost_rep, mean, icc, sigma_int, alpha=0.05",
    },
    "drift": {
        "order_effect": "trials",
        "balance": "trials",
        "loss_drift": "trials",
        "autocorrelation": "trials",
    },
}


@pytest.mark.parametrize(("module", "name"), [(m, name) for m, names in PUBLIC.items() for name in names])
def test_signature(module: str, name: str) -> None:
    """Arguments beyond these may come, by keyword alone and with a default."""
    promised = PUBLIC[module][name]
    function = getattr(importlib.import_module(f"trialfleet_statistics.{module}"), name)
    assert inspect.getdoc(function)
    named = {part.split("=")[0] for part in promised.split(", ")}
    signature = inspect.signature(function)
    kept = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name in named
        or parameter.kind is not parameter.KEYWORD_ONLY
        or parameter.default is parameter.empty
    ]
    assert str(inspect.Signature(kept)) == f"({promised})"


def test_they_need_neither_ray_nor_kubernetes_nor_a_store() -> None:
    wanted = ", ".join(f"trialfleet_statistics.{module}" for module in PUBLIC)
    far = ("ray", "kubernetes", "boto3", "trialfleet_controller")
    script = f"import sys, {wanted}; print([name for name in {far} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"
