"""No sentence that its own data contradict, in random campaigns. `python -m tests.bench sentences` draws more."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.random_campaigns import draw_campaign
from tests.support.sentence_checks import contradictions
from trialfleet_analysis import rates
from trialfleet_analysis.analysis_plan import analyse
from trialfleet_analysis.analysis_plan.measures import MeasureContrast
from trialfleet_analysis.analysis_plan.power_summary import PowerSummary, power_summary
from trialfleet_designs.comparison.columns import CellCounts, Scheme
from trialfleet_designs.comparison.correction import Corrected
from trialfleet_designs.metric import effort
from trialfleet_statistics.intervals import PooledInterval, pooled_random

EACH = 45


@cache
def _one_model() -> PooledInterval:
    return pooled_random([3, 5], [9, 9])


def _no_power(_: object, fixed: Scheme, counts: CellCounts) -> PowerSummary:
    return power_summary(None, fixed, counts)


def _no_metrics(*_: object) -> Corrected[MeasureContrast]:
    return Corrected[MeasureContrast]((), ())


def _nothing(*_: object) -> tuple[()]:
    return ()


@pytest.fixture(autouse=True)
def _without_what_no_sentence_is_checked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of other tasks, power and metrics take most of the time. The benchmark makes them all."""

    def one_model(*_: object) -> PooledInterval:
        return _one_model()

    monkeypatch.setattr(rates, "pooled_random", one_model)
    monkeypatch.setattr(analyse, "power_summary", _no_power)
    monkeypatch.setattr(analyse, "measured", _no_metrics)
    monkeypatch.setattr(analyse, "cost_ratios", _nothing)
    monkeypatch.setattr(analyse, "drift_checks", _nothing)
    for paths in ("AT_LOOKS", "AT_A_FIXED_END", "UNDER_LOSS"):
        monkeypatch.setattr(effort, paths, 1_000)


@pytest.mark.parametrize("part", range(10))
def test_no_sentence_contradicts_its_own_data(part: int) -> None:
    found = [
        (seed, one)
        for seed in range(part * EACH, (part + 1) * EACH)
        for one in contradictions(draw_campaign(seed, largest=3))
    ]
    assert found == []
