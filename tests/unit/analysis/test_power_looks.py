"""What `trialfleet power` says of a campaign that declares looks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.text import Text

from trialfleet_analysis.power_cli.command import power
from trialfleet_analysis.power_cli.looks import Stopping, control_rates, looks_plan, shifted
from trialfleet_analysis.power_cli.stops_text import looks
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.looks import StopRule

PRIMARY = Primary(treatment="a", control="b", stop=StopRule())


def test_looks_save_trials_and_cost_some_power() -> None:
    found = looks_plan(Stopping(PRIMARY, control_rates(7, 0.5, 0.45), 25, 0.11, 3.0, simulations=300, seed=3))
    nothing, half, whole, more = found.scenarios
    assert found.looks == (5, 10, 15, 20, 25)
    assert [round(one.effect, 3) for one in found.scenarios] == [0, 0.055, 0.11, 0.165]
    assert nothing.power < 0.06
    assert nothing.futile > 0.8
    assert nothing.share < 0.6
    assert half.power < whole.power < more.power
    assert whole.fixed_power - 0.12 < whole.power <= whole.fixed_power
    assert whole.trials == pytest.approx(whole.share * 350)
    assert whole.cost == pytest.approx(whole.share * 175 * 3)
    assert found.inflation is not None
    assert 1 < found.inflation < 1.5


def test_leaving_out_saturated_tasks_saves_more_and_says_the_power_that_it_loses() -> None:
    dropping = PRIMARY.model_copy(update={"stop": StopRule(drop_saturated=5)})
    found = looks_plan(Stopping(dropping, control_rates(12, 0.5, 1 / 2.2), 25, 0.084, None, 300, seed=3))
    whole = looks_plan(Stopping(PRIMARY, control_rates(12, 0.5, 1 / 2.2), 25, 0.084, None, 300, seed=3))
    assert (found.drop_after, whole.drop_after) == (5, 0)
    for left, kept in zip(found.scenarios, whole.scenarios, strict=True):
        assert left.whole_power == kept.power
        assert kept.whole_power is None
        assert left.share < kept.share - 0.02
        assert left.power <= kept.power + 0.01
    assert found.scenarios[2].power < whole.scenarios[2].power
    shown = "\n".join(str(one) for one in looks(found) if isinstance(one, Text))
    assert "tasks that are saturated after block 5 are left out: that loses" in shown


def test_control_rates_and_their_shift() -> None:
    rates = control_rates(20, 0.3, 0.4)
    assert rates.mean() == pytest.approx(0.3, abs=0.01)
    assert shifted(rates, 0.1).mean() == pytest.approx(rates.mean() + 0.1)
    assert control_rates(3, 0.3, 0.0).tolist() == [0.3] * 3
    with pytest.raises(ValueError, match="no treatment can have"):
        shifted(np.array([0.9, 0.95]), 0.2)


def test_the_command_shows_them(tmp_path: Path) -> None:
    tasks = Path(__file__).parents[3] / "tasks/quickstart/tasks"
    file = tmp_path / "campaign.yaml"
    file.write_text(
        f"campaign: looks\nseed: 1\ntasks: ['{tasks}/*.yaml']\nconditions: [none, flat_llm]\nreps: 10\n"
        "agent: {kind: search}\nstore: store\n"
        "primary: {treatment: flat_llm, control: none, effect: 0.2, stop: {looks: 2}}\n"
    )
    shown = CliRunner().invoke(power, [str(file), "--simulations", "100"], catch_exceptions=False)
    assert "with the declared looks, after blocks 5, 10 (power_2), on these tasks" in shown.output
    assert "trials on average" in shown.output
    document = json.loads(
        CliRunner().invoke(power, [str(file), "--simulations", "100", "--json"], catch_exceptions=False).output
    )
    assert document["looks"]["looks"] == [5, 10]
    assert len(document["looks"]["scenarios"]) == 4
