"""What `status` projects and `plan --from-campaign` estimates, from measured trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.ledgers import MID_RUN, Fate, plan, write, write_plan
from trialfleet_controller.commands.plan import plan as plan_command
from trialfleet_controller.commands.status import status
from trialfleet_controller.cost_estimate import estimate
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial

USD = {
    ("alpha", "none"): 1.0,
    ("alpha", "intent_layer"): 2.0,
    ("beta", "none"): 3.0,
    ("beta", "intent_layer"): 6.0,
}


def dollars(trial: Trial) -> Fate | None:
    """Two complete blocks; of the third only the cheap trials have ended. The second costs a tenth more."""
    usd = USD[trial.task, trial.condition] * (1.1 if trial.block == 1 else 1)
    if trial.block > 2 or (trial.block == 2 and usd > 2):
        return None
    return Fate(metrics=Metrics(cost_usd=usd, turns=3, files_changed=1))


def run(command: Any, *argv: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(command, argv)
    return ran.exit_code, ran.stdout, ran.stderr


def test_status_projects_from_complete_blocks(tmp_path: Path) -> None:
    write(tmp_path, plan(), dollars)
    _, text, _ = run(status, "demo", "--store", str(tmp_path), "--json")
    shown = json.loads(text)
    assert shown["complete_blocks"] == 2
    assert shown["cost_usd"] == pytest.approx(12 * 2.1 + 3)
    assert shown["projected_cost_usd"] == pytest.approx(12 * 2.1 + 3 + (2 * 12 + 9) * 1.05)
    _, text, _ = run(status, "demo", "--store", str(tmp_path))
    assert "cost: $28.20 for measured trials, about $62.85 for all; lost attempts are not counted" in text


def test_before_the_first_block_nothing_is_projected(tmp_path: Path) -> None:
    write(tmp_path, plan(), lambda trial: dollars(trial) if trial.block == 0 and trial.task == "alpha" else None)
    shown = json.loads(run(status, "demo", "--store", str(tmp_path), "--json")[1])
    assert (shown["cost_usd"], shown["projected_cost_usd"]) == (3.0, None)


def test_trials_without_a_price_have_no_cost(tmp_path: Path) -> None:
    write(tmp_path, plan(), lambda trial: Fate())
    code, text, _ = run(status, "demo", "--store", str(tmp_path))
    assert (code, "cost:" in text) == (0, False)
    shown = json.loads(run(status, "demo", "--store", str(tmp_path), "--json")[1])
    assert (shown["cost_usd"], shown["projected_cost_usd"]) == (None, None)


def test_a_plan_is_priced_from_another_campaign(tmp_path: Path) -> None:
    write(tmp_path, plan(name="earlier"), dollars)
    write_plan(tmp_path, plan(("alpha", "gamma"), ("none", "intent_layer"), name="next", reps=10))
    argv = ("next", "--store", str(tmp_path), "--from-campaign", "earlier")
    code, text, _ = run(plan_command, *argv)
    assert code == 0
    # alpha at its own means (1.0333…, 2.0666…), gamma at those of its conditions
    cells = {"none": (1.1 + 1 + 1) / 3, "intent_layer": (2.2 + 2 + 2) / 3}
    other = {"none": (cells["none"] + 3.15) / 2, "intent_layer": (cells["intent_layer"] + 6.3) / 2}
    expected = 10 * (sum(cells.values()) + sum(other.values()))
    assert f"about ${expected:,.2f}, from 10 measured trials, 2 of 4 cells measured themselves" in text
    shown = json.loads(run(plan_command, *argv, "--json")[1])
    assert shown["cost"] == {"usd": pytest.approx(expected), "trials": 10, "cells": 2}


def test_a_campaign_without_costs_prices_nothing(tmp_path: Path) -> None:
    write(tmp_path, plan(name="earlier"), lambda trial: Fate(verdict=None, losses=(MID_RUN,)))
    write_plan(tmp_path, plan(name="next"))
    ran = CliRunner().invoke(plan_command, ("next", "--store", str(tmp_path), "--from-campaign", "earlier"))
    assert "no trial of earlier has a known cost" in str(ran.exception)
    ran = CliRunner().invoke(plan_command, ("next", "--store", str(tmp_path), "--from-campaign", "nowhere"))
    assert "nowhere" in str(ran.exception)


def test_nothing_measured_is_no_estimate() -> None:
    assert estimate([("a", "x")], PlannedReps(5), {}) is None
    assert estimate([("a", "x")], PlannedReps(5), {("a", "x"): []}) is None
