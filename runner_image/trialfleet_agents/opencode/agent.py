"""OpenCode as an agent. Configuration, flags and what reaches the model: measured with version 1.18.33."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from trialfleet_agents.hook_scripts import HookScripts
from trialfleet_agents.mcp import STARTS_S
from trialfleet_agents.model_agents import ModelAgentOptions, model_identity, require_model
from trialfleet_agents.opencode import OPENCODE
from trialfleet_agents.program import checked_version, find_program, shown, version_of
from trialfleet_agents.protocol import Identity, McpServer, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, stop_of, with_mount
from trialfleet_agents.settings_file import with_settings
from trialfleet_agents.tool_steps import Kind, ToolSteps, claimed, clock_of, first_text
from trialfleet_deliveries import hooks
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage, count
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.untrusted import ANSWER_CHARS, json_object, lines, mapping, plain
from trialfleet_sandbox.interpreter import SYSTEM_PATH
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

REVISION = 3  # of the flags and settings below: part of the agent's digest
_VERSION = r"^(\d+\.\d+\.\d+\S*)"
_REACH = Reach(
    root_file=OPENCODE.files.root,
    nested=True,
    nested_files=OPENCODE.files.nested,
    hook_after=True,
    fail_fast=True,
    system=True,
    skills=OPENCODE.files.skills,
    mcp=True,
)
_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    # Of two skills of one name, one here and one in .agents/skills, it takes the one that it happens to read last.
    "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",  # the workspace's settings and plugins, and its root file: see _told
}
_WEB_TOOLS = ("webfetch", "websearch")
_TOKEN = "TRIALFLEET_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable
_PLUGIN_PACKAGE = "@opencode-ai/plugin"
_KINDS: dict[str, Kind] = {
    "read": "read",
    **dict.fromkeys(("edit", "write", "apply_patch", "multiedit"), "edit"),
    "bash": "run",
    **dict.fromkeys(("grep", "glob", "list"), "search"),
}


class OpenCodeOptions(ModelAgentOptions):
    """`agent.options` of kind opencode.

    `wire`: the API of an OpenAI-compatible provider. `effort`: of the model, by OpenCode's name of it. `settings`:
    of its opencode.json.
    """

    provider: Literal["anthropic", "openai", "google"] = "anthropic"  # read by the runner, which holds the key
    wire: Literal["responses", "completions"] = "responses"
    effort: str | None = Field(default=None, pattern=r"^[a-z]+$")


def options_of(spec: AgentSpec) -> OpenCodeOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    return checked_options(OpenCodeOptions, spec, OPENCODE)


class OpenCode:
    kind = "opencode"
    reach = _REACH

    def identify(self, spec: AgentSpec) -> Identity:
        """Runs `opencode --version`. Raises `OperatorError`: no program, no ripgrep, another version, no model."""
        options = options_of(spec)
        require_model(spec, example="claude-sonnet-4-6")
        program = find_program(self.kind, options.binary)
        version = checked_version(spec, version_of(self.kind, program, _VERSION, _QUIET))
        if shutil.which("rg", path=SYSTEM_PATH) is None:
            raise OperatorError(
                "OpenCode searches with ripgrep, which it would download, and a sandbox has no network",
                where="agent: opencode",
                hint="apt-get install ripgrep",
            )
        return model_identity(spec, version, options, _REACH, revision=REVISION)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        if setup.gateway_url is None or setup.gateway_token is None:
            raise ValueError("opencode runs behind the gateway only")
        options = options_of(setup.spec)
        program = find_program(self.kind, options.binary)
        scripts = HookScripts(setup, with_mount(mounts, shown(program)))
        folder = setup.home / ".config/opencode"
        _install(folder, setup, scripts, version_of(self.kind, program, _VERSION, _QUIET))
        settings = with_settings(options.settings, _settings(setup, options, scripts.mounts))
        (folder / "opencode.json").write_text(json.dumps(settings))
        env = {**_QUIET, _TOKEN: setup.gateway_token}
        effort = ("--variant", options.effort) if options.effort else ()
        model = f"{_provider(options)}/{setup.spec.model}"
        flags = ("--format", "json", "--auto", "--title", "trial", "--model", model, *effort)
        argv = (inside(program, scripts.mounts), "run", *flags)
        return job_of(setup, scripts.mounts, argv, env=env, stdin=setup.prompt.encode())

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        return parse_events(record / "stdout", exit, workspace)


def _provider(options: OpenCodeOptions) -> str:
    """OpenCode's own name, under which it knows the models' limits; `trialfleet` for any other server."""
    return "trialfleet" if (options.provider, options.wire) == ("openai", "completions") else options.provider


def _settings(setup: Setup, options: OpenCodeOptions, mounts: tuple[Mount, ...]) -> dict[str, Any]:
    """`opencode.json`, without OpenCode's limit of steps: it adds a prompt, and the gateway's limit does not."""
    name, model = _provider(options), setup.spec.model
    path = "/v1beta" if options.provider == "google" else "/v1"
    provider: dict[str, Any] = {
        "options": {"baseURL": f"{setup.gateway_url}{path}", "apiKey": f"{{env:{_TOKEN}}}"},
        "models": {model: {}},
    }
    if name == "trialfleet":
        provider["npm"] = "@ai-sdk/openai-compatible"
    return {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "enabled_providers": [name],
        "provider": {name: provider},
        "small_model": f"{name}/{model}",
        "instructions": _told(setup, mounts),
        "tools": dict.fromkeys(_WEB_TOOLS, False),
        "permission": dict.fromkeys(_WEB_TOOLS, "deny"),
        "agent": {"build": {"steps": setup.spec.max_turns}},
        "mcp": {name: _server(one) for name, one in setup.mcp.items()},
    }


def _server(one: McpServer) -> dict[str, Any]:
    milliseconds = STARTS_S * 1000
    return {"type": "local", "command": list(one.argv), "environment": dict(one.env), "timeout": milliseconds}


def _told(setup: Setup, mounts: tuple[Mount, ...]) -> list[str]:
    """Files for the system prompt: the root file that OpenCode would choose, and the condition's own text."""
    root = [setup.workspace / name for name in OPENCODE.files.roots]
    files = [path for path in root if path.is_file()][:1]
    if setup.system:
        (setup.home / "trialfleet").mkdir(exist_ok=True)
        files.append(setup.home / "trialfleet/system.md")
        files[-1].write_text(setup.system)
    return [inside(path, mounts) for path in files]


def _install(folder: Path, setup: Setup, scripts: HookScripts, version: str) -> None:
    """The plugin with the hooks, and what keeps OpenCode from fetching its plugin package: without a network it
    tries for more than a minute before it starts."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"dependencies": {_PLUGIN_PACKAGE: version}}
    (folder / "node_modules").mkdir(exist_ok=True)
    (folder / "package.json").write_text(json.dumps(wanted))
    (folder / "package-lock.json").write_text(json.dumps({"packages": {"": wanted}}))
    commands: dict[str, list[str]] = {"before": [], "after": []}
    if setup.hook_context is not None:
        context, log = inside(setup.hook_context, scripts.mounts), inside(setup.hook_log, scripts.mounts)
        commands["after"].append(scripts.command("push_on_read.py", "--context", context, "--log", log))
    if setup.fail_fast_log is not None:
        before, after = scripts.fail_fast()
        commands["before"].append(before)
        commands["after"].append(after)
    if commands["after"]:
        (folder / "plugins").mkdir(exist_ok=True)
        (folder / "plugins/trialfleet.js").write_bytes((hooks.FOLDER / "opencode_plugin.js").read_bytes())
        (folder / "trialfleet-hooks.json").write_text(json.dumps(commands))


def parse_events(stdout: Path, ended: Exit | None, workspace: Path) -> Parsed:
    """The JSON lines of `run --format json`. One message is one turn."""
    steps = ToolSteps(_KINDS, (str(workspace), "/workspace"))
    turn_of: dict[str, int] = {}
    usage, malformed, reason, answer = TokenUsage(), 0, None, None
    for line in lines(stdout):
        event = json_object(line)
        malformed += not event and bool(line.strip())
        part, at_s = mapping(event.get("part")), steps.after(clock_of(event.get("timestamp")))
        name = part.get("messageID")
        if not isinstance(name, str):
            reason = "error" if event.get("type") == "error" else reason
            continue
        turn = turn_of.setdefault(name, len(turn_of) + 1)
        match event.get("type"):
            case "text" if (text := first_text(part, "text")) is not None:
                steps.message(turn, at_s, text)
                answer = plain(text, ANSWER_CHARS)
            case "tool_use":
                _tool(steps, part, turn, at_s)
            case "step_finish":
                usage, reason = usage + _usage(mapping(part.get("tokens"))), part.get("reason")
            case _:
                pass
    seen = bool(turn_of)
    return Parsed(
        steps=tuple(steps.steps),
        turns=len(turn_of) if seen else None,
        tool_calls=steps.calls if seen else None,
        **claimed(usage if seen else None),
        stop=_stop(reason, ended),
        malformed_lines=malformed,
        answer=answer,
    )


def _tool(steps: ToolSteps, part: dict[str, Any], turn: int, at_s: float | None) -> None:
    state, use = mapping(part.get("state")), str(part.get("callID"))
    steps.call(turn, at_s, use, str(part.get("tool")), mapping(state.get("input")))
    if state.get("status") == "error":
        steps.failed(use, first_text(state, "error") or "")


def _usage(tokens: dict[str, Any]) -> TokenUsage:
    """Its output excludes the reasoning; ours does not."""
    cache = mapping(tokens.get("cache"))
    output = count(tokens, "output") + count(tokens, "reasoning")
    return TokenUsage(count(tokens, "input"), output, count(cache, "read"), count(cache, "write"))


def _stop(reason: object, ended: Exit | None) -> Stop | None:
    """Its exit code is 0 after some errors."""
    said = stop_of(ended)
    return Stop.ERROR if said is Stop.FINISHED and reason in (None, "error") else said
