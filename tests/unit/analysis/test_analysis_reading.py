"""From a campaign's tables to the columns that are analysed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.ledgers import MID_RUN, NOW, Fate, plan, rows_of, trials, write
from trialfleet_analysis.analysis_plan.reading import columns_of, scheme_of
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.report.warnings import cautions
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_designs.comparison.columns import Columns, Scheme, counted
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Stop, Verdict


def read(campaign: CampaignTables, compared: tuple[str, ...]) -> tuple[Scheme, Columns]:
    found = scheme_of(campaign.frame, campaign.tasks, compared, monitored=campaign.interim)
    return found, columns_of(campaign.trials, found)


def opened(root: Path, frozen: Plan, fate: Fate | None = None) -> CampaignTables:
    return open_campaign(write(root, frozen, lambda t: fate or Fate()), frozen.campaign)


def test_each_flag_means_what_it_says(tmp_path: Path) -> None:
    """Rep 0: own memory. 1: its hook did not reach the model. 2: a time-out. 3: first run lost. 4: abandoned."""

    def fate(trial: Trial) -> Fate:
        return {
            0: Fate(verdict=Verdict.EXHAUSTED, stop=Stop.MEMORY),
            1: Fate(delivery=Delivery(reached_model={"files": True, "hook": False, "inline": False})),
            2: Fate(verdict=Verdict.TIMED_OUT, stop=Stop.TIMEOUT),
            3: Fate(losses=(MID_RUN,)),
            4: Fate(verdict=None, losses=(MID_RUN,) * 3),
        }[trial.rep]

    frozen = plan(("a", "b"))
    _, columns = read(open_campaign(write(tmp_path, frozen, fate), "demo"), ("a", "b"))
    per_rep = {name: [set(getattr(columns, name)[columns.block == rep].tolist()) for rep in range(5)] for name in (
        "valid", "passed", "own_memory", "cut_off", "first_missing")}  # fmt: skip
    assert per_rep["valid"] == [{True}] * 4 + [{False}]
    assert per_rep["passed"] == [{False}, {True}, {False}, {True}, {False}]
    assert per_rep["own_memory"] == [{True}] + [{False}] * 4
    assert per_rep["cut_off"] == [{False}, {False}, {True}, {False}, {False}]
    assert per_rep["first_missing"] == [{False}] * 3 + [{True}] * 2
    declared_hook = columns.condition == 1  # intent_layer; none declares nothing
    assert columns.undelivered.tolist() == ((columns.block == 1) & declared_hook).tolist()
    assert np.all(columns.started_s[columns.valid] == NOW)


def test_only_compared_tasks_in_complete_blocks_are_read(tmp_path: Path) -> None:
    frozen = plan(("a", "b", "c"))
    late = {t for t in trials(frozen) if t.block == 3 and t.position == 2}
    store = write(tmp_path, frozen, lambda t: None if t in late else Fate())
    scheme, columns = read(open_campaign(store, "demo"), ("a", "c"))
    assert (scheme.tasks, scheme.monitored) == (("a", "c"), True)
    assert counted(columns, scheme).valid.tolist() == [[3, 3], [3, 3]]
    assert columns.block.max() == 2


def test_metrics_that_nobody_has_are_not_there(tmp_path: Path) -> None:
    metrics = Metrics(turns=4, lines_added=2, lines_removed=3, target_hit=True)
    _, columns = read(opened(tmp_path, plan(("a",), reps=2), Fate(metrics=metrics)), ("a",))
    assert set(columns.measures) == {"turns", "lines_changed", "target_hit"}
    assert set(columns.measures["lines_changed"]) == {5.0}


def test_what_the_plan_froze_is_the_scheme(tmp_path: Path) -> None:
    frozen = plan(
        ("a", "b"), uncovered=("b",), primary=Primary(treatment="intent_layer", control="none", margin=0.1)
    )
    hard = frozen.tasks[0].model_copy(update={"category": "simple_fix", "difficulty": "hard"})
    frozen = frozen.model_copy(update={"tasks": (hard, frozen.tasks[1])})
    scheme, _ = read(opened(tmp_path, frozen), ("a", "b"))
    assert scheme.factors == {
        "prompt source": ("failing_test", "failing_test"),
        "category": ("simple_fix", None),
        "difficulty": ("hard", None),
        "coverage of the anchor": ("covered", "not covered"),
    }
    assert (scheme.declared.margin, scheme.limit_s, scheme.seed) == (0.1, 60.0, 20261121)


def test_an_edited_plan_is_told_what_is_wrong(tmp_path: Path) -> None:
    frozen = plan(("a",), primary=Primary(treatment="nobody", control="none"))
    with pytest.raises(OperatorError, match="'nobody' is not among the conditions") as caught:
        read(opened(tmp_path, frozen), ("a",))
    assert caught.value.where == "demo/campaign.json"


def test_files_that_were_cut_in_their_bundles_are_named(tmp_path: Path) -> None:
    frozen = plan(("a",), reps=1)
    store = write(tmp_path, frozen, lambda _: Fate(left_out={"patch.diff": 5}))
    said = [caution for caution in cautions(make_report(store, "demo", now=NOW)) if "patch.diff" in caution]
    assert len(said) == 1
    assert said[0].startswith(
        "patch.diff was too long and is cut in its bundle (2 trials): `trialfleet show` says"
    )


@pytest.mark.parametrize("value", [-1, 2**70])
@pytest.mark.parametrize("metric", ["cost_usd", "agent_s", "exploration_turns", "tests_core_s"])
def test_a_metric_that_cannot_be_is_left_out_of_its_trial_and_named(
    tmp_path: Path, metric: str, value: int
) -> None:
    frozen = plan(("a", "b"), reps=2)
    odd = trials(frozen)[3].id

    def fate(trial: Trial) -> Fate:
        return Fate(metrics=Metrics.model_construct(**{metric: value if trial.id == odd else 1}))

    store = write(tmp_path, frozen, fate)
    report = make_report(store, "demo", now=NOW)
    told = next(line for line in report.manifest if line.group == "Metrics left out")
    assert told.name == metric
    assert told.value == f"{odd}: {-1 if value == -1 else 'not a number that can be counted'}"
    assert any(f"Metric {metric} is left out" in caution for caution in cautions(report))
    kept = open_campaign(store, "demo")
    assert kept.source == "tables"
    rows = {row.trial: row for row in rows_of(kept.trials)}
    assert [row.left_out != [] for row in rows.values()] == [trial == odd for trial in rows]
    assert all(vars(row)[metric] == (None if trial == odd else 1) for trial, row in rows.items())
