"""What `trialfleet power` says of a campaign that declares looks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.text import Text

from tests.support.task_rates import control_rates
from trialfleet_analysis.commands.power import power
from trialfleet_analysis.power_cli.stops_text import looks
from trialfleet_designs.monitoring import design_of, futility_of, look_result
from trialfleet_designs.power.stops import Stopping, looks_plan
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import Decision, LookResult, Reestimation, StageCounts, StopRule
from trialfleet_statistics.estimates import Floats, Integers
from trialfleet_statistics.power import KnownTasks, shifted
from trialfleet_statistics.sequential import Revision, SequentialDesign
from trialfleet_statistics.sequential.revision import revised
from trialfleet_statistics.sequential.simulated_looks import simulated_stops

PRIMARY = Primary(treatment="a", control="b", stop=StopRule())
SEVEN, TWELVE = KnownTasks(control_rates(7, 0.5, 0.45)), KnownTasks(control_rates(12, 0.5, 1 / 2.2))


def test_looks_save_trials_and_cost_some_power() -> None:
    found = looks_plan(Stopping(PRIMARY, SEVEN, 25, 0.11, 3.0, simulations=300, seed=3))
    nothing, half, whole, more = found.scenarios
    assert found.looks == (5, 10, 15, 20, 25)
    assert [round(one.effect, 3) for one in found.scenarios] == [0, 0.055, 0.11, 0.165]
    assert nothing.power < 0.06
    assert nothing.futile > 0.7
    assert nothing.share < 0.78
    assert half.power < whole.power < more.power
    assert whole.fixed_power - 0.12 < whole.power <= whole.fixed_power
    assert whole.trials == pytest.approx(whole.share * 350)
    assert whole.cost == pytest.approx(whole.share * 175 * 3)
    assert found.inflation is not None
    assert 1 < found.inflation < 1.5


def test_leaving_out_saturated_tasks_saves_more_and_says_the_power_that_it_loses() -> None:
    dropping = PRIMARY.model_copy(update={"stop": StopRule(drop_saturated=5)})
    found = looks_plan(Stopping(dropping, TWELVE, 25, 0.084, None, 300, seed=3))
    whole = looks_plan(Stopping(PRIMARY, TWELVE, 25, 0.084, None, 300, seed=3))
    assert (found.drop_after, whole.drop_after) == (5, 0)
    for left, kept in zip(found.scenarios, whole.scenarios, strict=True):
        assert left.whole_power == kept.power
        assert kept.whole_power is None
        assert left.share < kept.share - 0.02
        assert left.power <= kept.power + 0.01
    assert found.scenarios[2].power < whole.scenarios[2].power
    shown = "\n".join(str(one) for one in looks(found) if isinstance(one, Text))
    assert "tasks that are saturated after block 5 are left out: that loses" in shown


GROWING = PRIMARY.model_copy(
    update={"effect": 0.116, "stop": StopRule(reestimate=Reestimation(after=10, cap=60), drop_saturated=5)}
)


@pytest.mark.parametrize("rates", [np.full(7, 0.5), control_rates(7, 0.5, 1 / 2.2)])
def test_a_simulated_campaign_re_estimates_as_the_controller_does(rates: Floats) -> None:
    """Counts look by look to the test that decides in a campaign, futility and left-out tasks included."""
    design, rule, rng = design_of(GROWING, 25), futility_of(GROWING), np.random.default_rng(11)
    how = Revision(0.116, 10, 60, lambda reps: design_of(GROWING, 25, reps))
    lengths, seen = np.diff(design.looks, prepend=0)[:, None], set[int]()
    drawn = rng.binomial(lengths, rates, (25, 5, 7)), rng.binomial(lengths, rates, (25, 5, 7))
    for arms, own in revised(rng, design, (rates, rates), drawn, how, 5):
        found = simulated_stops(own, *arms, rule, 5, planned=design)
        for place, (a, b) in enumerate(zip(*arms, strict=True)):
            taken = decided(own, a, b)
            verdict = taken[-1].result.verdict
            assert (found.look[place], found.futile[place]) == (len(taken), verdict == "futility")
            assert found.crossed[place] == {"benefit": 1, "harm": -1}.get(verdict, 0)
            if len(taken) > 1:
                assert isinstance(second := taken[1].result, LookResult)
                assert second.reps == own.blocks
                seen.add(own.blocks)
    assert len(seen) > 2


def decided(design: SequentialDesign, a: Integers, b: Integers) -> list[Decision]:
    """What the controller decides look by look; passes: shape (looks, 7)."""
    taken, dropped = list[Decision](), set[str]()
    while not taken or taken[-1].result.verdict == "continue":
        at = len(taken)
        n = design.stage(at + 1)
        stage = tuple(
            StageCounts(
                task=f"t{t}",
                treatment_passed=int(a[at, t]) * (f"t{t}" not in dropped),
                treatment_valid=n * (f"t{t}" not in dropped),
                control_passed=int(b[at, t]) * (f"t{t}" not in dropped),
                control_valid=n * (f"t{t}" not in dropped),
            )
            for t in range(7)
        )
        result = look_result(GROWING, 25, taken, stage)
        if at == 0:
            dropped = {f"t{t}" for t in range(7) if (a[0, t] + b[0, t]) in (0, 10)}
        taken.append(
            Decision(
                number=at + 1,
                at=0,
                epoch=1,
                blocks=design.looks[at],
                stage=stage,
                dropped=tuple(dropped) if at == 0 else (),
                outcomes="0" * 64,
                amendments=0,
                result=result,
            )
        )
    return taken


def test_power_simulates_the_reps_that_are_re_estimated() -> None:
    """Planned for rates that vary; all near .5 need more reps, and get them."""
    again = GROWING.model_copy(
        update={"stop": StopRule(reestimate=Reestimation(after=10, cap=60), futility="none")}
    )
    planned = GROWING.model_copy(update={"stop": StopRule(futility="none")})
    base = np.full(7, 0.5)
    found = looks_plan(Stopping(again, KnownTasks(base), 25, 0.116, 3.0, 200, seed=3))
    fixed = looks_plan(Stopping(planned, KnownTasks(base), 25, 0.116, 3.0, 200, seed=3))
    assert (found.most, found.reestimate_after, found.inflation) == (60, 10, None)
    whole, before = found.scenarios[2], fixed.scenarios[2]
    assert whole.reps is not None
    assert 39 < whole.reps < 43  # rates of .5 need 41.6 on average
    assert before.reps is None
    assert whole.power > before.power + 0.1
    assert whole.trials == pytest.approx(whole.share * 350)
    assert whole.trials > before.trials
    assert whole.cost == pytest.approx(whole.trials / 2 * 3)
    shown = [str(one) for one in looks(found) if isinstance(one, Text)]
    assert any("25 reps are planned, and re-estimated after block 10, up to 60" in one for one in shown)
    assert not any("times the reps" in one for one in shown)


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
    shown = CliRunner().invoke(power, [str(file), "--simulations", "100", "--details"], catch_exceptions=False)
    assert "with the declared looks, after blocks 5, 10 (power_2), on these tasks" in shown.output
    assert "trials on average" in shown.output
    document = json.loads(
        CliRunner().invoke(power, [str(file), "--simulations", "100", "--json"], catch_exceptions=False).output
    )
    assert document["looks"]["looks"] == [5, 10]
    assert len(document["looks"]["scenarios"]) == 4


def test_a_halved_campaign_is_planned_at_a_quarter_of_alpha(tmp_path: Path) -> None:
    tasks = Path(__file__).parents[3] / "tasks/quickstart/tasks"
    file = tmp_path / "campaign.yaml"
    file.write_text(
        f"campaign: halved\nseed: 1\ntasks: ['{tasks}/*.yaml']\n"
        "conditions: [none, flat_llm, intent_layer, placebo, preamble_only]\nreps: 10\n"
        "agent: {kind: search}\nstore: store\n"
        "primary: {treatment: flat_llm, control: none, effect: 0.2, halve: true}\n"
    )
    asked = [str(file), "--simulations", "100", "--tasks", "6"]
    shown = CliRunner().invoke(power, [*asked, "--cost-rep", "3", "--details"], catch_exceptions=False)
    assert "two-sided alpha 0.0125" in shown.output
    assert (
        "the control and the four treatments together take 228 trials of 300 (76.0%), which cost 342.00: "
        "after block 4 of 10, two treatments are left out"
    ) in " ".join(shown.output.split())
    several = CliRunner().invoke(power, [*asked, "--reps", "10,25", "--json"], catch_exceptions=False)
    halvings = json.loads(several.output)["halvings"]
    assert [(one["reps"], one["after"], one["trials"], one["whole"], one["cost"]) for one in halvings] == [
        (10, 4, 228, 300, None),
        (25, 10, 6 * (10 * 5 + 15 * 3), 750, None),
    ]
