"""Runs of an agent's real program in bubblewrap against the scripted server: one with a canary in each delivery, a
pre-flight if the agent can be confined to reading, and one for each delivery, whose first request counts."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from trialfleet_agents.agent_check import delivery_matrix, tool_server
from trialfleet_agents.agent_check.compared_arms import compare_arms
from trialfleet_agents.agent_check.delivered_canaries import deliver_canaries
from trialfleet_agents.agent_check.delivery_matrix import (
    MODULE,
    PRINTS,
    TOOL,
    CheckedDelivery,
    DeliveryMatrix,
    canary,
    context_nodes,
    foreign_settings,
    list_arm_files,
    workspace_files,
)
from trialfleet_agents.agent_check.file_limits import lengthen_files, measure_limits
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import ModelRequest, Reply, ScriptedModel, scripted_model
from trialfleet_agents.context_files import list_home_files, list_root_files
from trialfleet_agents.pinned import pinned
from trialfleet_agents.protocol import Identity, McpServer, Setup
from trialfleet_agents.registry import agent, list_tool_calls
from trialfleet_agents.tool_calls import ToolCalls
from trialfleet_deliveries.hook_log import HOOK_LOG
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.removal import remove
from trialfleet_repository.environments.tool_environment import NOTHING
from trialfleet_repository.mounts import MountedScratch, place_of
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace import build_template, clone
from trialfleet_runner.attempt.preflight_run import read_only, reading
from trialfleet_runner.gateway import Gateway, Upstream, url_at
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.interpreter import FURNISHINGS, base_variables, hook_python
from trialfleet_sandbox.protocol import Exit, Sandbox
from trialfleet_sandbox.scratch import Scratch

TIMEOUT_S = 150.0  # a run takes seconds; a busy machine may need more
PROMPT = f"Read {MODULE}, then run its tests."
TESTS = "make test"  # the third time without an edit, fail_fast denies it
_PORT = 8080  # of the gateway, inside the sandbox
_KEY = "no-key-of-any-provider"


@dataclass(frozen=True)
class AgentCheck:
    """What was measured, of which agent, in how many seconds."""

    identity: Identity
    matrix: DeliveryMatrix
    wall_s: float


def check(spec: AgentSpec) -> AgentCheck:
    """Run the agent (`spec_of`) in temporary folders. Meanwhile HOME of this process is another folder,
    with context files that must not reach the model. Raises `OperatorError` when the agent is not installed or
    cannot be checked, without bubblewrap, or when its program does not play the script to its end."""
    sandbox, tools = choose("bubblewrap"), _tools_of(spec.kind)
    identity, begun = agent(spec.kind).identify(spec), time.monotonic()
    run = _CheckedAgent(identity, spec, sandbox, tools)
    requests = _list_strings(_requests(run, script(tools), lengthen_files(workspace_files(), identity.reach)))
    looked = list[ModelRequest]()
    if identity.reach.preflight:
        looked = _requests(run, preflight_script(tools), workspace_files(), preflight=True)
    arms = compare_arms(identity.reach, _make_first_request(run))
    cut = measure_limits(requests, identity.reach)
    matrix = delivery_matrix.measured(identity, requests, _list_strings(looked), arms, cut)
    return AgentCheck(identity, matrix, time.monotonic() - begun)


def spec_of(
    kind: str, model: str | None = None, version: str | None = None, program: Path | None = None
) -> AgentSpec:
    """An agent to check. `model`: None: one that its program accepts. `version`: of its program, which must be
    that; None: any. `program`: another than the one on this machine."""
    return AgentSpec(
        kind=kind,
        model=model or _tools_of(kind).model,
        version=version,
        max_turns=10,
        timeout_s=TIMEOUT_S,
        options={} if program is None else {"binary": str(program)},
    )


@dataclass(frozen=True)
class _CheckedAgent:
    """The agent, and where its program runs."""

    identity: Identity
    spec: AgentSpec
    sandbox: Sandbox
    tools: ToolCalls


def _list_strings(requests: Sequence[ModelRequest]) -> list[str]:
    return [request.strings for request in requests]


def _make_first_request(run: _CheckedAgent) -> Callable[[Collection[CheckedDelivery]], ModelRequest]:
    """What the agent sends first in a run with only these deliveries, which its model ends at once."""
    ends = [Answer("Done.", run.tools.ends)]

    def run_agent(given: Collection[CheckedDelivery]) -> ModelRequest:
        return _requests(run, ends, list_arm_files(given, run.identity.reach), given)[0]

    return run_agent


def _requests(
    run: _CheckedAgent,
    played: Sequence[Reply],
    files: Mapping[str, str],
    given: Collection[CheckedDelivery] = tuple(CheckedDelivery),
    *,
    preflight: bool = False,
) -> list[ModelRequest]:
    """Those of a run with these files in its workspace."""
    with check_folder() as root, _home(root / "users-home"):
        scratch = laid_out(root, files)
        place = place_of(scratch, empty_environment(root), run.sandbox, hook=True)
        with scripted_model() as server:
            server.last = Answer("Done.", run.tools.ends)
            server.play(*played)
            ended = _run(run.spec, place, server, given, preflight=preflight)
            _refuse_part_of_it(run.identity, ended, server, scratch)
            return list(server.main)


def _tools_of(kind: str) -> ToolCalls:
    known = list_tool_calls()
    if kind not in known:
        raise OperatorError(
            f"the agent {kind!r} has no deliveries that can be measured",
            where="agents check",
            hint=f"one of {', '.join(known)}; `trialfleet agents list` names every kind",
        )
    return known[kind]


def script(tools: ToolCalls) -> list[Reply]:
    """What the model says: it reads a file, then runs the same tests until the hook denies that."""
    return [Answer("Reading.", (tools.read(MODULE),)), *[Answer("Testing.", (tools.run(TESTS),))] * 3]


def preflight_script(tools: ToolCalls) -> list[Reply]:
    """It reads a file twice, which the hook denies, and runs a command, for which it has no tool."""
    read = Answer("Reading.", (tools.read(MODULE),))
    return [read, read, Answer("Running.", (tools.run(PRINTS),))]


@contextmanager
def check_folder() -> Generator[Path]:
    """Below /var/tmp, where the user of the sandbox can walk."""
    root = Path(tempfile.mkdtemp(prefix="trialfleet-check-", dir="/var/tmp"))
    try:
        root.chmod(0o711)
        yield root
    finally:
        remove(root)


@contextmanager
def _home(folder: Path) -> Generator[None]:
    """This process has that HOME, with bait in it."""
    _written(folder, dict.fromkeys(list_home_files(), canary("home")))
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = before


def laid_out(root: Path, files: Mapping[str, str] | None = None) -> Scratch:
    """The scratch folder, with bait in the folder above it. `files`: path -> text; None: every kind that is
    checked."""
    _written(root, dict.fromkeys(list_root_files(), canary("parent")))
    scratch = Scratch.below(root / "scratch")
    scratch.record.mkdir(parents=True)
    texts = {**(workspace_files() if files is None else files), **foreign_settings()}
    tree = {path: TreeEntry(f"{text}\n".encode()) for path, text in texts.items()}
    clone(build_template(root / "template", tree), scratch.workspace)
    (scratch.home / "tmp").mkdir(parents=True)
    _written(scratch.context, context_nodes())
    return scratch


def empty_environment(root: Path) -> Path:
    """An environment that holds nothing: hooks run with our own Python."""
    folder = root / "environment"
    (folder / "bin").mkdir(parents=True)
    (folder / FURNISHINGS).write_text(json.dumps(NOTHING.model_dump(mode="json")))
    return folder


def _written(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def _tool_server(place: MountedScratch, environment: Path) -> McpServer:
    """Its program lies in HOME, as those of conditions do."""
    program = place.scratch.home / tool_server.__name__.rpartition(".")[2]
    program.write_bytes(Path(tool_server.__file__).read_bytes())
    argv = (hook_python(environment, place.mounts), "-I", place.inside(program), TOOL, canary("mcp"))
    return McpServer(argv, base_variables(place.inside(environment), place.inside(place.scratch.home)))


def _run(
    spec: AgentSpec,
    place: MountedScratch,
    server: ScriptedModel,
    given: Collection[CheckedDelivery],
    *,
    preflight: bool,
) -> Exit:
    """The program from its start to its end, behind a gateway as in every attempt."""
    scratch, upstream = place.scratch, Upstream(server.url, _KEY)
    environment = next(m.source for m in place.mounts if (m.source / FURNISHINGS).is_file())
    with ExitStack() as stack:
        gateway = stack.enter_context(
            Gateway(upstream, record=scratch.record, listen=scratch.socket, model=spec.model)
        )
        bare = Setup(
            spec=spec,
            prompt=PROMPT,
            system=None,
            seed=0,
            workspace=scratch.workspace,
            home=scratch.home,
            environment=environment,
            pythonpath=(),
            tests=(),
            hook_context=None,
            hook_log=scratch.home / HOOK_LOG,
            fix=None,
            gateway_url=url_at(_PORT),
            gateway_token=gateway.token,
            record=scratch.record,
        )
        tool = _tool_server(place, environment)
        setup = deliver_canaries(bare, given, nodes=scratch.context, server=tool)
        setup = reading(setup, PROMPT, scratch.record) if preflight else setup
        job = agent(spec.kind).job(setup, read_only(place) if preflight else place.mounts)
        assert job is not None
        return place.sandbox.run(replace(job, gateway=gateway.socket, gateway_port=_PORT, grace_s=0.3))


def _refuse_part_of_it(identity: Identity, ended: Exit, server: ScriptedModel, scratch: Scratch) -> None:
    """Raises `OperatorError` unless the model's whole script was played: nothing is measured then."""
    if not server.script:
        return
    said = [(scratch.record / name).read_text(errors="replace").strip()[-500:] for name in ("stderr", "stdout")]
    raise OperatorError(
        f"{identity.kind} {identity.version} took {len(server.main)} answers of its model and ended "
        f"({ended.cause}, exit code {ended.code}): {said[0] or said[1] or 'it printed nothing'}",
        where=f"agents check {identity.kind}",
        hint=f"the version that trialfleet is written for: {pinned()[identity.kind].install()}",
    )
