"""`trialfleet power`: plans a campaign before it costs anything. Nothing slow is imported before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trialfleet_ledger.display_text import printable_json

if TYPE_CHECKING:
    from trialfleet_analysis.power_cli.asking import Answered

    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType


class Reps(_Type):
    """One number, or several with commas."""

    name = "list of reps"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            found = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no number of reps; write 25, or 5,10,25", param, ctx)
        if min(found) < 1:
            self.fail(f"{value!r}: at least 1 rep", param, ctx)
        return found


class Share(_Type):
    """A number between 0 and 1; per cent are refused."""

    name = "0…1"

    def __init__(self, lowest: str = "above 0", highest: str = "below 1") -> None:
        self._ends = {"above 0": (), "from 0": (0.0,)}[lowest], {"below 1": (), "to 1": (1.0,)}[highest]
        self._words = f"{lowest} {highest}" if highest == "to 1" else f"{lowest} and {highest}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = float(value)
        except ValueError:
            self.fail(f"{value!r} is no number; write 0.4 for 40%", param, ctx)
        if not (0 < found < 1 or found in self._ends[0] + self._ends[1]):
            self.fail(f"{value} must be {self._words}; write 0.4 for 40%", param, ctx)
        return found


RATE = Share("from 0", "to 1")


class Amount(_Type):
    """An amount of what the budget counts: money, hours …"""

    name = "amount"

    def __init__(self, *, zero: bool) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = float(value)
        except ValueError:
            self.fail(f"{value!r} is no number", param, ctx)
        if not (0 < found < float("inf") or (self._zero and found == 0)):
            self.fail(f"{value} must be {'0 or more' if self._zero else 'above 0'}", param, ctx)
        return found


@click.command()
@click.argument("campaign", required=False)
@click.option("--from", "base", type=RATE, help="The control's pass rate; over tasks, its mean.")
@click.option("--to", type=RATE, help="The treatment's pass rate that must not be missed.")
@click.option("--reps", type=Reps(), metavar="N[,N…]", help="Reps per cell: one number, or several to compare.")
@click.option("--tasks", type=click.IntRange(1), metavar="T", help="Tasks of the campaign.")
@click.option("--icc", type=Share("from 0"), help="How far tasks differ: 0 alike, near 1 always or never solved.")
@click.option("--sigma-int", type=Share("from 0"), help="SD of the true effect between tasks: 0.1 is 10 points.")
@click.option("--budget", type=Amount(zero=False), help="Compare tasks and reps that cost the same.")
@click.option(
    "--cost-task", type=Amount(zero=True), help="Cost of one more task, regardless of its reps. [default: 0]"
)
@click.option(
    "--cost-rep",
    type=Amount(zero=False),
    help="What one rep of a task costs, in both arms together. [default: the pilot's; for a budget 1]",
)
@click.option("--pilot", metavar="CAMPAIGN", help="Take rate, ICC, sigma-int and cv from a campaign with results.")
@click.option(
    "--from-campaign",
    metavar="CAMPAIGN",
    help="Plan with each task's own rate, from an earlier campaign's control: for the claim about these tasks.",
)
@click.option("--treatment", metavar="NAME", help="The pilot's condition. [default: its primary contrast's]")
@click.option(
    "--control",
    metavar="NAME",
    help="Condition of the pilot or earlier campaign. [default: its primary contrast's]",
)
@click.option("--store", metavar="URL", help="The store of CAMPAIGN or of the pilot, if it is not their file's.")
@click.option("--power", "goal", type=Share(), help="The power wanted. [default: 0.8]")
@click.option("--alpha", type=Share(), help="Two-sided level. [default: the campaign's, else 0.05]")
@click.option("--test", type=click.Choice(["fisher", "boschloo"]), help="For one cell. [default: fisher]")
@click.option(
    "--cv",
    type=Amount(zero=False),
    help="A declared metric's coefficient of variation within a task. [default: the pilot's; else 0.6]",
)
@click.option("--simulations", type=click.IntRange(100), metavar="N", help="Campaigns per figure. [default: 2000]")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Same seed, same figures. [default: 1]")
@click.option("--details", is_flag=True, help="Print the tables too, of a campaign that a sentence answers.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON, unrounded, with all tables.")
def power(goal: float | None, details: bool, as_json: bool, **given: Any) -> None:
    """Plan a campaign before it costs anything.

    \b
    What can this campaign detect?        trialfleet power campaign.yaml
    … with other tasks and reps           trialfleet power --tasks 8 --reps 10,25,50
    … and its power for one effect        trialfleet power --tasks 8 --reps 25 --from 0.4 --to 0.6
    How many reps does one cell need?     trialfleet power --from 0.4 --to 0.6
    What do 25 reps in one cell detect?   trialfleet power --reps 25
    More tasks, or more reps?             trialfleet power --budget 1000 --cost-task 20
    All that, from a pilot's results      … --pilot runs/pilot
    … with each task's own rate           trialfleet power campaign.yaml --from-campaign runs/pilot

    One cell is exact. Campaigns are simulated and analysed with the code of `trialfleet report`, for the claim
    about these tasks and for the claim about tasks like these. Rates are written as 0.4 for 40%.
    """
    from trialfleet_analysis.power_cli.asking import PowerOptions, answered

    found = answered(PowerOptions(power=goal, **given))
    if as_json:
        click.echo(printable_json(_document(found), indent=1))
        return
    from trialfleet_analysis.power_cli.terminal import WIDTH, show
    from trialfleet_ledger.screen import Screen

    console = Screen()
    if not console.is_terminal:
        console.width = WIDTH
    show(found.answer, found.pilot, console, details=details)


def _document(found: Answered) -> dict[str, Any]:
    """`question` says which plan it is."""
    from dataclasses import asdict

    from trialfleet_designs.power.own_plan import OwnPlan

    words = {
        "RepsForEffect": "reps_for_effect",
        "EffectForReps": "effect_for_reps",
        "CampaignPlan": "campaign",
        "EqualCost": "equal_cost",
        "KnownTasksPlan": "known_tasks",
    }
    pilot = None if found.pilot is None else asdict(found.pilot)
    answer = found.answer
    question = answer.kind if isinstance(answer, OwnPlan) else words[type(answer).__name__]
    return {"question": question, **asdict(answer), "pilot": pilot}
