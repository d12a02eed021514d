"""What `trialfleet power` prints of looks, of bets, and of tasks whose rates an earlier campaign gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from trialfleet_analysis.power_cli.known_tasks import KnownDesign, KnownTasksPlan
from trialfleet_analysis.power_cli.words import head, points, table
from trialfleet_designs.document.figures import NOTHING, percent
from trialfleet_designs.power.halving import HalvingPlan
from trialfleet_designs.power.own_plan import OwnPlan
from trialfleet_designs.power.stops import BetsPlan, LooksPlan
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural

SHOWN = 12  # tasks of a campaign of many


def looks(found: LooksPlan) -> Iterator[RenderableType]:
    at = ", ".join(map(str, found.looks))
    yield head(f"with the declared looks, after blocks {at} ({found.spending}), on these tasks")
    priced = any(one.cost is not None for one in found.scenarios)
    costs = ("cost on average",) if priced else ()
    left_out = ("every task kept",) if found.drop_after else ()
    reps = ("reps re-estimated",) if found.most is not None else ()
    names = (
        "true effect",
        "power",
        *left_out,
        "without looks",
        *reps,
        "trials on average",
        *costs,
        "of the plan's trials",
    )
    shown = table(*names, "stops early, no gain", numbers=len(names) + 1)
    for one in found.scenarios:
        shown.add_row(
            points(one.effect),
            Text(percent(one.power), style="bold"),
            *([] if one.whole_power is None else [percent(one.whole_power)]),
            percent(one.fixed_power),
            *([] if one.reps is None else [f"{one.reps:.1f}"]),
            f"{one.trials:,.0f}",
            *([_money(one.cost)] if priced else []),
            percent(one.share),
            percent(one.futile),
        )
    yield shown
    yield Text(f"± {100 * found.se:.1f} points at most; without an effect, no task has one")
    yield from _dropping(found)
    if found.most is not None:
        yield Text(
            f"{found.looks[-1]} reps are planned, and re-estimated after block {found.reestimate_after}, up to "
            f"{found.most}; without looks: one test at the end of the plan"
        )
    elif found.inflation is None:
        yield Text("more than 1.5 times the reps would be needed for the power of one test at the end")
    elif found.inflation > 1:
        yield Text(f"{found.inflation:.2f} times the reps would give looks the power of one test at the end")


def _dropping(found: LooksPlan) -> Iterator[RenderableType]:
    planned = next(one for one in found.scenarios if one.effect == found.effect)
    if planned.whole_power is not None:
        yield Text(
            f"tasks that are saturated after block {found.drop_after} are left out: that loses "
            f"{percent(planned.whole_power - planned.power)} of power at {points(found.effect)}, and makes "
            "estimates somewhat smaller"
        )


def describe_own(found: OwnPlan) -> Iterator[RenderableType]:
    """A plan of a design's own."""
    said = found.describe()
    yield head(one_line(said.title))
    shown = table(*said.table.columns, numbers=len(said.table.columns))
    for row in said.table.rows:
        shown.add_row(*(one_line(cell.text) for cell in row))
    yield shown
    yield from (Text(one_line(note)) for note in said.notes)


def halvings(found: Sequence[HalvingPlan]) -> Iterator[RenderableType]:
    for one in found:
        cost = "" if one.cost is None else f", which cost {_money(one.cost)}"
        yield Text(
            f"the control and the four treatments together take {plural(one.trials, 'trial')} of {one.whole:,} "
            f"({percent(one.trials / one.whole)}){cost}:\n"
            f"after block {one.after} of {one.reps}, two treatments are left out"
        )


def bets(found: BetsPlan) -> Iterator[RenderableType]:
    yield head("with bets after every block, on these tasks, for as many reps as it may grow to")
    priced = any(one.cost is not None for one in found.scenarios)
    names = (
        "true effect",
        "reps at most",
        "power",
        "trials on average",
        *(("cost on average",) if priced else ()),
    )
    shown = table(*names, numbers=len(names))
    for one in found.scenarios:
        shown.add_row(
            points(one.effect),
            str(one.reps),
            Text(percent(one.power), style="bold"),
            f"{one.trials:,.0f}",
            *([_money(one.cost)] if priced else []),
        )
    yield shown
    if found.stake is not None:
        yield Text(
            f"half is bet {found.stake:.2f} at a time; for tasks of these rates {found.asked:.2f} would be best"
        )


def _money(cost: float | None) -> str:
    return NOTHING if cost is None else f"{cost:,.2f}"


def known(found: KnownTasksPlan) -> Iterator[RenderableType]:
    of, blocks = found.seen, plural(found.seen.blocks, "complete block")
    yield head(f"each task's rate from {one_line(of.condition)} in {one_line(of.campaign)}, {blocks}")
    yield from _tasks(found)
    if found.seen.interim:
        yield Text("! not all trials of that campaign are over: this look is recorded", style="yellow")
    yield Text("")
    alpha = f"two-sided alpha {found.effort.alpha:g}"
    yield head(f"on these tasks: the least gain detected with power {percent(found.effort.power)}, {alpha}")
    yield from _designs(found)
    yield from halvings(found.halvings)
    if found.looks is not None:
        yield from (Text(""), *looks(found.looks))
    if found.bets is not None:
        yield from (Text(""), *bets(found.bets))
    yield Text(
        f"simulated: {plural(found.effort.simulations, 'campaign')} per figure, seed {found.effort.seed}; "
        "exact mid-p\n"
        "for tasks like these, plan with --pilot: it takes how far rates and effects differ"
    )
    if not found.sigma_int:
        seen = "do not show how effects" if found.sigma_int is None else "show no effects that"
        yield Text(f"its results {seen} differ between tasks, so R*, beyond which reps add little, is not known")


def _tasks(found: KnownTasksPlan) -> Iterator[RenderableType]:
    again = f"all or none of {2 * found.seen.reps} trials pass"
    shown = table("task", "passed", "expected rate", "information", again)
    for one in found.seen.tasks[:SHOWN]:
        seen = f"{one.passes}/{one.trials}" if one.trials else "not run"
        cells = seen, percent(one.rate), f"{one.information:.3f}", percent(one.saturated)
        shown.add_row(Text(one_line(one.task)), *cells)
    yield shown
    if len(found.seen.tasks) > SHOWN:
        yield Text(f"and {plural(len(found.seen.tasks) - SHOWN, 'task')} that tell less: --json lists them")
    yield Text(
        f"rates are drawn towards their mean, {percent(found.seen.mean)}, the more the fewer trials they have "
        f"(ICC {found.seen.icc:.2f});\n"
        "information is rate × (1 − rate): a task that always or never passes tells nothing"
    )


def _designs(found: KnownTasksPlan) -> Iterator[RenderableType]:
    effect = () if found.effect is None else (f"power for {points(found.effect)}",)
    costs = ("cost",) if found.cost_rep is not None else ()
    names = ("tasks", "reps", "trials in both arms", *costs, "detects", *effect)
    shown = table(*names, numbers=len(names))
    for one in found.designs:
        shown.add_row(
            str(len(found.seen.tasks)),
            str(one.reps),
            f"{one.trials:,}",
            *([_money(one.cost)] if costs else []),
            _detects(one),
            *([] if one.power is None else [f"{percent(one.power.power)} ±{percent(one.power.se)}"]),
        )
    yield shown


def _detects(one: KnownDesign) -> str:
    if one.detects.effect is None:
        return one.detects.reason or NOTHING
    error = "" if one.detects.se is None else f" ±{100 * one.detects.se:.1f}"
    return f"{100 * one.detects.effect:.1f}{error} points"
