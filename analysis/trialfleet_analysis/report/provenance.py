"""The manifest: what was run, on what, with what, and what the bundles say of how."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import Ledger
from trialfleet_analysis.report.document import ManifestLine
from trialfleet_runner.campaign import Plan
from trialfleet_runner.canonical import canonical_json


def manifest_lines(
    ledger: Ledger, evidence: Mapping[str, Evidence], versions: Mapping[str, str]
) -> tuple[ManifestLine, ...]:
    """Facts in groups, in a fixed order: the same campaign gives the same lines."""
    plan = ledger.plan
    groups: dict[str, Iterator[tuple[str, str]]] = {
        "Campaign": _campaign(ledger),
        "Agent": _agent(plan),
        "Limits": _limits(plan),
        "Conditions": (
            (name, _json(plan.conditions[name].model_dump(mode="json", exclude_defaults=True)))
            for name in ledger.conditions
        ),
        "Tasks": ((task.order.id, f"sha256 {task.order.digest} ({task.file})") for task in plan.tasks),
        "Environments": iter(
            sorted({t.order.environment.digest: t.order.environment.python for t in plan.tasks}.items())
        ),
        "Input files": ((name, f"sha256 {digest}") for name, digest in sorted(plan.inputs.items())),
        "Isolation": _counted(found.isolation for found in evidence.values() if found.isolation),
        "Warnings of the bundles": _counted(w for found in evidence.values() for w in found.warnings),
        "Versions in the plan": iter(sorted(plan.versions.items())),
        "Versions in the bundles": _counted(
            f"{name} {version}" for found in evidence.values() for name, version in found.versions
        ),
        "Amendments and halts": _events(ledger),
        "This report": iter(sorted(versions.items())),
    }
    return tuple(ManifestLine(group, name, value) for group, lines in groups.items() for name, value in lines)


def _campaign(ledger: Ledger) -> Iterator[tuple[str, str]]:
    plan = ledger.plan
    yield "campaign", plan.campaign
    yield "uid", plan.uid
    yield "frozen", _time(plan.created)
    yield "campaign.json", f"sha256 {ledger.plan_sha256}"
    yield "seed", str(plan.seed)
    yield "reps", str(ledger.reps) if ledger.reps == plan.reps else f"{ledger.reps} (planned {plan.reps})"
    if plan.primary:
        primary = plan.primary
        sides = f"{primary.treatment} − {primary.control}"
        yield "primary contrast", f"{sides}, {primary.estimand}, α {primary.alpha:g}"
    else:
        yield "primary contrast", "none declared"


def _agent(plan: Plan) -> Iterator[tuple[str, str]]:
    agent = plan.agent
    yield "kind", agent.kind
    yield "version", agent.version or "not declared"
    yield "model", agent.model or "none"
    yield "digest", f"sha256 {plan.agent_digest}"
    yield "budget", f"{agent.max_turns} turns, {agent.timeout_s:g} s"
    if agent.options:
        yield "options", _json(agent.options)


def _limits(plan: Plan) -> Iterator[tuple[str, str]]:
    limits = plan.limits
    yield "cpu", f"{limits.cpu:g}"
    yield "memory", f"{limits.memory_bytes / 2**30:g} GiB"
    yield "disk", f"{limits.disk_bytes / 2**30:g} GiB"
    yield "cost per trial", "no limit" if limits.cost_usd is None else f"${limits.cost_usd:g}"
    yield "cost of the campaign", "no limit" if plan.cost_usd_campaign is None else f"${plan.cost_usd_campaign:g}"
    yield "set-up and test time-outs", f"{limits.setup_timeout_s:g} s, {limits.tests_timeout_s:g} s"
    yield "parallel", str(plan.parallel)
    retries = plan.retries
    yield (
        "retries",
        f"{retries.before_agent} before the agent, {retries.mid_run} mid-run, {retries.scoring} scoring",
    )


def _events(ledger: Ledger) -> Iterator[tuple[str, str]]:
    for amendment in ledger.amendments:
        reps = f"reps {amendment.reps}" if amendment.reps is not None else "halts lifted"
        label = ", after a look at results" if amendment.after_look else ""
        yield f"amendment {amendment.number}", f"{reps}{label}, {_time(amendment.at)}"
    for halt in ledger.halts:
        yield f"halt {halt.number}", f"{halt.task or 'campaign'}: {halt.reason}, {_time(halt.at)}"
    if ledger.cancel:
        yield "cancelled", f"by {ledger.cancel.by}, {_time(ledger.cancel.at)}"
    for look in ledger.looks:
        yield (
            f"look {look.number}",
            f"{look.by}: {look.terminal} of {look.planned} trials, {look.complete_blocks} complete blocks, "
            f"{_time(look.at)}",
        )


def _counted(values: Iterator[str]) -> Iterator[tuple[str, str]]:
    for value, number in sorted(Counter(values).items()):
        yield value, f"{number} trials"


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _json(value: object) -> str:
    return canonical_json(value).decode().strip()
