"""Codex as an agent. Flags, configuration and what reaches the model: measured with version 0.169.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from trialfleet_agents import model_calls
from trialfleet_agents.codex import CODEX
from trialfleet_agents.hook_scripts import HookScripts
from trialfleet_agents.mcp import STARTS_S, described
from trialfleet_agents.model_agents import ModelAgentOptions, model_identity, require_model
from trialfleet_agents.pinned import pinned
from trialfleet_agents.program import checked_version, find_program, output_of, version_of
from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, stop_of, with_mount
from trialfleet_agents.settings_file import with_settings
from trialfleet_agents.toml import toml
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage, count
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.untrusted import ANSWER_CHARS, json_object, lines, mapping, objects, plain
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

REVISION = 2  # of the flags and settings below: part of the agent's digest
_VERSION = r"^codex-cli (\S+)"
_REACH = Reach(
    root_file=CODEX.files.root,
    hook_after=True,
    hook_before=True,
    fail_fast=True,
    system=True,
    skills=CODEX.files.skills,
    mcp=True,
)
_MODELS = "trialfleet-models.json"
_NATIVE = "codex-linux-*/vendor/*/bin/codex"  # next to the npm package, which only starts it through Node
_TOKEN = "OPENAI_API_KEY"  # noqa: S105 - the name of a variable
# What calls its maker's servers, starts other agents, or is a tool that the provider would run.
_OFF = (
    *("api_key_model_discovery", "apps", "daemon_auto_start", "enable_request_compression", "goals"),
    *("image_generation", "multi_agent", "plugins", "remote_plugin", "skill_search", "tool_suggest"),
)
_TOOL_ITEMS = ("command_execution", "file_change", "mcp_tool_call")
_KINDS = {"exec_command": "run", "write_stdin": "run", "apply_patch": "edit", "view_image": "read"}


class CodexOptions(ModelAgentOptions):
    """`agent.options` of kind codex.

    `max_retries`: how often the program itself repeats a failed request. `settings`: of its config.toml.
    """

    max_retries: int = Field(default=10, ge=0, le=100)
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    provider: str | None = None  # read by the runner, which holds the key


def options_of(spec: AgentSpec) -> CodexOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    return checked_options(CodexOptions, spec, CODEX)


class Codex:
    kind = "codex"
    reach = _REACH

    def identify(self, spec: AgentSpec) -> Identity:
        """Runs `codex --version`. Raises `OperatorError`: no program, another version, or no model."""
        options = options_of(spec)
        require_model(spec, example="gpt-5.5")
        version = checked_version(spec, version_of(self.kind, native(options), _VERSION))
        return model_identity(spec, version, options, _REACH, revision=REVISION, apart=("provider",))

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        if setup.gateway_url is None or setup.gateway_token is None:
            raise ValueError("codex runs behind the gateway only")
        options = options_of(setup.spec)
        program = native(options)
        mounts = with_mount(mounts, _shown(program))
        scripts = HookScripts(setup, mounts)
        home = setup.home / ".codex"
        home.mkdir(exist_ok=True)
        (home / _MODELS).write_text(direct_tools(output_of(self.kind, program, "debug", "models", "--bundled")))
        settings = _settings(setup, options) | {
            # in every arm: with it Codex says more to the model, which would come along with servers otherwise
            "model_catalog_json": inside(home / _MODELS, mounts),
            **({"mcp_servers": described(setup.mcp, startup_timeout_sec=STARTS_S)} if setup.mcp else {}),
        }
        (home / "config.toml").write_text(toml(with_settings(options.settings, settings)))
        (home / "hooks.json").write_text(json.dumps({"hooks": _hooks(setup, scripts)}))
        env = {"CODEX_HOME": inside(home, mounts), _TOKEN: setup.gateway_token}
        argv = (inside(program, mounts), "exec", "--json", "--ephemeral", *_FLAGS, "-")
        return job_of(setup, scripts.mounts, argv, env=env, stdin=setup.prompt.encode())

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """Steps from the gateway's record; counts and the stop from the program's own JSON lines."""
        steps = model_calls.steps(record, (str(workspace), "/workspace"), _KINDS)
        return _counted(record / "stdout", exit).model_copy(update={"steps": steps})


_FLAGS = (
    "--skip-git-repo-check",
    "--strict-config",
    "--dangerously-bypass-approvals-and-sandbox",  # the sandbox is ours
    "--dangerously-bypass-hook-trust",  # the hooks are ours; those of the workspace are not loaded
)


def native(options: CodexOptions) -> Path:
    """The program itself, which needs no Node."""
    found = find_program("codex", options.binary)
    return next(iter(sorted(found.parents[2].glob(_NATIVE))), found) if len(found.parents) > 2 else found


def _shown(program: Path) -> Path:
    """With the tools that its package brings along."""
    folder = program.parents[1]
    return folder if (folder / "codex-package.json").is_file() else program


def _settings(setup: Setup, options: CodexOptions) -> dict[str, Any]:
    """`config.toml`. A login shell would put the system's PATH in the place of the task's."""
    return {
        "model": setup.spec.model,
        "model_provider": "trialfleet",
        "web_search": "disabled",
        "check_for_update_on_startup": False,
        "allow_login_shell": False,
        **({"model_reasoning_effort": options.effort} if options.effort else {}),
        **({"developer_instructions": setup.system} if setup.system else {}),
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "features": dict.fromkeys(_OFF, False),
        "shell_environment_policy": {"exclude": [_TOKEN]},
        "model_providers": {"trialfleet": _provider(setup, options)},
    }


def _provider(setup: Setup, options: CodexOptions) -> dict[str, Any]:
    """The gateway, as Codex describes a provider of models."""
    return {
        "name": "trialfleet",
        "base_url": f"{setup.gateway_url}/v1",
        "env_key": _TOKEN,
        "wire_api": "responses",
        "request_max_retries": options.max_retries,
        "stream_max_retries": options.max_retries,
    }


def direct_tools(models: str) -> str:
    """Codex's list of the models that it knows, none of which searches for tools: every tool of an MCP server is
    in the first request, as with other agents. Raises `OperatorError` where it lists none: Codex would end.

    >>> direct_tools('{"models": [{"slug": "m", "supports_search_tool": true}]}')
    '{"models": [{"slug": "m", "supports_search_tool": false}]}'
    """
    known = [*objects(json_object(models.encode()).get("models"))]
    if not known:
        raise OperatorError(
            "`codex debug models --bundled` lists no model", hint=f"install {pinned()['codex'].install()}"
        )
    return json.dumps({"models": [{**model, "supports_search_tool": False} for model in known]})


def _hooks(setup: Setup, scripts: HookScripts) -> dict[str, list[object]]:
    """Codex gives its hooks the same events as Claude Code; its shell tool is called Bash there too."""
    found: dict[str, list[object]] = {}
    if setup.hook_context is not None:
        found["PostToolUse"] = [scripts.on_read("Bash|apply_patch|mcp__.*")]
    if setup.fail_fast_log is not None:
        before, after = scripts.fail_fast()
        found["PreToolUse"] = [scripts.entry("Bash", before)]
        found.setdefault("PostToolUse", []).append(scripts.entry("Bash|apply_patch", after))
    return found


def _counted(stdout: Path, ended: Exit | None) -> Parsed:
    usage, stop, answer, malformed, calls, seen = TokenUsage(), None, None, 0, 0, False
    for line in lines(stdout):
        event = json_object(line)
        item = mapping(event.get("item"))
        match event.get("type"), item.get("type"):
            case "item.completed", "agent_message":
                answer = plain(str(item.get("text")), ANSWER_CHARS)
            case "item.completed", kind if kind in _TOOL_ITEMS:
                calls += 1
            case "turn.completed", _:
                usage, stop = usage + _usage(mapping(event.get("usage"))), Stop.FINISHED
            case "turn.failed", _:
                stop = Stop.ERROR
            case None, _:
                malformed += 1
            case _:
                pass
        seen = seen or "type" in event
    said = stop or stop_of(ended)
    counts: dict[str, Any] = usage.by_kind() if stop is Stop.FINISHED else {}
    return Parsed(
        tool_calls=calls if seen else None,
        **counts,
        stop=Stop.ERROR if stop is None and said is Stop.FINISHED else said,
        malformed_lines=malformed,
        answer=answer,
    )


def _usage(said: dict[str, Any]) -> TokenUsage:
    """Its input count includes cached tokens; ours does not."""
    sent, cached = count(said, "input_tokens"), count(said, "cached_input_tokens")
    return TokenUsage(input=max(0, sent - cached), output=count(said, "output_tokens"), cache_read=cached)
