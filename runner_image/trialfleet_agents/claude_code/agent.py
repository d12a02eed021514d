"""How Claude Code is started. Flags and what they do: measured with the version of `pinned.tsv`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from trialfleet_agents.claude_code import CLAUDE_CODE
from trialfleet_agents.claude_code.parse import parse_stream
from trialfleet_agents.hook_scripts import HookScripts
from trialfleet_agents.mcp import configuration
from trialfleet_agents.model_agents import ModelAgentOptions, model_identity
from trialfleet_agents.program import checked_version, find_program, shown, version_of
from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, with_mount
from trialfleet_agents.settings_file import with_settings
from trialfleet_deliveries.preflight import MAX_CALLS
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.texts import render
from trialfleet_ledger.errors import FieldError, OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.treatments import merged
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

_VERSION = r"^(\d+\.\d+\.\d+\S*) \(Claude Code\)"
_REACH = Reach(
    root_file=CLAUDE_CODE.files.root,
    nested=True,
    hook_after=True,
    hook_before=True,
    fail_fast=True,
    preflight=True,
    system=True,
    skills=CLAUDE_CODE.files.skills,
    mcp=True,
    slash_commands=True,
)
REVISION = 5  # of the flags and variables below: part of the agent's digest
_ALIASES = ("default", "best", "sonnet", "opus", "haiku", "fable", "opusplan")  # they move with time
_WEB_TOOLS = ("WebSearch", "WebFetch")
HOOK_TOOLS = "Read|Grep|Glob|Edit|MultiEdit|Write|NotebookEdit"
_EDIT_TOOLS = "Bash|Edit|MultiEdit|Write|NotebookEdit"
_READ_ONLY_TOOLS = ("Read", "Glob")
_QUIET = {
    "IS_SANDBOX": "1",  # lets root skip permissions
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # nothing outlives an attempt: its instructions only cost tokens
    "ENABLE_CLAUDEAI_MCP_SERVERS": "0",
    "ENABLE_TOOL_SEARCH": "false",  # every tool, those of MCP servers too, is whole in the first request
}
# Where a project has no CLAUDE.md, this plugin of newer versions loads its AGENTS.md files, those of folders too:
# with it a condition would deliver other files than it names. `options.settings` may switch it on.
_DEFAULT_SETTINGS = {"enabledPlugins": {"agents-md@builtin": False}}


PermissionMode: TypeAlias = Literal["bypassPermissions", "acceptEdits", "dontAsk"]


def _not_plan(mode: object) -> object:
    """Measured: with --print it has no tool that ends plan mode, and nobody to ask in its default mode."""
    if mode in ("plan", "manual", "default"):
        raise FieldError(
            f"permission_mode {mode}: no trial could change a file",
            hint="use acceptEdits or dontAsk; for a plan first, prompt: {template: 'First write a plan. {task}'}",
        )
    return mode


ToolName = Annotated[str, Field(pattern=r"^[A-Z]\w*$")]  # the program splits its list at commas and spaces


class ClaudeCodeOptions(ModelAgentOptions):
    """`agent.options` of kind claude-code.

    `max_retries`: how often the program itself retries a failed request (waits grow to 32 s; 10 are about three
    minutes). `tools`: the only built-in tools that it has; none given: all. `disallowed_tools`: what it has not,
    or not with some arguments. `permission_mode`: what it may do without asking; where that is not everything,
    `allowed_tools` are permitted besides, such as `Bash(pytest *)`. `settings`: of its settings.json; hooks are
    the condition's.
    """

    max_retries: int = Field(default=10, ge=0, le=30)
    tools: tuple[ToolName, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    permission_mode: Annotated[PermissionMode, BeforeValidator(_not_plan)] = "bypassPermissions"
    allowed_tools: tuple[str, ...] = ()
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    provider: str = "anthropic"  # read by the runner, which holds the key
    model_ids: dict[str, str] = Field(
        default_factory=dict
    )  # names as asked for -> the provider's; read by the runner

    @model_validator(mode="after")
    def _allows_something(self) -> Self:
        if self.allowed_tools and self.permission_mode == "bypassPermissions":
            raise FieldError(
                "allowed_tools: without a permission_mode every tool is permitted",
                hint="add permission_mode: dontAsk, or name the tools that it has: tools: [Read, Edit, Bash]",
            )
        return self


def _reach_of(options: ClaudeCodeOptions) -> Reach:
    """Without what needs a tool that the options take away: it would not arrive."""

    def has(*tools: str) -> bool:
        return any(
            (not options.tools or one in options.tools) and one not in options.disallowed_tools for one in tools
        )

    reads, named = has(*HOOK_TOOLS.split("|")), any(one.startswith("mcp__") for one in options.allowed_tools)
    left = {
        "nested": has("Read"),
        "hook_after": reads,
        "hook_before": reads,
        "fail_fast": has("Bash"),
        "skills": _REACH.skills if has("Skill") else None,
        "mcp": named or options.permission_mode == "bypassPermissions",
    }
    return _REACH.model_copy(update=left)


def options_of(spec: AgentSpec) -> ClaudeCodeOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    return checked_options(ClaudeCodeOptions, spec, CLAUDE_CODE)


class ClaudeCode:
    kind = "claude-code"
    reach = _REACH

    def identify(self, spec: AgentSpec) -> Identity:
        """Runs `claude --version`. `OperatorError`: no program, another version, no model or only an alias."""
        options = options_of(spec)
        _require_full_name(spec.model)
        program = find_program(self.kind, options.binary)
        quiet = {"CLAUDE_CONFIG_DIR": "{home}", "DISABLE_AUTOUPDATER": "1"}
        version = checked_version(spec, version_of(self.kind, program, _VERSION, quiet))
        return model_identity(
            spec, version, options, _reach_of(options), revision=REVISION, apart=("provider", "model_ids")
        )

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        options = options_of(setup.spec)
        program = find_program(self.kind, options.binary)
        mounts = with_mount(mounts, shown(program))
        scripts = HookScripts(setup, mounts)
        mounts = scripts.mounts
        folder = setup.home / "trialfleet"
        folder.mkdir(parents=True, exist_ok=True)
        (setup.home / ".claude").mkdir(exist_ok=True)
        settings = folder / "settings.json"
        env = _variables(setup, mounts, options)
        fixed = {**_settings(setup, scripts), "env": env}  # a workspace's settings beat the environment alone
        chosen = with_settings(merged(_DEFAULT_SETTINGS, options.settings), fixed)
        settings.write_text(json.dumps(chosen, indent=1))
        # in every arm, empty or not: with the flag the program gives itself another name in its first sentence
        (folder / "system.md").write_text(setup.system or "\n")
        argv = (inside(program, mounts), *_flags(setup, options, inside(settings, mounts)))
        argv += ("--append-system-prompt-file", inside(folder / "system.md", mounts))
        if setup.mcp and not setup.preflight:
            (folder / "mcp-servers.json").write_text(configuration(setup.mcp))
            argv += ("--mcp-config", inside(folder / "mcp-servers.json", mounts))
        stdin = setup.prompt.encode()  # in no process list, of any length
        return job_of(setup, mounts, argv, env=env, stdin=stdin)

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        return parse_stream(record, exit, workspace)


def _require_full_name(model: str | None) -> None:
    """An alias would mean another model next month. Raises `OperatorError`."""
    if model is None or model.partition("[")[0] in _ALIASES:
        raise OperatorError(
            "no model is named" if model is None else f"{model!r} is an alias, and aliases move",
            where="agent: model",
            hint="write the full name, for example model: claude-sonnet-4-6",
        )


def _flags(setup: Setup, options: ClaudeCodeOptions, settings: str) -> tuple[str, ...]:
    """`project` sends the workspace's CLAUDE.md, `local` its CLAUDE.local.md; no user's."""
    spec = setup.spec
    assert spec.model is not None
    effort = ("--effort", options.effort) if options.effort else ()
    only = _READ_ONLY_TOOLS if setup.preflight else options.tools
    tools = ("--tools", ",".join(only)) if only else ()
    permissions: tuple[str, ...] = ("--dangerously-skip-permissions",)
    if options.permission_mode != "bypassPermissions" and not setup.preflight:
        permissions = ("--permission-mode", options.permission_mode)
        permissions += ("--allowedTools", *options.allowed_tools) if options.allowed_tools else ()
    return (
        *("--print", "--output-format", "stream-json", "--verbose"),
        *("--max-turns", str(spec.max_turns)),
        *permissions,
        "--strict-mcp-config",
        *("--setting-sources", "project,local", "--settings", settings),
        *("--model", spec.model, *effort, *tools),
        *("--disallowedTools", *_WEB_TOOLS, *options.disallowed_tools),
    )


def _settings(setup: Setup, scripts: HookScripts) -> dict[str, object]:
    """Settings outside the workspace. A PostToolUse hook's `additionalContext` follows the tool's result in the
    next request; a PreToolUse hook's denial holds in spite of `--dangerously-skip-permissions`. A Bash command
    that ends with another code than 0 is a PostToolUseFailure."""
    hooks: dict[str, list[object]] = {}
    if setup.hook_context is not None:
        hooks["PostToolUse"] = [scripts.on_read(HOOK_TOOLS)]
    if setup.fail_fast_log is not None:
        before, after = scripts.fail_fast()
        hooks["PreToolUse"] = [scripts.entry("Bash", before)]
        hooks.setdefault("PostToolUse", []).append(scripts.entry(_EDIT_TOOLS, after))
        hooks["PostToolUseFailure"] = [scripts.entry("Bash", after)]
    if setup.preflight:
        log = inside(setup.home / "trialfleet" / "calls.jsonl", scripts.mounts)
        calls = ("--calls", str(MAX_CALLS), "--log", log)
        gate = scripts.command("preflight_gate.py", *calls, *_gate_texts())
        hooks.setdefault("PreToolUse", []).append(scripts.entry(".*", gate))
    return {"hooks": hooks} if hooks else {}


def _gate_texts() -> tuple[str, ...]:
    """The texts that the agent reads when the pre-flight's gate denies a call."""
    return (
        *("--tool-denied", render("preflight_tool_denied")),
        *("--calls-used", render("preflight_calls_used", calls=MAX_CALLS)),
        *("--read-before", render("preflight_read_before")),
        *("--unchecked", render("preflight_call_unchecked")),
    )


def _variables(setup: Setup, mounts: tuple[Mount, ...], options: ClaudeCodeOptions) -> dict[str, str]:
    if setup.gateway_url is None or setup.gateway_token is None:
        raise ValueError("claude-code runs behind the gateway only")
    return {
        **_QUIET,
        "CLAUDE_CONFIG_DIR": inside(setup.home / ".claude", mounts),
        "CLAUDE_CODE_MAX_RETRIES": str(options.max_retries),
        "ANTHROPIC_BASE_URL": setup.gateway_url,
        "ANTHROPIC_AUTH_TOKEN": setup.gateway_token,
    }
