"""The manifest: what was run, on what, with what, and what the bundles say of how."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping

from trialfleet_analysis.ledger import Frame
from trialfleet_analysis.report.campaign_report import ManifestLine
from trialfleet_analysis.tables.columns import known, lists, some, tally, texts
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.table import Table
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.deliveries import PlannedDeliveries
from trialfleet_ledger.plan import Plan, PlannedAgent
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.directives import Amendment

LEFT_OUT = "Metrics left out"  # of single trials, where they cannot be
NOT_GIVEN = "Left out, as delivery: best_effort permits"  # what the condition's agent cannot be given
MEASURED_OTHERWISE = "Deliveries measured otherwise than declared"  # by `trialfleet agents check`
NAMED = 5  # of these trials


def manifest_lines(campaign: CampaignTables, versions: Mapping[str, str]) -> tuple[ManifestLine, ...]:
    """Facts in groups, in a fixed order: the same campaign gives the same lines."""
    frame, attempts = campaign.frame, campaign.attempts
    plan = frame.plan
    groups: dict[str, Iterator[tuple[str, str]]] = {
        "Campaign": _campaign(frame),
        **dict(_agents(plan)),
        MEASURED_OTHERWISE: (
            (one.agent, difference) for one in plan.deliveries.values() for difference in one.differing
        ),
        NOT_GIVEN: iter(
            dict.fromkeys((c.condition.name, lost) for c in plan.cells for lost in c.condition.undelivered)
        ),
        "Limits": _limits(plan),
        "Conditions": (
            (name, _json(plan.conditions[name].model_dump(mode="json", exclude_defaults=True)))
            for name in frame.conditions
        ),
        "Tasks": ((task.order.id, f"sha256 {task.order.digest} ({task.file})") for task in plan.tasks),
        "Environments": iter(
            sorted({t.order.environment.digest: t.order.environment.versions for t in plan.tasks}.items())
        ),
        "Input files": ((name, f"sha256 {digest}") for name, digest in sorted(plan.inputs.items())),
        "Isolation": _counted(texts(attempts, "isolation")),
        "Warnings of the bundles": _counted(text for found in lists(attempts, "warnings") for text in found),
        "Versions in the plan": iter(sorted(plan.versions.items())),
        "Versions in the bundles": _counted(_named_versions(attempts)),
        "Amendments and halts": _events(frame),
        LEFT_OUT: _left_out(campaign.trials),
        "Damaged records": _damaged(campaign.trials),
        "This report": iter(sorted(versions.items())),
    }
    return tuple(ManifestLine(group, name, value) for group, lines in groups.items() for name, value in lines)


def _left_out(trials: Table) -> Iterator[tuple[str, str]]:
    """By metric: of how many trials, and the first of them with the value."""
    found: dict[str, list[str]] = {}
    for trial, words in zip(texts(trials, "trial"), lists(trials, "left_out"), strict=True):
        for word in words:
            name, _, value = word.partition(": ")
            found.setdefault(name, []).append(f"{trial}: {value}")
    for name, told in sorted(found.items()):
        more = f" and {plural(len(told) - NAMED, 'more trial')}" if len(told) > NAMED else ""
        yield name, f"{'; '.join(told[:NAMED])}{more}"


def _damaged(trials: Table) -> Iterator[tuple[str, str]]:
    faulty = some(trials, known(trials, "fault"))
    pairs = zip(texts(faulty, "trial"), texts(faulty, "fault"), strict=True)
    yield from sorted((trial or "", fault or "") for trial, fault in pairs)


def _named_versions(attempts: Table) -> Iterator[str]:
    for found in lists(attempts, "versions"):
        yield from (f"{item['name']} {item['version']}" for item in found)


def _campaign(frame: Frame) -> Iterator[tuple[str, str]]:
    plan = frame.plan
    yield "campaign", plan.title
    yield "uid", plan.uid
    yield "frozen", _time(plan.created)
    yield "campaign.json", f"sha256 {frame.plan_sha256}"
    yield "seed", str(plan.seed)
    yield "reps", str(frame.reps) if frame.reps == plan.reps else f"{frame.reps} (planned {plan.reps})"
    if plan.declared:
        yield from plan.declared.describe(plan.reps)
    else:
        yield "primary contrast", "none declared"


def _agents(plan: Plan) -> Iterator[tuple[str, Iterator[tuple[str, str]]]]:
    """A group for every agent; with the conditions that run it, where there are several."""
    for agent in {own.model_dump_json(): own for own in plan.agents.values()}.values():
        names = [name for name, own in plan.agents.items() if own == agent]
        yield "Agent" if len(names) == len(plan.agents) else f"Agent of {', '.join(names)}", _agent(agent, plan)


def _agent(planned: PlannedAgent, plan: Plan) -> Iterator[tuple[str, str]]:
    agent = planned.spec
    yield "kind", agent.kind
    yield "version", agent.version or "not declared"
    yield "model", agent.model or "none"
    yield "digest", f"sha256 {planned.digest}"
    yield "budget", f"{plural(agent.max_turns, 'turn')}, {agent.timeout_s:g} s"
    if deliveries := plan.deliveries.get(planned.digest):
        yield "deliveries", _deliveries(deliveries)
    if agent.options:
        yield "options", _json(agent.options)


def _deliveries(found: PlannedDeliveries) -> str:
    if found.measured is None:
        return "as declared; not measured in this version"
    same = len(found.declared) - len(found.differing)
    return f"measured in this version: {same} of {len(found.declared)} as declared"


def _limits(plan: Plan) -> Iterator[tuple[str, str]]:
    limits = plan.limits
    yield "cpu", f"{limits.cpu:g}"
    yield "memory", f"{limits.memory_bytes / 2**30:g} GiB"
    yield "disk", f"{limits.disk_bytes / 2**30:g} GiB"
    yield "cost per trial", "no limit" if limits.cost_usd is None else f"${limits.cost_usd:g}"
    yield "cost of the campaign", "no limit" if plan.cost_usd_campaign is None else f"${plan.cost_usd_campaign:g}"
    yield "wall clock of the campaign", "no limit" if plan.wall_clock_s is None else f"{plan.wall_clock_s:g} s"
    yield "set-up and test time-outs", f"{limits.setup_timeout_s:g} s, {limits.tests_timeout_s:g} s"
    yield "parallel", str(plan.parallel)
    retries = plan.retries
    yield (
        "retries",
        f"{retries.before_agent} before the agent, {retries.mid_run} mid-run, {retries.scoring} scoring, "
        f"{retries.disruptions} after evictions and lost nodes",
    )


def _changes(amendment: Amendment) -> str:
    reps = [f"reps {amendment.reps}"] if amendment.reps is not None else []
    cost = [] if amendment.cost_usd_campaign is None else [f"cost cap ${amendment.cost_usd_campaign:g}"]
    clock = [] if amendment.wall_clock_s is None else [f"wall-clock limit {amendment.wall_clock_s:g} s"]
    return ", ".join([*reps, *cost, *clock, *(["halts lifted"] if amendment.lifts else [])])


def _events(frame: Frame) -> Iterator[tuple[str, str]]:
    for amendment in frame.amendments:
        label = ", after a look at results" if amendment.after_look else ""
        yield f"amendment {amendment.number}", f"{_changes(amendment)}{label}, {_time(amendment.at)}"
    for halt in frame.halts:
        yield f"halt {halt.number}", f"{halt.scope}: {halt.reason}, {_time(halt.at)}"
    if frame.cancel:
        yield "cancelled", f"by {frame.cancel.by}, {_time(frame.cancel.at)}"
    for look in frame.looks:
        yield (
            f"look {look.number}",
            f"{look.by}: {look.terminal} of {plural(look.planned, 'trial')}, "
            f"{plural(look.complete_blocks, 'complete block')}, "
            f"{_time(look.at)}",
        )


def _counted(values: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    for value, number in tally(values).items():
        yield value, f"{plural(number, 'trial')}"


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _json(value: object) -> str:
    return canonical_json(value).decode().strip()
