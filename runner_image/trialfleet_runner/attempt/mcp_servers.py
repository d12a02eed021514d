"""The MCP servers of a condition inside an attempt: their files, their command lines, and whether they start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trialfleet_agents.mcp import configuration
from trialfleet_agents.protocol import McpServer, Setup
from trialfleet_agents.sandbox_env import environment, with_mount
from trialfleet_deliveries import hooks
from trialfleet_deliveries.skills import begin_description
from trialfleet_ledger.records.condition_order import McpOrder
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.verdicts import HaltScope, LossClass
from trialfleet_ledger.untrusted import json_object, mapping
from trialfleet_repository.mounts import MountedScratch
from trialfleet_runner.attempt.loss import Lost
from trialfleet_sandbox.interpreter import base_variables, hook_python
from trialfleet_sandbox.protocol import Job, Mount, SandboxError, inside

PROBE = hooks.FOLDER / "mcp_probe.py"
FOLDER = "mcp"  # of HOME's own folder of ours
CHECK_S = 120.0
SHORTEST = 12  # of a description that proves anything
LONGEST = 63  # of a tool's name with its server's, where no agent shortens it


def folder_of(home: Path, server: str) -> Path:
    """Where the files of a server are laid out."""
    return home / "trialfleet" / FOLDER / server


def with_servers(mounts: tuple[Mount, ...], servers: Mapping[str, McpOrder]) -> tuple[Mount, ...]:
    """`mounts` with the folders of this machine that the servers need to see."""
    for server in servers.values():
        for folder in server.mounts:
            mounts = with_mount(mounts, Path(folder))
    return mounts


def resolved(
    servers: Mapping[str, McpOrder], home: Path, built: Path, mounts: tuple[Mount, ...]
) -> dict[str, McpServer]:
    """Their command lines and variables as they are inside the sandbox. `built`: the task's environment."""
    found: dict[str, McpServer] = {}
    for name, server in servers.items():
        places = {"{files}": inside(folder_of(home, name), mounts), "{python}": hook_python(built, mounts)}
        argv = tuple(_filled(word, places) for word in server.command)
        own = {key: _filled(value, places) for key, value in server.env.items()}
        found[name] = McpServer(argv, base_variables(inside(built, mounts), inside(home, mounts)) | own)
    return found


def _filled(word: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        word = word.replace(name, value)
    return word


def _probe(grants: Grants, setup: Setup, out: Path, mounts: tuple[Mount, ...]) -> Job:
    """Starts each server in turn and writes what it says of itself to `out`."""
    folder = setup.home / "trialfleet"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mcp.json").write_text(configuration(setup.mcp))
    (folder / PROBE.name).write_bytes(PROBE.read_bytes())
    python = hook_python(setup.environment, mounts)
    return Job(
        argv=(python, "-I", inside(folder / PROBE.name, mounts), inside(folder / "mcp.json", mounts)),
        env=environment(setup, mounts),
        cwd=inside(setup.workspace, mounts),
        mounts=mounts,
        stdout=out,
        stderr=out.with_suffix(".stderr"),
        timeout_s=CHECK_S,
        memory_bytes=grants.limits.memory_bytes,
        disk_bytes=grants.limits.disk_bytes,
        inodes=grants.limits.inodes,
        followed=True,
    )


Tools = dict[str, dict[str, str]]  # server -> its tools' names -> their descriptions


def check(grants: Grants, setup: Setup, place: MountedScratch, mounts: tuple[Mount, ...]) -> Tools:
    """Start each server once, in the agent's sandbox, before the agent; what tools they have. Raises `Lost(setup)`
    by the server's name: it does not start, or, halting the campaign, it is of another version than planned."""
    if not setup.mcp:
        return {}
    out = place.scratch.record / "mcp.json"
    try:
        place.sandbox.run(_probe(grants, setup, out, mounts))
    except SandboxError as error:
        raise Lost(LossClass.SETUP, f"the sandbox failed: {error}") from error
    text = out.read_text(errors="replace") if out.exists() else ""
    found = json_object(text.strip().rpartition("\n")[2].encode())
    refuse_broken(grants.condition.mcp, found)
    return {name: _tools(mapping(found[name])) for name in grants.condition.mcp}


def _tools(said: Mapping[str, object]) -> dict[str, str]:
    return {name: str(description) for name, description in mapping(said.get("tools")).items()}


def offered_texts(tools: Tools) -> dict[str, str]:
    """The texts that prove that a server's tools were offered: the longest beginning of a description. A server
    whose tools say nothing of themselves has none."""
    found = {name: max(map(begin_description, own.values()), key=len, default="") for name, own in tools.items()}
    return {f"mcp:{name}": text for name, text in found.items() if len(text) >= SHORTEST}


def refuse_broken(servers: Mapping[str, McpOrder], found: Mapping[str, object]) -> None:
    """`found`: what the probe printed, server -> version and tools, or error. Raises `Lost(setup)`; halting where
    an agent would shorten the name of a tool, in a way that only it knows."""
    for name, server in servers.items():
        said = mapping(found.get(name))
        version = said.get("version")
        if version is None:
            why = str(said.get("error") or "the check of the servers ended without a word")
            raise Lost(LossClass.SETUP, f"MCP server {name} does not start: {why}")
        if version != server.version:
            message = f"MCP server {name} is version {version}, the plan says {server.version}"
            raise Lost(LossClass.SETUP, message, halt=HaltScope.CAMPAIGN)
        for tool in mapping(said.get("tools")):
            if len(f"mcp__{name}__{tool}") > LONGEST:
                message = (
                    f"MCP server {name} has a tool {tool[:80]}: both names have more than {LONGEST} characters"
                )
                raise Lost(LossClass.SETUP, f"{message}; give the server a shorter one", halt=HaltScope.CAMPAIGN)
