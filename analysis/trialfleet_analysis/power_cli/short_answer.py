"""A plan of one design in sentences, with what it rests on and what must not be overlooked."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from trialfleet_analysis.power_cli.asking import Answer
from trialfleet_analysis.power_cli.known_tasks import KnownDesign, KnownTasksPlan
from trialfleet_analysis.power_cli.plans import ESTIMANDS, Assumption, Assumptions, CampaignPlan, CampaignRow
from trialfleet_analysis.power_cli.sources import Pilot
from trialfleet_analysis.power_cli.words import points, table
from trialfleet_designs.document.figures import percent, quantity
from trialfleet_designs.power.stops import LooksPlan
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.power import CampaignEffect

MORE = "--details shows tables: the figures, other designs of the same cost, how it was simulated"
ALIKE = "in each campaign all tasks have the same difference"
NAMES: dict[Estimand, str] = {"these_tasks": "these tasks", "tasks_like_these": "tasks like these"}


def answer_in_sentences(answer: Answer, pilot: Pilot | None) -> Iterator[RenderableType] | None:
    """None for an answer that compares several designs, and for one that is a table: of bets, which may take more
    or fewer reps, and of halved treatments."""
    match answer:
        case CampaignPlan(rows=(row,), bets=None, halvings=()):
            return _of_campaign(answer, row, pilot)
        case KnownTasksPlan(designs=(design,), bets=None, halvings=()):
            return _of_known_tasks(answer, design)
        case _:
            return None


def _of_campaign(found: CampaignPlan, row: CampaignRow, pilot: Pilot | None) -> Iterator[RenderableType]:
    yield Text(summarise_design(found, row), style="bold")
    trials = 2 * row.tasks * found.looks.most if found.looks and found.looks.most else row.trials
    if found.limits is not None and (price := found.limits.describe(trials)):
        yield Text(f"For the two conditions that are compared: {price[0].lower()}{price[1:]}")
    if found.at_declared is not None:
        [declared] = found.at_declared.rows
        yield Text(summarise_design(found.at_declared, declared))
    if found.looks is not None:
        yield Text(_summarise_looks(found.looks))
    yield from warn_of_fixed_end(found)
    if found.balance_reps is not None and row.reps > found.balance_reps:
        yield Text(describe_balance(found.balance_reps))
    yield Text("")
    yield from name_contrast(found)
    yield from show_assumptions(found.assumptions)
    yield from warn_of_undetected(found)
    yield from warn_of_repositories(found)
    yield from warn_of_spread(found.at_declared or found)
    if pilot is not None:
        yield from (*warn_of_left_out(pilot), *warn_of_look(pilot))
    yield Text(MORE)


def _of_known_tasks(found: KnownTasksPlan, design: KnownDesign) -> Iterator[RenderableType]:
    trials, wanted = plural(design.trials, "trial"), percent(found.effort.power)
    gain = "no gain" if design.detects.effect is None else f"a gain of {points(design.detects.effect)} or more"
    gain = gain if design.detects.is_known else "a gain that is not known"
    yield Text(f"{trials} of these tasks notice {gain} in {wanted} of campaigns.", style="bold")
    if design.power is not None and found.effect is not None:
        yield Text(f"They notice {points(found.effect)} in {percent(design.power.power)}.")
    if design.cost is not None:
        price = quantity(design.cost, "usd")
        yield Text(f"They cost about {price}, without attempts that are lost and tried again.")
    if found.looks is not None:
        yield Text(_summarise_looks(found.looks))
    yield from warn_of_fixed_end(found)
    if design.detects.reason is not None:
        yield Text(f"! {_explain_nothing(design.detects)}", style="yellow")
    seen = found.seen
    of = f"{one_line(seen.condition)} in {one_line(seen.campaign)}, {plural(seen.blocks, 'complete block')}"
    yield Text(f"\neach task's rate is from {of}")
    if seen.interim:
        yield Text("! not all trials of that campaign are over: this look is recorded", style="yellow")
    yield Text(MORE)


def _summarise_looks(found: LooksPlan) -> str:
    at = {one.effect: one for one in found.scenarios}
    planned, none = at[found.effect], at[0.0]
    return (
        f"With its looks it takes {planned.trials:,.0f} trials on average where the gain is "
        f"{points(found.effect)}, and {none.trials:,.0f} where there is none."
    )


def warn_of_left_out(pilot: Pilot) -> Iterator[RenderableType]:
    for left in pilot.left_out:
        yield Text(one_line(f"! {left} is left out: no valid trial in one of the two"), style="yellow")


def warn_of_look(pilot: Pilot) -> Iterator[RenderableType]:
    if pilot.interim:
        yield Text("! not all trials of the pilot are over: this look is recorded", style="yellow")


def summarise_design(found: CampaignPlan, row: CampaignRow) -> str:
    """What one design notices, in a sentence."""
    wanted, trials = percent(found.effort.power), plural(row.trials, "trial")
    if row.power:
        here, like = (row.power[name] for name in ESTIMANDS)
        effect = f"a difference of {points((found.treatment or 0.0) - found.assumptions.control.value)}"
        noticed = f"{trials} notice {effect} in {percent(here.power)} of campaigns on these tasks"
        if like.undefined == like.simulations:
            return f"{noticed}, and none on tasks like these: {found.refused or ALIKE}."
        return f"{noticed}, in {percent(like.power)} on tasks like these."
    these, others = (row.effect[name] for name in ESTIMANDS)
    if these.effect is None and these.is_known:
        return f"{trials} notice no gain on these tasks in {wanted} of campaigns, however large it is."
    size = "one that is not known" if not others.is_known else "none"
    other = f"{size if others.effect is None else f'one of {points(others.effect)}'} on tasks like these"
    least = "that is not known" if these.effect is None else f"of {points(these.effect)} or more"
    gain = f"a gain {least} on these tasks"
    return f"{trials} notice {gain} in {wanted} of campaigns, and {other}."


def describe_balance(balance: float) -> str:
    return (
        f"For tasks like these, add tasks instead of reps beyond {balance:.1f} reps (R*, where the noise within\n"
        "tasks equals the spread of effects between them); for these tasks only the number of trials counts."
    )


def name_contrast(found: CampaignPlan) -> Iterator[RenderableType]:
    if (said := found.declared) is None:
        return
    contrast = f"{said.treatment} against {said.control}" if said.treatment else "no primary contrast is declared"
    apart = f"; {plural(said.apart, 'task')} without an oracle left out" if said.apart else ""
    yield Text(one_line(f"{said.campaign}: {contrast}{apart}"))


def warn_of_spread(found: CampaignPlan) -> Iterator[RenderableType]:
    if found.sd_effect is not None and found.sd_effect > found.assumptions.sigma_int.value + 0.0005:
        said = "an effect this large moves tasks near 0% and 100% less: true effects differ by an SD of"
        yield Text(f"! {said} {points(found.sd_effect)}", style="yellow")


def warn_of_repositories(found: CampaignPlan) -> Iterator[RenderableType]:
    if found.guesses_repositories:
        said = "the repositories of other tasks are not known: planned as if each came from its own"
        yield Text(f"! {said}", style="yellow")


def warn_of_fixed_end(found: CampaignPlan | KnownTasksPlan) -> Iterator[RenderableType]:
    if found.lacks_stop:
        said = "with one test at the end of these reps, and without the looks or bets that the campaign declares"
        yield Text(f"! {said}", style="yellow")


def warn_of_undetected(found: CampaignPlan) -> Iterator[RenderableType]:
    for row in found.rows:
        for name, effect in row.effect.items():
            if effect.reason is not None:
                design = f"{row.tasks} × {row.reps}"
                yield Text(f"! {NAMES[name]}, {design}: {_explain_nothing(effect)}", style="yellow")


def _explain_nothing(found: CampaignEffect) -> str:
    return f"nothing is detected, {found.reason}" if found.is_known else str(found.reason)


def show_assumptions(found: Assumptions) -> Iterator[RenderableType]:
    shown = table("", "", "", "", header=False)
    shown.add_row("control's mean pass rate", percent(found.control.value), _origin(found.control, "--from"))
    shown.add_row("tasks differ: ICC", f"{found.icc.value:.2f}", _origin(found.icc, "--icc"))
    shown.add_row(
        "true effects differ between tasks: SD",
        points(found.sigma_int.value),
        _origin(found.sigma_int, "--sigma-int"),
    )
    yield shown


def _origin(assumption: Assumption, option: str) -> str:
    words = {"given": "as given", "assumed": f"assumed; change it with {option}", "pilot": "from the pilot"}
    return words[assumption.origin]
