"""A plan for a terminal: the answer, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from trialfleet_analysis.power_cli.asking import Answer
from trialfleet_analysis.power_cli.known_tasks import KnownTasksPlan
from trialfleet_analysis.power_cli.plans import (
    ESTIMANDS,
    Assumption,
    Assumptions,
    CampaignPlan,
    CampaignRow,
    Detected,
    EffectForReps,
    EqualCost,
    Goal,
    RepsForEffect,
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
from trialfleet_statistics.comparisons.repositories import LEAST_DF
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.power import Allocation, TestName

TESTS: dict[TestName, str] = {"fisher": "Fisher's exact test", "boschloo": "Boschloo's exact test"}
NAMES: dict[Estimand, str] = {"these_tasks": "these tasks", "tasks_like_these": "tasks like these"}
WIDTH = 110  # columns where there is no terminal to fit


def show(answer: Answer, pilot: Pilot | None, console: Console) -> None:
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
            _print(_frontier(answer), console)
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
        yield Text(_summarise(found, found.rows[0]), style="bold")
        yield Text("")
    yield from _declared(found)
    yield from _designs(found)
    if found.at_declared is not None:
        yield Text("")
        yield from _designs(found.at_declared)
    yield from halvings(found.halvings)
    if found.looks is not None:
        yield Text("")
        yield from looks(found.looks)
    if found.bets is not None:
        yield Text("")
        yield from bets(found.bets)
    yield from _frontier(found)
    yield Text("")
    yield from _assumptions(found.assumptions)
    yield from _spread(found.at_declared or found)
    yield Text(_simulated(found))
    if found.repositories is not None:
        yield Text(_describe_repositories(found.repositories))


def _summarise(found: CampaignPlan, row: CampaignRow) -> str:
    """What one design notices, in a sentence."""
    wanted, trials = percent(found.effort.power), plural(row.trials, "trial")
    if row.power:
        here, like = (percent(row.power[name].power) for name in ESTIMANDS)
        effect = f"a difference of {_points((found.treatment or 0.0) - found.assumptions.control.value)}"
        return f"{trials} notice {effect} in {here} of campaigns on these tasks, in {like} on tasks like these."
    these, others = (row.effect[name].effect for name in ESTIMANDS)
    if these is None:
        return f"{trials} notice no gain on these tasks in {wanted} of campaigns, however large it is."
    other = "none on tasks like these" if others is None else f"one of {_points(others)} on tasks like these"
    gain = f"a gain of {_points(these)} or more on these tasks"
    return f"{trials} notice {gain} in {wanted} of campaigns, and {other}."


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
        yield Text(
            "noise within tasks equals the spread of effects between them at R* = "
            f"{found.balance_reps:.1f} reps: beyond, reps add little for\n"
            "tasks like these, where more tasks are better at every total; for these tasks only the total counts"
        )


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
    yield from _nothing(found)


def _spread(found: CampaignPlan) -> Iterator[RenderableType]:
    if found.sd_effect is not None and found.sd_effect > found.assumptions.sigma_int.value + 0.0005:
        said = "an effect this large moves tasks near 0% and 100% less: true effects differ by an SD of"
        yield Text(f"! {said} {_points(found.sd_effect)}", style="yellow")


def _declared(found: CampaignPlan) -> Iterator[RenderableType]:
    if (said := found.declared) is None:
        return
    contrast = f"{said.treatment} against {said.control}" if said.treatment else "no primary contrast is declared"
    apart = f"; {plural(said.apart, 'task')} without an oracle left out" if said.apart else ""
    yield Text(one_line(f"{said.campaign}: {contrast}{apart}"))


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
        return Text("nothing", style="bold red")
    return Text(f"{100 * effect.effect:.1f} ± {100 * effect.se:.1f} points", style="bold")


def _nothing(found: CampaignPlan) -> Iterator[RenderableType]:
    for row in found.rows:
        for name, effect in row.effect.items():
            if effect.reason is not None:
                design = f"{row.tasks} × {row.reps}"
                yield Text(f"! {NAMES[name]}, {design}: nothing is detected, {effect.reason}", style="yellow")


def _simulated(found: CampaignPlan) -> str:
    return (
        f"simulated: {plural(found.effort.simulations, 'campaign')} per figure, seed {found.effort.seed}; "
        "± is the Monte Carlo standard error\n"
        "all of them draw their tasks anew from the population above\n"
        "these tasks: stratified exact mid-p test; tasks like these: paired t test over tasks"
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


def _assumptions(found: Assumptions) -> Iterator[RenderableType]:
    table = _table("", "", "", "", header=False)
    table.add_row("control's mean pass rate", percent(found.control.value), _origin(found.control, "--from"))
    table.add_row("tasks differ: ICC", f"{found.icc.value:.2f}", _origin(found.icc, "--icc"))
    table.add_row(
        "true effects differ between tasks: SD",
        _points(found.sigma_int.value),
        _origin(found.sigma_int, "--sigma-int"),
    )
    yield table


def _origin(assumption: Assumption, option: str) -> str:
    words = {"given": "as given", "assumed": f"assumed; change it with {option}", "pilot": "from the pilot"}
    return words[assumption.origin]


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
    yield from _assumptions(found.assumptions)
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
    for left in pilot.left_out:
        yield Text(one_line(f"! {left} is left out: no valid trial in one of the two"), style="yellow")
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
    if pilot.interim:
        yield Text("! the pilot still runs: this look is recorded", style="yellow")
    yield Text("the pilot's own effect is not used: plan for the least effect that would matter\n")
