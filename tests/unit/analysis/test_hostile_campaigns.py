"""Nothing that an agent writes takes more than its own trial's metrics: every campaign gets its report.

`tests/bench/bench_hostile.py` does the same with 20 campaigns of 500 trials.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.hostile_trials import hostile_campaign
from tests.support.ledgers import Fate, plan, write
from trialfleet_analysis.report.make import make_report, write_report
from trialfleet_analysis.report.terminal import show
from trialfleet_ledger.records.measurements import Metrics


@pytest.mark.parametrize("few", [1, 3])
@pytest.mark.parametrize("count", [2**53, 2**53 - 1, 2**52 + 1, 2**50, 10**15])
def test_a_count_as_large_as_a_count_may_be_is_drawn(tmp_path: Path, count: int, few: int) -> None:
    turns = iter([count] * few)
    store = write(tmp_path, plan(reps=2), lambda _: Fate(metrics=Metrics(turns=next(turns, None))))
    report = make_report(store, "demo", now=0.0)
    write_report(report, tmp_path / "report")
    shown = [one for one in report.analysis.distributions if one.measure == "turns"]
    assert sum(sum(one.counts) for one in shown) == few


@pytest.mark.parametrize("seed", range(4))
def test_every_hostile_campaign_gets_its_report(tmp_path: Path, seed: int) -> None:
    left = hostile_campaign(tmp_path, f"unit-{seed}", reps=5)
    report = make_report(left.store, "demo", now=0.0)
    written = write_report(report, tmp_path / "report")
    show(report, Console(file=io.StringIO()))
    assert len(report.quarantined) <= left.broken
    assert report.progress.terminal == left.trials
    assert "<script>alert" not in written.html.read_text()
    told = {line.name for line in report.manifest if line.group == "Metrics left out"}
    assert left.odd
    assert {"tail_turns", "turns"} <= told
