"""R as an oracle: rpact's bounds of looks, metafor's pooled campaigns, clubSandwich's robust variances. One start
of R for all of it."""

from __future__ import annotations

import json
import subprocess
from typing import Any, cast

import numpy as np
import pytest

from trialfleet_statistics.comparisons import mean_over_repositories
from trialfleet_statistics.pooling import random_effects
from trialfleet_statistics.sequential import (
    SequentialDesign,
    Spending,
    crossing_probabilities,
    normal_bounds,
)

pytestmark = pytest.mark.needs("Rscript")

NAMES: dict[Spending, str] = {"power_2": "asKD", "obrien_fleming": "asOF"}
DESIGNS: list[tuple[Spending, tuple[int, ...], float]] = [
    (spending, looks, alpha)
    for spending in NAMES
    for looks, alpha in [
        ((10, 20), 0.05),
        ((5, 10, 15, 20, 25), 0.05),
        ((5, 10, 15, 20, 25), 0.01),
        ((3, 7, 12), 0.05),  # of unequal distances
        (tuple(range(1, 7)), 0.1),
    ]
]
CAMPAIGNS: list[tuple[list[float], list[float]]] = [
    ([0.12, 0.05, 0.18, 0.02], [0.0025, 0.0016, 0.0049, 0.0009]),
    ([0.3, -0.2, 0.1], [0.01, 0.02, 0.005]),
    ([0.1, 0.11, 0.09, 0.12, 0.08], [0.004, 0.004, 0.003, 0.006, 0.002]),  # nothing between campaigns
    ([-0.4, 0.5, 0.1, 0.0, 0.2, -0.1, 0.3], [0.001, 0.002, 0.003, 0.004, 0.003, 0.002, 0.001]),
]
REPOSITORIES: list[tuple[list[float], list[int]]] = [
    ([0.2, 0.4, 0.1, 0.0, -0.1, 0.2, 0.3, 0.2, 0.5, 0.1], [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
    ([0.2, 0.4, 0.1, 0.0, -0.1, 0.2, 0.3, 0.2, 0.5, 0.1, 0.05], [1, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7]),
    ([-0.2, 0.0, 0.1, 0.0, -0.1, 0.2, 0.1, 0.2], [1, 2, 3, 4, 5, 6, 7, 8]),
]
DRIFT = 2.8016

RPACT = """
bounds <- function(times, alpha, name) {
  kept <- list(kMax = length(times), alpha = alpha / 2, sided = 1, informationRates = times, typeOfDesign = name)
  if (name == "asKD") kept$gammaA <- 2
  design <- do.call(rpact::getDesignGroupSequential, kept)
  reached <- rpact::getPowerAndAverageSampleNumber(design, theta = %s, nMax = 1)
  list(bounds = c(design$criticalValues), rejects = c(reached$rejectPerStage))
}
"""
METAFOR = """
pooled <- function(y, v) {
  control <- list(tol = 1e-12, threshold = 1e-12, maxiter = 1000)
  m <- metafor::rma(yi = y, vi = v, method = "PM", test = "knha", control = control)
  f <- metafor::rma(yi = y, vi = v, method = "FE")
  list(tau2 = m$tau2, random = c(m$b, m$se, m$ci.lb, m$ci.ub, m$pval), fixed = c(f$b, f$ci.lb, f$ci.ub), q = m$QE)
}
"""
CLUB_SANDWICH = """
robust <- function(y, g) {
  m <- lm(y ~ 1)
  t <- clubSandwich::conf_int(m, vcov = "CR2", cluster = g)
  p <- clubSandwich::coef_test(m, vcov = "CR2", cluster = g)
  list(found = c(t$beta, t$SE, t$df, t$CI_L, t$CI_U, p$p_Satt))
}
"""
# R itself cannot write JSON.
JSON = """
json <- function(x) {
  if (is.list(x)) paste0("{", paste0('"', names(x), '":', sapply(x, json), collapse = ","), "}")
  else paste0("[", paste(format(c(x), digits = 15), collapse = ","), "]")
}
"""


@pytest.fixture(scope="module")
def told() -> list[dict[str, list[float]]]:
    """Of each design, of each set of campaigns, of each set of repositories."""
    calls = [
        f'bounds({_vector(np.array(looks) / looks[-1])}, {alpha}, "{NAMES[spending]}")'
        for spending, looks, alpha in DESIGNS
    ]
    calls += [f"pooled({_vector(y)}, {_vector(v)})" for y, v in CAMPAIGNS]
    calls += [f"robust({_vector(y)}, {_vector(g)})" for y, g in REPOSITORIES]
    script = (
        RPACT % DRIFT + METAFOR + CLUB_SANDWICH + JSON + "\n".join(f'cat(json({call}), "\\n")' for call in calls)
    )
    said = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return [cast("dict[str, list[float]]", json.loads(line)) for line in said.stdout.splitlines()]


def _vector(values: Any) -> str:
    return f"c({', '.join(repr(float(value)) for value in values)})"


@pytest.mark.parametrize("number", range(len(DESIGNS)))
def test_rpact_has_the_same_bounds(told: list[dict[str, list[float]]], number: int) -> None:
    spending, looks, alpha = DESIGNS[number]
    design = SequentialDesign(looks, spending, alpha)
    found = normal_bounds(design)
    # rpact cuts bounds off where next to nothing is spent.
    assert np.minimum(found, 7) == pytest.approx(np.minimum(told[number]["bounds"], 7), abs=2e-5)


@pytest.mark.parametrize("number", range(len(DESIGNS)))
def test_rpact_stops_as_often_at_each_look(told: list[dict[str, list[float]]], number: int) -> None:
    spending, looks, alpha = DESIGNS[number]
    design = SequentialDesign(looks, spending, alpha)
    found = crossing_probabilities(normal_bounds(design), design.times(), DRIFT)
    assert found == pytest.approx(told[number]["rejects"], abs=2e-5)


@pytest.mark.parametrize("number", range(len(CAMPAIGNS)))
def test_metafor_pools_the_same(told: list[dict[str, list[float]]], number: int) -> None:
    """Paule and Mandel's variance, Hartung and Knapp's limits, the inverse-variance mean, Cochran's Q."""
    r, found = told[len(DESIGNS) + number], random_effects(*CAMPAIGNS[number])
    mean, fixed = found.mean, found.fixed
    assert found.tau2 == pytest.approx(r["tau2"][0], abs=1e-6)
    assert [mean.estimate, found.se, mean.low, mean.high, found.test.p_value] == pytest.approx(
        r["random"], abs=1e-6
    )
    assert [fixed.estimate, fixed.low, fixed.high] == pytest.approx(r["fixed"], abs=1e-9)
    assert found.homogeneity.statistic == pytest.approx(r["q"][0], rel=1e-9)


@pytest.mark.parametrize("number", range(len(REPOSITORIES)))
def test_club_sandwich_has_the_same_variance(told: list[dict[str, list[float]]], number: int) -> None:
    """Standard error, Satterthwaite's degrees of freedom, limits and p of a mean over repositories."""
    values, names = REPOSITORIES[number]
    found = mean_over_repositories(values, names, claim="other_repositories")
    interval, r = found.interval, told[len(DESIGNS) + len(CAMPAIGNS) + number]["found"]
    assert found.df == pytest.approx(r[2], rel=1e-9)
    assert interval is not None
    assert [interval.estimate, interval.low, interval.high] == pytest.approx([r[0], r[3], r[4]], rel=1e-9)
    if found.p_value is not None:
        assert found.p_value == pytest.approx(r[5], rel=1e-9)
    assert (found.p_value is None) == (r[2] < 4)
