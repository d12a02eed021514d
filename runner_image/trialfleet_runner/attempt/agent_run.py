"""The agent's turn: in its sandbox, behind the gateway, until it ends or is ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trialfleet_agents.protocol import Agent, Identity, McpServer, Setup
from trialfleet_agents.registry import agent as registered
from trialfleet_agents.sandbox_env import stop_of
from trialfleet_deliveries import texts
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.declared_texts import DeclaredTexts
from trialfleet_deliveries.delivery import with_text
from trialfleet_deliveries.hook_log import FAIL_FAST_LOG, HOOK_LOG
from trialfleet_deliveries.preflight import block
from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.receipts import Receipts
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Stop
from trialfleet_ledger.trajectory import Parsed
from trialfleet_repository.mounts import MountedScratch
from trialfleet_repository.test_call import CalledTests
from trialfleet_repository.testrun import REPORT as TEST_REPORT
from trialfleet_runner.attempt import mcp_servers, preflight_run
from trialfleet_runner.attempt.agent_gateway import connect_job, connect_setup, make_gateway, write_report
from trialfleet_runner.attempt.delivery_receipts import ScriptWatch, complete_receipts, declare_ready
from trialfleet_runner.attempt.edit_watch import EditWatch
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.attempt.mcp_servers import Tools
from trialfleet_runner.attempt.observed_edits import ObservedEdits
from trialfleet_runner.attempt.parsed_output import parse_output
from trialfleet_runner.attempt.preflight_run import PreflightRun
from trialfleet_runner.attempt.prepared_inputs import Ready, lay_out, write_rule
from trialfleet_sandbox.protocol import Exit, InterpreterMissing, Job, MachineMemoryLow, SandboxError

if TYPE_CHECKING:  # agents without a model need not pay for importing the gateway
    from trialfleet_runner.gateway import Canaries, Gateway, GatewayReport

Chosen = tuple[Agent, Identity]


@dataclass(frozen=True)
class AgentRun:
    """What happened. `exit` is None when there was nothing to run; `gateway` when there was no model; `look` when
    the condition has no pre-flight: else its turns, time and money are part of all the others. `composed`: with
    what the pre-flight said. `tools`: of the condition's MCP servers. `cautions`: why its output could not be
    read, which models it asked for that the plan lacks. `receipts`: None without a model. `edits`: what changed in
    the workspace, once the pre-flight had ended."""

    identity: Identity
    parsed: Parsed
    exit: Exit | None
    gateway: GatewayReport | None
    stop: Stop
    composed: Composed
    look: PreflightRun | None = None
    tools: Tools = field(default_factory=Tools)
    cautions: tuple[str, ...] = ()
    receipts: Receipts | None = None
    edits: ObservedEdits = field(default_factory=ObservedEdits)


def identified(grants: Grants) -> Chosen:
    """The agent. Raises `Lost`, halting the campaign, when it or the texts that it reads are not those that were
    planned."""
    if grants.texts != texts.digest():
        message = f"the texts in {texts.FOLDER} on this machine are not those that were planned"
        raise Lost(LossClass.SETUP, message, halt=HaltScope.CAMPAIGN)
    try:
        chosen = registered(grants.agent.kind)
        identity = chosen.identify(grants.agent)
    except OperatorError as error:
        raise Lost(LossClass.SETUP, str(error), halt=HaltScope.CAMPAIGN) from error
    if grants.agent_digest not in (None, identity.digest):
        message = f"this machine's {grants.agent.kind} {identity.version} is not the agent that was planned"
        raise Lost(LossClass.SETUP, message, halt=HaltScope.CAMPAIGN)
    return chosen, identity


def run_agent(
    grants: Grants,
    ready: Ready,
    place: MountedScratch,
    *,
    chosen: Chosen,
    fix: bytes | None,
    stop: threading.Event,
    keys: dict[str, str],
    secrets: set[str],
    begun: Callable[[bool], None],
) -> AgentRun:
    """Run the agent to its end. Raises `Lost` if the sandbox or the provider failed, or `stop` ended it. Adds to
    `keys` the provider's keys by name, and to `secrets` what must not appear in the bundle. Calls `begun(True)`
    when the agent is started, and `begun(False)` if it could not be started."""
    agent, identity = chosen
    composed, before = ready.composed, None
    with ExitStack() as stack:
        mounts = mcp_servers.with_servers(place.mounts, grants.condition.mcp)
        servers = mcp_servers.resolved(grants.condition.mcp, place.scratch.home, ready.environment, mounts)
        setup = _setup(grants, ready, place, fix=fix, servers=servers)
        tools = mcp_servers.check(grants, setup, place, mounts)
        ready = ready.with_offered(mcp_servers.offered_texts(tools))
        declared = declare_ready(ready, grants.condition)
        gateway = _gateway(grants, ready, declared, place, keys) if identity.needs_model else None
        if gateway is not None:
            secrets |= {*keys.values(), gateway.token}
            stack.enter_context(gateway)

        def run(job: Job) -> Exit:
            if stop.is_set():
                raise Lost(LossClass.TERMINATED, "the runner was told to stop before the agent started")
            begun(True)
            try:
                return _run_program(place, _limited(job, grants, gateway, stop))
            except MachineMemoryLow as error:
                raise Lost(loss_of_event(EndEvent.MACHINE_MEMORY) or LossClass.SETUP, str(error)) from error
            except SandboxError as error:
                begun(before is not None and before.exit is not None)  # what a pre-flight took is spent
                raise Lost(LossClass.SETUP, f"the sandbox failed: {error}") from error

        setup = connect_setup(setup, gateway)
        if preflight_run.wanted(grants):
            before = _look(agent, setup, place, grants, ready, gateway, run)
            composed = _told(ready.composed, grants, before, place)
            declared = _expect_told(gateway, replace(ready, composed=composed), grants)
            setup = replace(
                setup,
                spec=preflight_run.rest(grants.agent, before),
                prompt=composed.prompt,
                system=composed.system,
                hook_context=place.scratch.context if composed.hooked else None,
            )
        scripts = ScriptWatch(place.scratch.workspace, declared.scripts)
        ended, edits = before.exit if before is not None and _over(before) else None, ObservedEdits()
        if ended is None:
            job = agent.job(setup, mounts)
            if job is None:
                begun(True)
            else:
                ended, edits = _observe(run, job, ready, place, gateway, before)
    opened = scripts.list_opened()
    if gateway is not None and ended is not None and ended.cause == "itself":
        gateway.ask_again(stop)
    report = write_report(gateway, place)
    refuse_witnessed(report, ended, grants.condition.name)
    parsed, caution = parse_output(agent, place.scratch.record, ended, place.scratch.workspace)
    why = stopped(ended, report, parsed)
    if before is not None:
        parsed = preflight_run.joined(before, parsed)
        ended = ended if ended is before.exit else preflight_run.both(before, ended)
    cautions = tuple(one for one in (caution, _foreign_models(report), _own_files(report)) if one is not None)
    states = scripts.describe_scripts(opened, parsed.steps)
    edits = edits if gateway is not None else edits.with_single_turn(parsed.turns)
    receipts = None if gateway is None else complete_receipts(gateway.receipts(), declared, states)
    return AgentRun(identity, parsed, ended, report, why, composed, before, tools, cautions, receipts, edits)


def _observe(
    run: Callable[[Job], Exit],
    job: Job,
    ready: Ready,
    place: MountedScratch,
    gateway: Gateway | None,
    before: PreflightRun | None,
) -> tuple[Exit, ObservedEdits]:
    """Run the agent, and watch what changes in its workspace."""
    turns, seconds = (before.turns, before.exit.wall_s) if before is not None and before.exit else (0, 0.0)
    with ExitStack() as stack:
        watch = stack.enter_context(EditWatch(ready, place.scratch, turns_before=turns, seconds_before=seconds))
        if gateway is None:
            watch.follow()
        else:
            stack.enter_context(gateway.watch_requests(watch.look_at_request))
        return run(job), watch.finish(None if gateway is None else gateway.turns)


def _foreign_models(report: GatewayReport | None) -> str | None:
    """What is said of requests for models that the plan lacks."""
    if report is None or not report.foreign_models:
        return None
    names = ", ".join(report.foreign_models[:5])
    return f"the agent asked for {names}, but the plan has {report.main_model}: such requests are answered 404"


def _own_files(report: GatewayReport | None) -> str | None:
    """What is said of context files that nobody declared and that the agent's run may have made."""
    if report is None or not report.own_files:
        return None
    names = ", ".join(report.own_files[:5])
    return f"undeclared context files were sent to the model after its first answer: {names}"


def _run_program(place: MountedScratch, job: Job) -> Exit:
    """A program whose interpreter is missing has failed by an error of its own, as a shell reports it: exit code
    127, and why on stderr. Raises `SandboxError`."""
    try:
        return place.sandbox.run(job)
    except InterpreterMissing as error:
        with job.stderr.open("a") as file:
            file.write(f"trialfleet: {error}\n")
        return Exit(127, "itself", error.wall_s, None)


def _over(before: PreflightRun) -> bool:
    """Whether the pre-flight has ended the trial; its time limit does not."""
    return before.exit is not None and before.exit.cause not in ("itself", "timeout")


def _look(
    agent: Agent,
    setup: Setup,
    place: MountedScratch,
    grants: Grants,
    ready: Ready,
    gateway: Gateway | None,
    run: Callable[[Job], Exit],
) -> PreflightRun:
    paths = frozenset(ready.given.manifest)
    found = preflight_run.look(agent, setup, place, grants, task=ready.task, paths=paths, gateway=gateway, run=run)
    if found.exit is not None and place.sandbox.capabilities.separate_container:
        place.scratch.free()  # its workspace is writable: undo the changes of the pre-flight
        lay_out(ready, place.scratch)
    if gateway is not None:
        gateway.begin_run()
    return found


def _told(composed: Composed, grants: Grants, before: PreflightRun, place: MountedScratch) -> Composed:
    """With what the pre-flight found."""
    said = composed.delivery.model_copy(update={"preflight": before.preflight.result})
    composed, text = replace(composed, delivery=said), block(before.preflight)
    if not text:
        return composed
    files = tuple(dict.fromkeys(found.file for found in before.preflight.findings))
    composed = with_text(composed, grants.condition, text, files)
    write_rule(composed, place.scratch)
    return composed


def _expect_told(gateway: Gateway | None, ready: Ready, grants: Grants) -> DeclaredTexts:
    """The texts of the condition with what the pre-flight found, which the gateway then looks for."""
    declared = declare_ready(ready, grants.condition)
    if gateway is not None:
        gateway.expect(declared.texts)
    return declared


def stopped(ended: Exit | None, report: GatewayReport | None, parsed: Parsed) -> Stop:
    """Why the agent stopped: the sandbox's word first, then the gateway's, then the agent's own.

    >>> stopped(None, None, Parsed()).value
    'finished'
    """
    by_sandbox = stop_of(ended)
    if by_sandbox is not None and by_sandbox in {Stop.TIMEOUT, Stop.MEMORY, Stop.DISK}:
        return by_sandbox
    if report is not None and report.stop is not None:
        return report.stop
    return parsed.stop or by_sandbox or Stop.FINISHED


def refuse_witnessed(report: GatewayReport | None, ended: Exit | None, condition: str) -> None:
    """Raises `Lost` for what somebody outside of the attempt has seen: our own stop, or the provider's answers to
    requests of our own. What the agent's program did or printed is nothing of that."""
    if ended is None:
        return
    if ended.cause == "stopped" and (loss := loss_of_event(EndEvent.STOP_SIGNAL, cause=ended.cause)):
        raise Lost(loss, "the runner was told to stop")
    if report is None:
        return
    if report.halt is not None and (loss := loss_of_event(EndEvent.REFUSED_BY_PROVIDER, cause=ended.cause)):
        raise Lost(loss, f"{report.halt} (condition {condition})", halt=HaltScope.CAMPAIGN)
    if report.provider_gave_up and (loss := loss_of_event(EndEvent.OUTAGE, cause=ended.cause)):
        raise Lost(loss, report.provider_error or "")


def _gateway(
    grants: Grants, ready: Ready, declared: DeclaredTexts, place: MountedScratch, keys: dict[str, str]
) -> Gateway:
    from trialfleet_runner.model_access import key_names, upstream

    try:
        provider = upstream(grants.agent)
        canaries = _canaries(grants, ready, declared, place)
        gateway = make_gateway(
            provider,
            grants.agent,
            place,
            max_cost_usd=grants.limits.cost_usd,
            request_tokens=grants.limits.request_tokens,
            canaries=canaries,
        )
    except OperatorError as error:
        raise Lost(LossClass.PROVIDER, str(error), halt=HaltScope.CAMPAIGN) from error
    keys |= key_names(grants.agent, provider)
    return gateway


def _canaries(grants: Grants, ready: Ready, declared: DeclaredTexts, place: MountedScratch) -> Canaries:
    """The condition's texts, and those that must not reach the model."""
    from trialfleet_runner.gateway import Canaries

    inside = place.inside(place.scratch.workspace)
    return Canaries(
        declared=declared.texts,
        forbidden={f"context {name}": lines for name, lines in grants.condition.forbidden.items()},
        files=frozenset(f"{inside}/{path}" for path in ready.composed.files),
    )


def _limited(job: Job, grants: Grants, gateway: Gateway | None, stop: threading.Event) -> Job:
    """The agent's job under the plan's limits, with its only way out."""
    limits = grants.limits
    job = replace(
        job,
        memory_bytes=limits.memory_bytes,
        disk_bytes=limits.disk_bytes,
        inodes=limits.inodes,
        grace_s=limits.stop_grace_s,
        stop=stop,
    )
    return connect_job(job, gateway)


def _setup(
    grants: Grants, ready: Ready, place: MountedScratch, *, fix: bytes | None, servers: Mapping[str, McpServer]
) -> Setup:
    """Of an agent without a model."""
    scratch = place.scratch
    return Setup(
        spec=grants.agent,
        prompt=ready.composed.prompt,
        system=ready.composed.system,
        seed=grants.trial.seed,
        workspace=scratch.workspace,
        home=scratch.home,
        environment=ready.environment,
        pythonpath=grants.task.pythonpath,
        env=grants.task.env,
        tests=_visible_tests(grants, ready, place),
        hook_context=scratch.context if ready.composed.hooked else None,
        hook_log=scratch.home / HOOK_LOG,
        fix=fix,
        gateway_url=None,
        gateway_token=None,
        record=scratch.record,
        fail_fast_log=scratch.home / FAIL_FAST_LOG if grants.condition.fail_fast else None,
        mcp=servers,
    )


def _visible_tests(grants: Grants, ready: Ready, place: MountedScratch) -> tuple[str, ...]:
    """How the agent may run the failing tests: only where they are in its workspace."""
    task = grants.task
    if task.prompt_source != "failing_test" or not task.fail_to_pass:
        return ()
    report = f"{place.inside(place.scratch.home)}/tmp/{TEST_REPORT}"  # noqa: S108 - in the agent's own HOME
    programs = frozenset(path.name for path in (ready.environment / "bin").iterdir())
    call = CalledTests(task.test_command, task.results, task.directory)
    workspace = place.scratch.workspace
    words = call.selected(task.fail_to_pass, workspace)
    return call.there(call.argv(words, report, place.inside(ready.environment), programs, workspace))
