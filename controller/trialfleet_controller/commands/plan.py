"""`trialfleet plan`: shows what a campaign would run and in which order; `--freeze` writes the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from trialfleet_controller.commands.options import mirror_option, store_option
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_controller.cost_estimate import CostEstimate
    from trialfleet_ledger.blocks import PlannedReps
    from trialfleet_ledger.plan import Plan
    from trialfleet_ledger.records.agent import AgentSpec
    from trialfleet_ledger.store.protocol import Store
    from trialfleet_ledger.trial_order import Planned


@click.command("plan")
@click.argument("campaign")
@store_option
@click.option(
    "--extend",
    type=click.IntRange(1),
    metavar="REPS",
    help="Preview the trials that an extension to REPS reps would add.",
)
@click.option("--freeze", is_flag=True, help="Write the plan and its inputs to the store, without running it.")
@click.option("--offline", is_flag=True, help="Do not check whether the store answers.")
@click.option(
    "--from-campaign",
    metavar="NAME",
    help="Estimate the cost from the measured trials of this campaign in the same store.",
)
@mirror_option
@click.option("--all", "show_all", is_flag=True, help="List every trial, in the order in which they start.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan and its trials as JSON.")
def plan(
    campaign: str,
    store: str | None,
    extend: int | None,
    freeze: bool,
    offline: bool,
    from_campaign: str | None,
    mirror: tuple[str, ...],
    show_all: bool,
    as_json: bool,
) -> None:
    """Show what CAMPAIGN would run: its tasks, its conditions, its cost limit, and the order of its trials in
    randomised complete blocks."""
    from trialfleet_controller.campaigns import find
    from trialfleet_ledger.amendments import effective_cost, explain_end, explain_void, largest_reps, planned_reps
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.trial_order import planned_trials

    found = find(campaign, store)
    ledger = found.ledger
    if found.file is not None:
        from trialfleet_controller import local_planning

        origin = None if offline else found.store
        made = local_planning.make_plan(found.file, found.store if freeze else None, mirror, origin=origin)
        if freeze:
            made, new = local_planning.freeze(ledger, made)
            click.echo(f"{'frozen' if new else 'was frozen already'}: {found.store.url}/{found.name}", err=True)
    else:
        made = ledger.plan()
    of, frozen = ledger.directives, found.file is None or freeze
    amendments, decisions, halts = (of.amendments(), of.decisions(), of.halts()) if frozen else ((), (), ())
    planned = planned_reps(made, amendments, decisions, halts)
    reps, over = planned.most, explain_end(decisions, amendments, cancelled=frozen and of.cancelled() is not None)
    if extend is not None and extend <= reps:
        raise OperatorError(
            f"{extend} is not more than the {plural(reps, 'rep')} planned",
            where="--extend",
            hint=f"give {reps + 1} or more",
        )
    running, planned = planned, replace(planned, most=extend or reps)
    every = planned_trials(made, planned)
    chosen = [trial for trial in every if trial.rep >= reps] if extend else every
    cost = None if from_campaign is None else _cost(made, planned, found.store, from_campaign)
    if as_json:
        shown = {"plan": made.model_dump(mode="json"), "trials": [t._asdict() for t in chosen]}
        click.echo(printable_json(shown if cost is None else {**shown, "cost": asdict(cost)}))
    else:
        most = running if over else largest_reps(made, running, decisions, halts)
        cap = effective_cost(made, amendments)
        click.echo(f"{summarise_plan(made, running, most=most, cap=cap, over=over)}\n")
        void = explain_void(made, reps, decisions, halts)
        _print(made, running, chosen, void=void, show_all=show_all, extend=extend)
    if cost is not None:
        click.echo(f"cost        {cost.text(len(made.cells))}", err=as_json)
    if found.file is not None and not freeze and not offline:
        _warn_of_store(found.store, found.file.where("store") if store is None else "--store")


def _cost(made: Plan, planned: PlannedReps, store: Store, campaign: str) -> CostEstimate:
    """Of the planned reps of every cell, from another campaign. Raises `OperatorError` if it cannot tell."""
    from trialfleet_controller.cost_estimate import costs, estimate
    from trialfleet_controller.status.outcomes import read_outcomes
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.ledger import Ledger

    models = {(agent.kind, agent.model) for agent in Ledger(store, campaign).plan().agent_specs}
    for agent in made.agent_specs:
        if (agent.kind, agent.model) not in models:
            click.echo(f"warning: {campaign} did not run {agent.kind} with {agent.model}", err=True)
    found = estimate(made.cell_names, planned, costs(read_outcomes(store, campaign)))
    if found is None:
        raise OperatorError(
            f"no trial of {campaign} has a known cost",
            where="--from-campaign",
            hint="name a campaign whose agent asked a model with a known price",
        )
    return found


def _warn_of_store(store: Store, where: str) -> None:
    """Warn if the store does not answer: a preview does not need it, a run does."""
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.store.probe import answers

    try:
        answers(store)
    except OperatorError as error:
        said = f"warning: {where}: `trialfleet run` will refuse this store: {error.message}"
        click.echo(f"{said}\n  fix: {error.hint}; --offline skips this check", err=True)


def _request_limits(made: Plan) -> Iterator[str]:
    """The largest request that is passed on to each model."""
    from trialfleet_ledger.prices import largest_request

    chosen = made.limits.request_tokens
    for spec in {spec.model: spec for spec in made.agent_specs if spec.model is not None}.values():
        tokens = largest_request(spec, chosen)
        yield f"request     at most {plural(tokens, 'token')} to {spec.model}; four at a time in an attempt"


def _print(
    made: Plan,
    planned: PlannedReps,
    chosen: Sequence[Planned],
    *,
    void: str | None,
    show_all: bool,
    extend: int | None,
) -> None:
    cells, reps = len(made.cells), planned.most
    click.echo(f"campaign    {made.campaign} (seed {made.seed})")
    for agent in made.agent_specs:
        click.echo(f"agent       {_agent(made, agent)}")
    click.echo(f"tasks       {len(made.tasks)}: {', '.join(task.order.id for task in made.tasks)}")
    click.echo(f"conditions  {len(made.conditions)}: {', '.join(made.conditions)}")
    total = planned.trials(made.cell_names)
    less = f" − {cells * reps - total:,} that a look leaves out" if total < cells * reps else ""
    click.echo(f"trials      {cells:,} cells × {plural(reps, 'rep')}{less} = {total:,}")
    click.echo(f"at once     {_width(made, reps)}")
    for line in (*_request_limits(made), *_declared(made), *([f"looks       {void}"] if void else [])):
        click.echo(line)
    if made.wall_clock_s is not None:
        click.echo(f"wall clock  {made.wall_clock_s:g} s from the first run or submit")
    for name in made.conditions:
        empty = [cell.task for cell in made.cells if cell.empty and cell.condition.name == name]
        if empty:
            click.echo(
                f"empty       {name} has nothing to say for {len(empty)} of {plural(len(made.tasks), 'task')}"
            )
    for name, lost in dict.fromkeys(
        (c.condition.name, lost) for c in made.cells for lost in c.condition.undelivered
    ):
        click.echo(f"left out    {name}: {lost}")
    if extend:
        click.echo(
            f"extension   {plural(len(chosen), 'more trial')} for "
            f"{plural(extend, 'rep')}; planned ones do not change"
        )
    if show_all:
        click.echo("")
    for trial in chosen if show_all else ():
        click.echo(f"block {trial.block:3d}  {trial.id}  {trial.task}  {trial.condition}")


def summarise_plan(
    made: Plan, planned: PlannedReps, *, most: PlannedReps, cap: float | None, over: str | None = None
) -> str:
    """What would run, and what it may cost, in a sentence or two. `most`: with as many reps as a look may add;
    `cap`: of the whole campaign's cost; `over`: why nothing more starts.

    A task that a condition does not have is none of its cells.
    """
    from trialfleet_ledger.cost_limits import CostLimits

    total, grown = planned.trials(made.cell_names), most.trials(made.cell_names)
    left_out = len(made.cells) * planned.most - total
    changes = f", but for {plural(left_out, 'trial')} that a look leaves out" if left_out else ""
    if grown > total:
        changes += f"; a look may make them up to {plural(most.most, 'rep')}, {plural(grown, 'trial')}"
    on = f"{plural(len(made.tasks), 'task')} under {plural(len(made.conditions), 'condition')}"
    price = CostLimits(made.limits.cost_usd, cap).describe(grown)
    rest = f"{over[0].upper()}{over[1:]}." if over else price
    return f"{plural(total, 'trial')}: {on}, {plural(planned.most, 'rep')} each{changes}. {rest}".rstrip()


def _width(made: Plan, reps: int) -> str:
    from trialfleet_controller.backends.local.capacity import MachineSize
    from trialfleet_controller.dispatch.attempt_width import width_bound

    bound = width_bound(made, reps=reps, machine=MachineSize.here() if made.kubernetes is None else None)
    return f"{plural(bound.attempts, 'attempt')}: {bound.reason}"


def _declared(made: Plan) -> Iterator[str]:
    from trialfleet_agents.agent_check.planned_differences import list_also_differing

    declared = made.declared
    if declared is None:
        return
    (label, text), *rest = declared.preview(made.reps)
    yield f"{label:<12}{text}"
    if len(declared.sides) == 2:
        yield f"differ in   {_differences(made, *declared.sides.values())}"
        for one in list_also_differing(made, *declared.sides.values()):
            yield f"{'':<12}the two also differ in {one}"
    yield from (f"{label:<12}{text}" for label, text in rest)


def _agent(made: Plan, agent: AgentSpec) -> str:
    """With the conditions that run it, where the campaign has others."""
    version = f" {agent.version}" if agent.version else ""
    model = f", {agent.model}" if agent.model else ""
    said = f"{agent.kind}{version}{model}, {plural(agent.max_turns, 'turn')}, {agent.timeout_s:g} s"
    own = [name for name, planned in made.agents.items() if planned.spec == agent]
    return said if len(own) == len(made.agents) else f"{said} ({', '.join(own)})"


def _differences(made: Plan, treatment: str, control: str) -> str:
    """What the declared contrast compares."""
    from trialfleet_deliveries.condition_parts import differing_parts

    agents = made.agents[treatment].spec, made.agents[control].spec
    found = differing_parts(made.conditions[treatment], made.conditions[control], agents)
    if not found:
        return "nothing that the file names; their contents differ"
    said = ", ".join(found)
    if len(found) == 1:
        return said
    return f"{len(found)} things at once ({said}): a difference will not say which of them made it"
