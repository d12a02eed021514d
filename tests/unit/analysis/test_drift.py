"""Drift that was planted is found, an even campaign raises no alarm, and each test agrees with its source."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.support import ledgers as made
from tests.unit.analysis.exact_tables import stratified_chi_square
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_statistics.drift import (
    DriftTrial,
    as_trials,
    autocorrelation,
    balance,
    loss_drift,
    order_effect,
)

CONDITIONS = ("none", "flat_llm", "intent_layer")


def campaign(
    seed: int, *, tasks: int = 5, reps: int = 8, drift: float = 0.0, storm: float = 0.0
) -> list[DriftTrial]:
    """Complete blocks in random order. `drift`: what the pass rate gains from first block to last; `storm`: the
    loss rate of the second half."""
    rng = np.random.default_rng(seed)
    trials: list[DriftTrial] = []
    for block in range(reps):
        cells = [(t, condition) for t in range(tasks) for condition in CONDITIONS]
        for position, at in enumerate(rng.permutation(len(cells))):
            task, condition = cells[at]
            rate = 0.2 + 0.1 * task + drift * (block / (reps - 1) - 0.5)
            passed = bool(rng.random() < rate)
            lost = bool(rng.random() < (storm if block >= reps / 2 else 0.02))
            start = None if lost else 60.0 * (block * len(cells) + position) + float(rng.uniform(0, 300))
            trials.append(
                DriftTrial(f"task {task}", condition, block, position, start, None if lost else passed, lost)
            )
    return trials


def p_values(**planted: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of order_effect, loss_drift, balance and autocorrelation, in 60 campaigns: shape (60, 4)."""
    rows: list[list[float]] = []
    for seed in range(60):
        trials = campaign(seed, **planted)
        tests = order_effect(trials), loss_drift(trials), balance(trials), autocorrelation(trials, resamples=199)
        rows.append([1.0 if test.p_value is None else test.p_value for test in tests])
    return np.array(rows)


def test_an_even_campaign_raises_no_alarm() -> None:
    p = p_values()
    assert np.all((p > 0) & (p <= 1))
    assert np.all(np.sum(p <= 0.05, axis=0) <= 9)  # P(more of 60 | .05) = .001
    for of in (p[:, 0], p[:, 3]):
        assert 0.35 < of.mean() < 0.65


def test_planted_losses_are_found() -> None:
    found = [loss_drift(campaign(seed, storm=0.25)) for seed in range(40)]
    assert sum((test.p_value or 1) <= 0.05 for test in found) >= 36
    assert np.mean([test.difference for test in found if test.difference is not None]) == pytest.approx(
        0.23, abs=0.05
    )


def test_order_effect_is_the_stratified_chi_square() -> None:
    trials = [trial for trial in campaign(2, drift=0.3) if trial.passed is not None]
    middle = np.sort([t.started_s for t in trials if t.started_s is not None])[len(trials) // 2]
    tables = []
    for cell in sorted({(t.task, t.condition) for t in trials}):
        own = [t for t in trials if (t.task, t.condition) == cell]
        late = [bool(t.passed) for t in own if (t.started_s or 0) >= middle]
        early = [bool(t.passed) for t in own if (t.started_s or 0) < middle]
        tables.append((sum(late), len(late), sum(early), len(early)))
    expected = stratified_chi_square(*zip(*tables, strict=True))
    found = order_effect(trials)
    assert found.statistic == pytest.approx(expected)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 1))


def test_order_effect_without_starts_follows_the_plan() -> None:
    trials = [trial for trial in campaign(3, drift=0.6) if trial.passed is not None]
    planned = [replace(trial, started_s=None) for trial in trials]
    in_plan = [replace(trial, started_s=float(1000 * trial.block + trial.position)) for trial in trials]
    assert order_effect(planned) == order_effect(in_plan)
    assert order_effect(list(reversed(trials))) == order_effect(trials)


def test_balance_is_kruskal_wallis() -> None:
    rng = np.random.default_rng(7)
    starts = {name: rng.integers(0, 40, size).astype(float) for name, size in zip("abc", (9, 14, 11), strict=True)}
    trials = [
        DriftTrial("t", name, i, 0, float(s), True, False) for name, of in starts.items() for i, s in enumerate(of)
    ]
    late = [replace(trial, started_s=1.7e9 + (trial.started_s or 0)) for trial in trials]
    expected = stats.kruskal(*starts.values())
    for given in (trials, late):
        found = balance(given)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue)
        assert (found.df, found.n_informative, found.contiguous) == (2, 34, ())
    first = min(of.min() for of in starts.values())
    assert balance(late).medians == tuple((name, float(np.median(of) - first)) for name, of in starts.items())


def test_a_condition_that_ran_alone_is_named() -> None:
    shifted = [
        replace(trial, started_s=trial.started_s + 1e6)
        for trial in campaign(4)
        if trial.started_s is not None and trial.condition == "none"
    ]
    rest = [trial for trial in campaign(4) if trial.condition != "none"]
    found = balance([*shifted, *rest])
    assert found.contiguous == ("none",)
    assert found.reason == "ran alone in one stretch of time: none"
    assert (found.p_value or 1) < 1e-6
    # the same hours as another condition's, in between: the test may pass, the name does not
    middle = [DriftTrial("t", "a", b, 0, float(b), True, False) for b in (0, 1, 2, 12, 13, 14)]
    middle += [DriftTrial("t", "b", b, 0, float(b), True, False) for b in (5, 6, 7, 8, 9)]
    within = balance(middle)
    assert within.contiguous == ("b",)
    assert (within.p_value or 0) > 0.5
    assert balance(campaign(4)).contiguous == ()


def test_autocorrelation_against_all_orders() -> None:
    outcome = [True, True, True, False, False, True, False]
    trials = [DriftTrial("t", "none", block, 0, None, passed, False) for block, passed in enumerate(outcome)]
    centred = np.array(outcome, dtype=float) - np.mean(outcome)
    null = np.array([np.dot(order[1:], order[:-1]) for order in map(np.array, permutations(centred))])
    observed, squares = np.dot(centred[1:], centred[:-1]), np.sum(centred**2)
    assert null.mean() == pytest.approx(-squares / 7)
    expected = np.mean(np.abs(null - null.mean()) >= abs(observed - null.mean()) - 1e-9)
    found = autocorrelation(trials, resamples=20_000, seed=3)
    assert found.statistic == pytest.approx(observed / squares)
    assert found.p_value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 20_000))
    assert found == autocorrelation(list(reversed(trials)), resamples=20_000, seed=3)


def test_undefined() -> None:
    assert order_effect([]).p_value is None
    assert order_effect([]).reason == "nothing was measured"
    assert (loss_drift([]).p_value, autocorrelation([]).p_value, balance([]).p_value) == (None, None, None)
    one = [DriftTrial("t", "none", b, 0, float(b), True, False) for b in range(4)]
    assert balance(one).reason == "fewer than two conditions started"
    assert (order_effect(one).p_value, order_effect(one).difference) == (None, 0.0)  # all pass
    assert order_effect(one).reason is not None
    assert loss_drift(one).p_value is None  # nothing lost
    even = autocorrelation(one)
    assert (even.p_value, even.reason) == (1.0, "no cell has three reps, passes and failures")
    together = [DriftTrial("t", name, 0, 0, 5.0, True, False) for name in "ab"]
    assert balance(together).reason == "all trials started at once"
    unstarted = [replace(trial, started_s=None) for trial in one]
    assert (balance(unstarted).n_informative, balance(unstarted).reason) == (
        0,
        "fewer than two conditions started",
    )
    lost = [replace(trial, passed=None, lost=True) for trial in one]
    assert order_effect(lost).n_informative == 0


def test_the_trials_table_gives_what_the_report_says(tmp_path: Path) -> None:
    store = made.write(tmp_path, made.lifelike_plan(reps=6), made.lifelike(3))
    name = "preamble-vs-pull"
    checks = {check.name: check.test for check in make_report(store, name, now=made.NOW).analysis.drift}
    table = open_campaign(store, name).trials
    for test, said in (
        (order_effect(table), checks["order_effect"]),
        (balance(table), checks["balance"]),
        (loss_drift(table), checks["loss_drift"]),
    ):
        assert (test.p_value, test.statistic, test.reason) == (said.p_value, said.statistic, said.reason)
    assert checks["loss_drift"].p_value is not None
    assert autocorrelation(table, resamples=199).statistic == checks["autocorrelation"].statistic


def test_only_rows_that_rates_are_made_of_are_taken(tmp_path: Path) -> None:
    store = made.write(tmp_path, made.lifelike_plan(reps=6), made.lifelike(3))
    campaign = open_campaign(store, "preamble-vs-pull")
    uses = {task.task: task.use for task in campaign.tasks}
    every = made.rows_of(campaign.trials)
    rows = [row for row in every if row.in_blocks and uses[row.task] == "primary"]
    assert 0 < len(rows) < len(every)
    wanted = [
        DriftTrial(
            r.task,
            r.condition,
            r.block,
            r.position,
            r.started_at and r.started_at.timestamp(),
            r.passed,
            r.first_run_missing,
        )
        for r in rows
    ]
    assert as_trials(campaign.trials) == wanted
    assert as_trials(wanted) is wanted
