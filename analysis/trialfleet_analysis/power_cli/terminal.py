"""A plan for a terminal: the answer, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from trialfleet_analysis.power_cli.asking import Answer
from trialfleet_analysis.power_cli.known_tasks import KnownTasksPlan
from trialfleet_analysis.power_cli.plans import (
    ESTIMANDS,
    CampaignPlan,
    CampaignRow,
    Detected,
    EffectForReps,
    EqualCost,
    Goal,
    RepsForEffect,
)
from trialfleet_analysis.power_cli.short_answer import (
    NAMES,
    answer_in_sentences,
    describe_balance,
    name_contrast,
    show_assumptions,
    summarise_design,
    warn_of_fixed_end,
    warn_of_left_out,
    warn_of_look,
    warn_of_repositories,
    warn_of_spread,
    warn_of_undetected,
)
from trialfleet_analysis.power_cli.sources import Pilot
from trialfleet_analysis.power_cli.stops_text import bets, describe_own, halvings, known, looks
from trialfleet_analysis.power_cli.words import head as _head
from trialfleet_analysis.power_cli.words import points as _points
from trialfleet_analysis.power_cli.words import table as _table
from trialfleet_designs.document.figures import NOTHING, percent
from trialfleet_designs.power.own_plan import OwnPlan
from trialfleet_designs.power.repositories import RepositoriesPlan
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.comparisons.repositories import LEAST_DF, PLANNED_CORRELATION, Claim
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.power import Allocation, TestName

TESTS: dict[TestName, str] = {"fisher": "Fisher's exact test", "boschloo": "Boschloo's exact test"}
TASK_TESTS: dict[Claim | None, str] = {
    None: "paired t test over tasks",
    "these_repositories": "t test over tasks, variance within repositories",
    "other_repositories": "t test over tasks, cluster-robust by repository; where effects differ between tasks, "
    f"differences within one correlate by {PLANNED_CORRELATION:g}",
}
WIDTH = 110  # columns where there is no terminal to fit


def show(answer: Answer, pilot: Pilot | None, console: Console, *, details: bool) -> None:
    """`details`: with the tables of a campaign of one design, which a sentence answers."""
    if not details and (short := answer_in_sentences(answer, pilot)) is not None:
        _print(short, console)
        return
    if pilot is not None:
        _print(_pilot(pilot), console)
    match answer:
        case RepsForEffect():
            _print(_reps_for_effect(answer), console)
        case EffectForReps():
            _print(_effect_for_reps(answer), console)
        case CampaignPlan():
            _print(_campaign(answer), console)
        case EqualCost():
            _print(_equal_cost(answer), console)
        case KnownTasksPlan():
            _print(known(answer), console)
            _print(warn_of_fixed_end(answer), console)
            _print(_frontier(answer), console)
            _print(_warn_of_no_test(answer), console)
        case OwnPlan():
            _print(describe_own(answer), console)


def _print(parts: Iterator[RenderableType], console: Console) -> None:
    for part in parts:
        console.print(part)


def _reps_for_effect(found: RepsForEffect) -> Iterator[RenderableType]:
    yield _head(
        f"{percent(found.control)} against {percent(found.treatment)} in one cell: "
        f"{TESTS[found.test]}, two-sided, alpha {found.alpha:g}"
    )
    if found.goals:
        table = _table("power", "reps per arm", "", "first reached at", "", numbers=5)
        for goal in found.goals:
            table.add_row(*_goal(goal))
        yield table
        yield Text("")
    table = _table("reps per arm", "power", numbers=2)
    for reached in found.reached:
        table.add_row(str(reached.reps), percent(reached.power))
    yield table


def _goal(goal: Goal) -> tuple[RenderableType, ...]:
    if goal.stays is None:
        first = NOTHING if goal.first is None else str(goal.first)
        return percent(goal.power), f"more than {goal.n_max}", "", first, _of(goal.power_first)
    return (
        percent(goal.power),
        Text(str(goal.stays), style="bold"),
        _of(goal.power_stays),
        str(goal.first),
        _of(goal.power_first),
    )


def _of(power: float | None) -> str:
    return "" if power is None else f"({percent(power)})"


def _effect_for_reps(found: EffectForReps) -> Iterator[RenderableType]:
    yield _head(
        f"the least effect that one cell detects with power {percent(found.power)}: "
        f"{TESTS[found.test]}, two-sided, alpha {found.alpha:g}"
    )
    table = _table("reps per arm", "control", "detects", "treatment", numbers=3)
    for row in found.rows:
        table.add_row(*_detected(row))
    yield table


def _detected(row: Detected) -> tuple[RenderableType, ...]:
    control = "about 50%" if row.control is None else percent(row.control)
    if row.effect is None:
        return (
            str(row.reps),
            control,
            Text("nothing", style="bold red"),
            f"100% has power {percent(row.power_at_most)}",
        )
    low = 0.5 - row.effect / 2 if row.control is None else row.control
    pair = f"{percent(low)} against " if row.control is None else ""
    return str(row.reps), control, Text(_points(row.effect), style="bold"), f"{pair}{percent(low + row.effect)}"


def _campaign(found: CampaignPlan) -> Iterator[RenderableType]:
    if len(found.rows) == 1:
        yield Text(summarise_design(found, found.rows[0]), style="bold")
        yield Text("")
    yield from name_contrast(found)
    yield from _designs(found)
    if found.at_declared is not None:
        yield Text("")
        yield from _designs(found.at_declared)
    yield from warn_of_fixed_end(found)
    yield from halvings(found.halvings)
    if found.looks is not None:
        yield Text("")
        yield from looks(found.looks)
    if found.bets is not None:
        yield Text("")
        yield from bets(found.bets)
    yield from _frontier(found)
    yield Text("")
    yield from show_assumptions(found.assumptions)
    yield from warn_of_repositories(found)
    yield from warn_of_spread(found.at_declared or found)
    yield Text(_simulated(found))
    if found.repositories is not None:
        yield Text(_describe_repositories(found.repositories))


def _frontier(found: CampaignPlan | KnownTasksPlan) -> Iterator[RenderableType]:
    if found.frontier:
        yield Text("")
        yield _head("the same trials as tasks × reps: the least gain, by a normal approximation")
        table = _table("tasks", "reps", *(NAMES[name] for name in ESTIMANDS), numbers=4)
        for design in found.frontier:
            like, these = _effects(design)
            table.add_row(str(design.tasks), str(design.reps), these, like)
        yield table
    if found.balance_reps is not None:
        yield Text(describe_balance(found.balance_reps))


def _warn_of_no_test(found: KnownTasksPlan) -> Iterator[RenderableType]:
    """On tasks like these, of the plan itself."""
    for one in found.frontier:
        if one.mde is None and one.reps == found.designs[0].reps:
            said = f"! {NAMES['tasks_like_these']}, {one.tasks} × {one.reps}: nothing is detected, {one.reason}"
            yield Text(said, style="yellow")


def _designs(found: CampaignPlan) -> Iterator[RenderableType]:
    alpha, base = f"two-sided alpha {found.effort.alpha:g}", percent(found.assumptions.control.value)
    if found.treatment is None:
        yield _head(f"the least gain detected with power {percent(found.effort.power)}, {alpha}")
    else:
        yield _head(f"power for {base} against {percent(found.treatment)}, {alpha}")
    titles = (_titled(name, found) for name in ESTIMANDS)
    table = _table("tasks", "reps", "trials in both arms", *titles, numbers=5)
    for row in found.rows:
        table.add_row(str(row.tasks), str(row.reps), f"{row.trials:,}", *(_cell(row, name) for name in ESTIMANDS))
    yield table
    yield from warn_of_undetected(found)


def _titled(name: Estimand, found: CampaignPlan) -> str:
    primary = found.declared is not None and found.declared.estimand == name
    return f"{NAMES[name]} (primary)" if primary else NAMES[name]


def _cell(row: CampaignRow, name: Estimand) -> RenderableType:
    if name in row.power:
        power = row.power[name]
        if power.undefined == power.simulations:
            return "undefined"
        return Text(f"{percent(power.power)} ± {100 * power.se:.1f}", style="bold")
    effect = row.effect[name]
    if effect.effect is None or effect.se is None:
        return Text("nothing" if effect.is_known else "not known", style="bold red")
    return Text(f"{100 * effect.effect:.1f} ± {100 * effect.se:.1f} points", style="bold")


def _simulated(found: CampaignPlan) -> str:
    return (
        f"simulated: {plural(found.effort.simulations, 'campaign')} per figure, seed {found.effort.seed}; "
        "± is the Monte Carlo standard error\n"
        "all of them draw their tasks anew from the population above\n"
        f"these tasks: stratified exact mid-p test; tasks like these: {TASK_TESTS[found.claim]}"
    )


def _describe_repositories(found: RepositoriesPlan) -> str:
    """What each claim beyond these tasks is about."""
    times = ", ".join(f"×{factor:.2f} at {correlation:g}" for correlation, factor in found.inflation)
    own, freedom = plural(found.repositories, "repository"), f"{found.df:.1f} degrees of freedom"
    others = (
        f"standard error {times} (correlation of differences within a repository), {freedom}"
        if found.carries
        else f"{own} cannot carry a claim about others ({freedom}, at least {LEAST_DF:g} are needed)"
    )
    return f"tasks like these: of these {own}\nestimand: other_repositories: {others}"


def _equal_cost(found: EqualCost) -> Iterator[RenderableType]:
    yield _head(
        f"what {found.budget:g} buys: a task costs {found.cost_task:g}, a rep in both arms {found.cost_rep:g}; "
        f"least effect for power {percent(found.power)}, alpha {found.alpha:g}"
    )
    table = _table("tasks", "reps", "cost", "tasks like these", "these tasks", "", numbers=5)
    for design in found.designs:
        table.add_row(
            str(design.tasks),
            str(design.reps),
            f"{design.cost:g}",
            *_effects(design),
            Text("← best for tasks like these" if design == found.best else ""),
        )
    yield table
    yield Text("")
    yield from show_assumptions(found.assumptions)
    if found.best_reps is not None:
        yield Text(f"the formula's best reps per cell, whatever the budget: {max(found.best_reps, 1):.1f}")
    yield Text(
        "normal approximation, to choose between designs: then simulate the chosen one with --tasks and --reps"
    )


def _effects(design: Allocation) -> tuple[str, str]:
    return (
        NOTHING if design.mde is None else _points(design.mde),
        NOTHING if design.mde_these_tasks is None else _points(design.mde_these_tasks),
    )


def _pilot(pilot: Pilot) -> Iterator[RenderableType]:
    yield _head(one_line(f"pilot {pilot.campaign}: {plural(pilot.blocks, 'complete block')}"))
    table = _table("task", one_line(pilot.control), one_line(pilot.treatment))
    for task in pilot.tasks:
        table.add_row(
            Text(one_line(task.task)), f"{task.passes_b}/{task.trials_b}", f"{task.passes_a}/{task.trials_a}"
        )
    yield table
    yield from warn_of_left_out(pilot)
    icc = pilot.icc
    if icc.estimate is None:
        yield Text(f"ICC of the control's tasks: undefined, {icc.reason}")
    else:
        yield Text(
            f"ICC of the control's tasks: {icc.estimate:.2f} "
            f"({percent(icc.level)} interval {icc.low or 0:.2f} to {icc.high or 0:.2f})"
        )
    if not pilot.sigma_int:
        yield Text("effects differ between tasks: no more than chance was seen in so few reps")
    yield from warn_of_look(pilot)
    yield Text("the pilot's own effect is not used: plan for the least effect that would matter\n")
