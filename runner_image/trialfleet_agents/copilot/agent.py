"""GitHub Copilot CLI as an agent, offline: no GitHub, only the gateway. Measured with version 1.0.102."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from trialfleet_agents.copilot import COPILOT
from trialfleet_agents.mcp import configuration
from trialfleet_agents.model_agents import ModelAgentOptions, model_identity, require_model
from trialfleet_agents.program import checked_version, find_program, version_of
from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, stop_of, with_mount
from trialfleet_agents.settings_file import with_settings
from trialfleet_agents.tool_steps import Kind, ToolSteps, claimed, clock_of, first_text
from trialfleet_agents.translated_hooks import TranslatedHooks
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.untrusted import ANSWER_CHARS, json_object, lines, mapping, objects, plain
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

REVISION = 3  # of the flags and variables below: part of the agent's digest
_VERSION = r"^GitHub Copilot CLI (\d+\.\d+\.\d+(?:-\w+)?)"
_REACH = Reach(
    root_file=COPILOT.files.root,
    nested=True,
    nested_files=COPILOT.files.nested,
    hook_after=True,
    hook_before=True,
    fail_fast=True,
    system=True,
    skills=COPILOT.files.skills,
    mcp=True,
)
_NATIVE = "copilot-linux*/copilot"  # next to the npm package, which only starts it through Node
_UNPACKED = "unpacked"  # next to node_modules, written by install.sh; without it every attempt unpacks 235 MB
_QUIET = {
    "COPILOT_OFFLINE": "true",  # no login, no telemetry, no update, no web tools, no GitHub server
    "COPILOT_AUTO_UPDATE": "false",
    "NO_COLOR": "1",
}
_FLAGS = (
    *("--output-format", "json", "--allow-all-tools", "--allow-all-paths", "--no-ask-user", "--no-auto-update"),
    *("--disable-builtin-mcps", "--no-remote", "--no-bash-env", "--no-color"),
    "--secret-env-vars=COPILOT_PROVIDER_API_KEY",  # no shell of it sees the gateway's token
)
# Its tokens are in no event, only in a file that it writes at the end: printed as one more line.
_SCRIPT = '"$@"; code=$?; test -f "$COPILOT_USAGE" && tr -d "\\n" <"$COPILOT_USAGE"; exit $code'
_HOOKED = "Read|Edit|Write|Grep|Glob"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("view",), "read"),
    **dict.fromkeys(("edit", "create", "apply_patch", "str_replace_editor"), "edit"),
    "bash": "run",
    **dict.fromkeys(("grep", "rg", "glob"), "search"),
}
_USAGE = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


class CopilotOptions(ModelAgentOptions):
    """`agent.options` of kind copilot.

    `wire`: the API of an OpenAI-compatible provider. `model_id`: the model whose limits and prompts it assumes,
    where its own catalogue does not know the name in `agent.model`. `settings`: of its settings.json.
    """

    provider: Literal["openai", "anthropic"] = "openai"  # read by the runner, which holds the key
    wire: Literal["responses", "completions"] = "responses"
    model_id: str | None = None
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


def options_of(spec: AgentSpec) -> CopilotOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    return checked_options(CopilotOptions, spec, COPILOT)


class Copilot:
    kind = "copilot"
    reach = _REACH

    def identify(self, spec: AgentSpec) -> Identity:
        """Runs `copilot --version`. Raises `OperatorError`: no program, another version, or no model."""
        options = options_of(spec)
        require_model(spec, example="gpt-5.5")
        program = native(options)
        env = _QUIET | ({"COPILOT_PKG_CACHE_HOME": str(folder)} if (folder := unpacked(program)) else {})
        version = checked_version(spec, version_of(self.kind, program, _VERSION, env))
        return model_identity(spec, version, options, _REACH, revision=REVISION)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        options = options_of(setup.spec)
        program = native(options)
        folder = unpacked(program)
        mounts = with_mount(mounts, program)
        mounts = with_mount(mounts, folder) if folder else mounts
        hooks = TranslatedHooks(setup, mounts, "copilot")
        home = setup.home / ".copilot"
        (home / "hooks").mkdir(parents=True, exist_ok=True)
        (home / "hooks/trialfleet.json").write_text(json.dumps({"version": 1, "hooks": _hooks(setup, hooks)}))
        (home / "settings.json").write_text(json.dumps(with_settings(options.settings, {})))
        if setup.mcp:
            (home / "mcp-config.json").write_text(configuration(setup.mcp, tools=["*"]))
        if setup.system:
            (home / "copilot-instructions.md").write_text(setup.system)  # becomes part of the system prompt
        usage = inside(setup.home / "copilot-usage.json", mounts)
        env = _variables(setup, options) | {"COPILOT_HOME": inside(home, mounts), "COPILOT_USAGE": usage}
        env |= {"COPILOT_PKG_CACHE_HOME": inside(folder, mounts)} if folder else {}
        effort = ("--reasoning-effort", options.effort) if options.effort else ()
        argv = (inside(program, mounts), *_FLAGS, *effort, "--usage-output-file", usage)
        wrapped = ("/bin/sh", "-c", _SCRIPT, "sh", *argv)
        return job_of(setup, hooks.mounts, wrapped, env=env, stdin=setup.prompt.encode())

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        return parse_events(record / "stdout", exit, workspace)


def native(options: CopilotOptions) -> Path:
    """The program itself, which needs no Node."""
    found = find_program("copilot", options.binary)
    return next(iter(sorted(found.parents[1].glob(_NATIVE))), found) if len(found.parents) > 1 else found


def unpacked(program: Path) -> Path | None:
    """The folder into which its package was unpacked when it was installed."""
    folder = program.parents[3] / _UNPACKED if len(program.parents) > 3 else program / _UNPACKED
    return folder if (folder / "pkg").is_dir() else None


def _variables(setup: Setup, options: CopilotOptions) -> dict[str, str]:
    if setup.gateway_url is None or setup.gateway_token is None or setup.spec.model is None:
        raise ValueError("copilot runs behind the gateway only")
    path = "" if options.provider == "anthropic" else "/v1"
    found = {
        **_QUIET,
        "COPILOT_PROVIDER_BASE_URL": setup.gateway_url + path,
        "COPILOT_PROVIDER_TYPE": options.provider,
        "COPILOT_PROVIDER_API_KEY": setup.gateway_token,
        "COPILOT_PROVIDER_WIRE_API": options.wire,
        "COPILOT_MODEL": setup.spec.model,
    }
    return found | ({"COPILOT_PROVIDER_MODEL_ID": options.model_id} if options.model_id else {})


def _hooks(setup: Setup, scripts: TranslatedHooks) -> dict[str, list[object]]:
    """Its hooks know Claude Code's events and tools by name. A command that fails has a PostToolUse too."""
    found: dict[str, list[object]] = {}
    if setup.hook_context is not None:
        found["PostToolUse"] = [scripts.on_read(_HOOKED)]
    if setup.fail_fast_log is not None:
        before, after = scripts.fail_fast()
        found["PreToolUse"] = [scripts.entry("Bash", before)]
        found.setdefault("PostToolUse", []).append(scripts.entry("Bash|Edit|Write", after))
    return found


def parse_events(stdout: Path, ended: Exit | None, workspace: Path) -> Parsed:
    """The JSON lines of `--output-format json`. Events of sub-agents name their parent call: they are no turns."""
    steps = ToolSteps(_KINDS, (str(workspace), "/workspace"))
    turns = malformed = 0
    answer, exit_code, usage = None, None, None
    for line in lines(stdout):
        event = json_object(line)
        malformed += not event and bool(line.strip())
        data, at_s = mapping(event.get("data")), steps.after(clock_of(event.get("timestamp")))
        nested = isinstance(data.get("parentToolCallId"), str)
        match event.get("type"):
            case "assistant.message":
                turns += not nested
                answer = _take(steps, data, max(1, turns), at_s) if not nested else answer
            case "tool.execution_complete" if data.get("success") is False:
                words = first_text(mapping(data.get("error")), "message") or ""
                steps.failed(str(data.get("toolCallId")), words)
            case "result":
                exit_code = event.get("exitCode")
            case None if "modelMetrics" in event:
                usage = _usage(event)
            case _:
                pass
    seen = turns > 0 or exit_code is not None
    return Parsed(
        steps=tuple(steps.steps),
        turns=turns if seen else None,
        tool_calls=steps.calls if seen else None,
        **claimed(usage),
        stop=_stop(exit_code, ended),
        malformed_lines=malformed,
        answer=answer,
    )


def _take(steps: ToolSteps, data: dict[str, Any], turn: int, at_s: float | None) -> str | None:
    """One answer of the model: its text, and its tool calls. Returns the text."""
    text = first_text(data, "content")
    if text is not None:
        steps.message(turn, at_s, text)
    for call in objects(data.get("toolRequests")):
        given = call.get("arguments")
        read = {"input": given} if isinstance(given, str) else mapping(given)  # a patch is free text
        steps.call(turn, at_s, str(call.get("toolCallId")), str(call.get("name")), read)
    return None if text is None else plain(text, ANSWER_CHARS)


def _usage(event: dict[str, Any]) -> TokenUsage:
    """Sums over models. Its input includes what was cached."""
    total = TokenUsage()
    for model in mapping(event.get("modelMetrics")).values():
        total += TokenUsage.of_kinds(mapping(mapping(model).get("usage")), _USAGE)
    fresh = max(0, total.input - total.cache_read - total.cache_write)
    return TokenUsage(fresh, total.output, total.cache_read, total.cache_write)


def _stop(code: object, ended: Exit | None) -> Stop | None:
    said = stop_of(ended)
    if said is Stop.FINISHED and code != 0:
        return Stop.ERROR  # it never leaves by itself without a result
    return said
