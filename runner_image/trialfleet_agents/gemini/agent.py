"""Gemini CLI as an agent. Settings, flags and what reaches the model: measured with version 0.61.0."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from trialfleet_agents.gemini import GEMINI
from trialfleet_agents.hook_scripts import TIMEOUT_S
from trialfleet_agents.mcp import described
from trialfleet_agents.model_agents import ModelAgentOptions, model_identity
from trialfleet_agents.program import checked_version, find_program, shown, version_of
from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, stop_of, with_mount
from trialfleet_agents.settings_file import with_settings
from trialfleet_agents.tool_steps import Kind, ToolSteps, claimed, clock_of, first_text
from trialfleet_agents.translated_hooks import TranslatedHooks
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage, count
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.treatments import merged
from trialfleet_ledger.untrusted import ANSWER_CHARS, json_object, lines, mapping, plain
from trialfleet_sandbox.interpreter import SYSTEM_PATH
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

# Names for which it asks for another model: the gateway would count no turn of the planned one.
_RENAMED = ("gemini-3-pro-preview", "pro", "flash", "flash-lite")
_NO_LEVELS = re.compile(r"gemini-[12]\b")  # models whose thinking has a budget, or that do not think
_OLDEST_NODE = 20  # Debian 12 has 18
REVISION = 2  # of the flags and settings below: part of the agent's digest
_VERSION = r"^(\d+\.\d+\.\d+\S*)"
_REACH = Reach(
    root_file=GEMINI.files.root,
    nested=True,
    hook_after=True,
    fail_fast=True,
    system=True,
    skills=GEMINI.files.skills,
    mcp=True,
)
_WEB_TOOLS = ("google_web_search", "web_fetch")  # they ask the model's provider to search
_FLAGS = ("--skip-trust", "--yolo", "--output-format", "stream-json")
_HOOKED = "read_file|replace|write_file|grep_search|glob|list_directory"
_FAIL_FAST = "run_shell_command|replace|write_file"
_TIMEOUT_MS = TIMEOUT_S * 1000
_TURNS_SPENT = "FatalTurnLimitedError"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("read_file", "read_many_files"), "read"),
    **dict.fromkeys(("replace", "write_file"), "edit"),
    "run_shell_command": "run",
    **dict.fromkeys(("grep_search", "search_file_content", "glob", "list_directory"), "search"),
}


class GeminiOptions(ModelAgentOptions):
    """`agent.options` of kind gemini.

    `max_retries`: how often the program itself repeats a failed request. `settings`: of its settings.json.
    `effort`: the level of thinking of Gemini 3 models.
    """

    provider: Literal["google"] = "google"  # read by the runner, which holds the key
    max_retries: int = Field(default=9, ge=0, le=9)
    effort: Literal["minimal", "low", "medium", "high"] | None = None


def options_of(spec: AgentSpec) -> GeminiOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    return checked_options(GeminiOptions, spec, GEMINI)


class GeminiCli:
    kind = "gemini"
    reach = _REACH

    def identify(self, spec: AgentSpec) -> Identity:
        """Runs `gemini --version`. Raises `OperatorError`: no program, no Node, another version, or no model."""
        options = options_of(spec)
        if spec.model is None or spec.model.startswith("auto") or spec.model in _RENAMED:
            said = (
                "no model is named" if spec.model is None else f"{spec.model!r} lets Gemini CLI choose the model"
            )
            hint = "for example model: gemini-2.5-pro or gemini-3.1-pro-preview"
            raise OperatorError(said, where="agent: model", hint=hint)
        if options.effort is not None and _NO_LEVELS.match(spec.model):
            raise OperatorError(
                f"{spec.model} has no levels of thinking",
                where="agent: options.effort",
                hint="leave effort out, name a Gemini 3 model, or set a thinkingBudget in settings.modelConfigs",
            )
        program, node = find_program(self.kind, options.binary), _node()
        # Without the second, it starts a second Node that says it.
        env = {"PATH": f"{node.parent}:{os.defpath}", "GEMINI_CLI_NO_RELAUNCH": "true"}
        version = checked_version(spec, version_of(self.kind, program, _VERSION, env))
        return model_identity(spec, version, options, _REACH, revision=REVISION)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        """With the system's Node: the first on PATH may be an old one of the task."""
        if setup.gateway_url is None or setup.gateway_token is None or setup.spec.model is None:
            raise ValueError("gemini runs behind the gateway only")
        options = options_of(setup.spec)
        program = find_program(self.kind, options.binary)
        hooks = TranslatedHooks(setup, with_mount(mounts, shown(program)), "gemini")
        folder = setup.home / ".gemini"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(
            json.dumps(with_settings(_thinking(options), _settings(setup, options, hooks)))
        )
        if setup.system:
            (folder / "GEMINI.md").write_text(setup.system)  # becomes part of the system instruction
        env = {
            "GEMINI_CLI_HOME": inside(setup.home, mounts),
            "GOOGLE_GEMINI_BASE_URL": setup.gateway_url,
            "GEMINI_API_KEY": setup.gateway_token,
            "NO_COLOR": "1",
        }
        argv = (str(_node()), inside(program, hooks.mounts), *_FLAGS, "--model", setup.spec.model)
        return job_of(setup, hooks.mounts, argv, env=env, stdin=setup.prompt.encode())

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        return parse_events(record / "stdout", exit, workspace)


def _node() -> Path:
    found = shutil.which("node", path=SYSTEM_PATH)
    version = version_of("gemini", Path(found), r"v?(\d+(?:\.\d+)*)") if found else None
    if found is None or version is None or int(version.partition(".")[0]) < _OLDEST_NODE:
        there = f"{found} is {version}" if found else f"there is none in {SYSTEM_PATH}"
        raise OperatorError(
            f"Gemini CLI needs Node.js {_OLDEST_NODE} or newer, and {there}",
            where="agent: gemini",
            hint=f"install such a Node.js in {SYSTEM_PATH}; every sandbox shows these folders",
        )
    return Path(found)


def _settings(setup: Setup, options: GeminiOptions, scripts: TranslatedHooks) -> dict[str, Any]:
    """`settings.json` in the HOME of the attempt."""
    return {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            "retryFetchErrors": True,
            "maxAttempts": options.max_retries + 1,
        },
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "advanced": {"ignoreLocalEnv": True},  # a .env of the repository: proxies, keys, containers
        "tools": {"exclude": list(_WEB_TOOLS)},
        "model": {"maxSessionTurns": setup.spec.max_turns},
        "hooks": _hooks(setup, scripts),
        "mcpServers": described(setup.mcp),
    }


def _thinking(options: GeminiOptions) -> dict[str, Any]:
    """The campaign's settings, with the effort as a rule for the requests of the agent's loop. A rule for a model
    would miss those that Gemini CLI asks for by another name. The settings' own rules come after it."""
    if options.effort is None:
        return options.settings
    config = {"generateContentConfig": {"thinkingConfig": {"thinkingLevel": options.effort.upper()}}}
    rule = {"match": {"overrideScope": "core"}, "modelConfig": config}
    rules = mapping(options.settings.get("modelConfigs")).get("customOverrides", [])
    return merged(options.settings, {"modelConfigs": {"customOverrides": [rule, *rules]}})


def _hooks(setup: Setup, scripts: TranslatedHooks) -> dict[str, list[object]]:
    """Context reaches the model after a tool only; a denial reaches it as the tool's error."""
    found: dict[str, list[object]] = {}
    if setup.hook_context is not None:
        found["AfterTool"] = [scripts.on_read(_HOOKED, timeout=_TIMEOUT_MS)]
    if setup.fail_fast_log is not None:
        before, after = scripts.fail_fast()
        found["BeforeTool"] = [scripts.entry("run_shell_command", before, timeout=_TIMEOUT_MS)]
        found.setdefault("AfterTool", []).append(scripts.entry(_FAIL_FAST, after, timeout=_TIMEOUT_MS))
    return found


def parse_events(stdout: Path, ended: Exit | None, workspace: Path) -> Parsed:
    """The JSON lines of `--output-format stream-json`. No event says where an answer begins: what follows the
    result of a tool is a new one."""
    steps = ToolSteps(_KINDS, (str(workspace), "/workspace"))
    turns, malformed, answering = 0, 0, False
    words: list[str] = []
    result: dict[str, Any] = {}
    for line in lines(stdout):
        event = json_object(line)
        malformed += not event and bool(line.strip())
        at_s, kind = steps.after(clock_of(event.get("timestamp"))), event.get("type")
        said = kind == "message" and event.get("role") == "assistant"
        if (said or kind == "tool_use") and not answering:
            turns, answering, words = turns + 1, True, []
        if said and (text := first_text(event, "content")) is not None:
            words.append(text)
            steps.message(max(1, turns), at_s, text)
        elif kind == "tool_use":
            given = mapping(event.get("parameters"))
            steps.call(turns, at_s, str(event.get("tool_id")), str(event.get("tool_name")), given)
        elif kind == "tool_result":
            answering = False
            _result(steps, event)
        elif kind == "result":
            result = event
    seen = turns > 0 or bool(result)
    return Parsed(
        steps=tuple(steps.steps),
        turns=turns if seen else None,
        tool_calls=steps.calls if seen else None,
        **claimed(_usage(mapping(result.get("stats"))) if result else None),
        stop=_stop(result, ended),
        malformed_lines=malformed,
        answer=plain("".join(words), ANSWER_CHARS) if words else None,
    )


def _result(steps: ToolSteps, event: dict[str, Any]) -> None:
    if event.get("status") == "error":
        steps.failed(str(event.get("tool_id")), first_text(mapping(event.get("error")), "message") or "")


def _usage(stats: dict[str, Any]) -> TokenUsage:
    """Its input includes what was cached; its output leaves out the thoughts, which only the total has."""
    sent, cached = count(stats, "input_tokens"), count(stats, "cached")
    output = max(count(stats, "output_tokens"), count(stats, "total_tokens") - sent)
    return TokenUsage(max(0, sent - cached), output, min(sent, cached))


def _stop(result: dict[str, Any], ended: Exit | None) -> Stop | None:
    if mapping(result.get("error")).get("type") == _TURNS_SPENT:
        return Stop.MAX_TURNS
    said = stop_of(ended)
    return Stop.ERROR if said is Stop.FINISHED and result.get("status") != "success" else said
