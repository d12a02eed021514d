"""What `plan` says first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.plans import make_plan
from trialfleet_controller.commands.plan import summarise_plan
from trialfleet_designs.power.halving import halving_plan
from trialfleet_ledger.amendments import explain_end, explain_void, largest_reps, planned_reps
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import HalvingResult
from trialfleet_ledger.designs.looks import Decision, Reestimation, StopRule
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.records.directives import Halt

WHAT = "60 trials: 4 tasks under 3 conditions, 5 reps each."


@pytest.mark.parametrize(
    ("each", "cap", "said"),
    [
        (None, None, WHAT),
        (
            2.5,
            None,
            f"{WHAT} At most $150 ($2.50 each); attempts that are lost and tried again cost extra.",
        ),
        (
            2.5,
            1_000,
            f"{WHAT} At most $150 ($2.50 each); attempts that are lost and tried again cost extra, and no "
            "trial starts that might take all of it above $1,000.",
        ),
        (
            2.5,
            100,
            f"{WHAT} At most $150 ($2.50 each), but no trial starts that might take the campaign above $100.",
        ),
    ],
)
def test_trials_and_what_they_may_cost(each: float | None, cap: float | None, said: str) -> None:
    made = make_plan(4, ("none", "flat_llm", "intent_layer"), reps=5, seed=11, limits=Limits(cost_usd=each))
    assert summarise_plan(made, PlannedReps(5), most=PlannedReps(5), cap=cap) == said


FIVE = ("none", "flat_llm", "intent_layer", "placebo", "preamble_only")


def test_trials_that_a_halving_leaves_out_are_not_among_those_that_run() -> None:
    """As many as `trialfleet power` says; before the halving, and after."""
    primary = Primary(treatment="flat_llm", control="none", halve=True)
    made = make_plan(4, FIVE, reps=7, primary=primary, limits=Limits(cost_usd=2))
    of_power = halving_plan(primary, 4, 7, None)
    assert of_power is not None
    assert of_power.trials == 108
    said = (
        "108 trials: 4 tasks under 5 conditions, 7 reps each, but for 32 trials that a look leaves out. At most "
        "$216 ($2 each); attempts that are lost and tried again cost extra."
    )
    assert summarise(made) == said
    result = HalvingResult(counts=(), left_out=FIVE[3:])
    done = Decision(number=1, at=1.0, epoch=1, blocks=3, stage=(), outcomes="0" * 64, amendments=0, result=result)
    assert summarise(made, [done]) == said


@pytest.mark.parametrize(
    ("halted", "trials", "void"),
    [
        (("placebo",), 124, None),
        (FIVE[2:4], 140, "no treatment is left out"),
        (("flat_llm",), 140, "no look is taken"),
        (("none",), 140, "no look is taken"),
    ],
)
def test_what_is_halted_changes_what_a_halving_leaves_out(
    halted: tuple[str, ...], trials: int, void: str | None
) -> None:
    primary = Primary(treatment="flat_llm", control="none", halve=True)
    made = make_plan(4, FIVE, reps=7, primary=primary)
    halts = [Halt(number=n, at=1.0, condition=name, reason="x") for n, name in enumerate(halted, 1)]
    planned = planned_reps(made, (), (), halts)
    assert planned.trials(made.cell_names) == trials
    assert sum(map(planned.mean_of, made.cell_names)) == pytest.approx(trials)
    said = explain_void(made, 7, (), halts)
    assert (said or "").startswith(void or "") is True
    assert (said is None) == (void is None)


def test_a_halted_side_keeps_looks_from_adding_reps() -> None:
    stop = StopRule(looks=(5, 10), reestimate=Reestimation(after=5, cap=40))
    primary = Primary(treatment="flat_llm", control="none", effect=0.2, stop=stop)
    made = make_plan(4, ("none", "flat_llm"), reps=10, primary=primary)
    halt = Halt(number=1, at=1.0, condition="none", reason="x")
    assert largest_reps(made, PlannedReps(10), (), ()).most == 40
    assert largest_reps(made, PlannedReps(10), (), (halt,)).most == 10


def test_what_nothing_more_starts_of_has_no_price() -> None:
    made = make_plan(4, ("none", "flat_llm", "intent_layer"), reps=5, limits=Limits(cost_usd=2))
    over = explain_end((), (), cancelled=True)
    said = summarise_plan(made, PlannedReps(5), most=PlannedReps(5), cap=None, over=over)
    assert said == f"{WHAT} It was cancelled, and nothing more starts."


def summarise(made: Plan, decisions: Sequence[Decision] = (), *, cap: float | None = None) -> str:
    planned = planned_reps(made, (), decisions, ())
    return summarise_plan(made, planned, most=largest_reps(made, planned, decisions, ()), cap=cap)


def test_reps_that_a_look_may_add_are_in_the_most_that_it_may_cost() -> None:
    stop = StopRule(looks=(5, 10), reestimate=Reestimation(after=5, cap=40))
    primary = Primary(treatment="flat_llm", control="none", effect=0.2, stop=stop)
    made = make_plan(4, ("none", "flat_llm"), reps=10, primary=primary, limits=Limits(cost_usd=2))
    assert summarise(made, cap=1000) == (
        "80 trials: 4 tasks under 2 conditions, 10 reps each; a look may make them up to 40 reps, 320 trials. At "
        "most $640 ($2 each); attempts that are lost and tried again cost extra, and no trial starts that might "
        "take all of it above $1,000."
    )


def test_tasks_that_a_look_dropped_get_no_reps_from_a_later_one() -> None:
    stop = StopRule(looks=(3, 5, 10), reestimate=Reestimation(after=5, cap=40))
    primary = Primary(treatment="flat_llm", control="none", effect=0.2, stop=stop)
    made = make_plan(4, ("none", "flat_llm"), reps=10, primary=primary, limits=Limits(cost_usd=2))
    dropped = dict.fromkeys([task.order.id for task in made.tasks][:3], 3)
    planned = PlannedReps(10, dropped)
    said = summarise_plan(made, planned, most=largest_reps(made, planned, (), ()), cap=None)
    assert said.startswith("38 trials: ")
    assert "up to 40 reps, 98 trials. At most $196" in said
