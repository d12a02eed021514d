"""What a campaign may choose of an agent's own configuration file, and what is refused by name."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.agents import agent_setup, mapped
from trialfleet_agents.chosen_settings import paths_of, refuse_reserved
from trialfleet_agents.claude_code.agent import _QUIET as QUIET
from trialfleet_agents.pinned import pinned
from trialfleet_agents.registry import KINDS, agent, list_tool_calls
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec

SAYS = {
    "claude-code": "2.1.331 (Claude Code)",
    "codex": "codex-cli 0.169.0",
    "copilot": "GitHub Copilot CLI 1.0.102",
    "opencode": "1.18.33",
    "gemini": "0.61.0",
}
FILES = {
    "claude-code": "trialfleet/settings.json",
    "codex": ".codex/config.toml",
    "copilot": ".copilot/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "gemini": ".gemini/settings.json",
    "mini-swe-agent": "trialfleet/config.yaml",
}
CHOSEN = {"tui": {"theme": "dark"}, "gone": None}  # no adapter knows such a key
URL = "http://127.0.0.1:8080"


def nested(path: Sequence[str]) -> Any:
    """A value at this path."""
    return reduce(lambda value, name: {name: value}, reversed(path), cast("Any", "x"))


# Items of a list; the first is a treatment.
WARM = {"match": {"overrideScope": "core"}, "modelConfig": {"generateContentConfig": {"temperature": 0.25}}}
MOVED = {"match": {"overrideScope": "core"}, "modelConfig": {"model": "gemini-2.5-flash"}}
ELSEWHERE = {"match": {}, "modelConfig": {"generateContentConfig": {"httpOptions": {"baseUrl": "http://x"}}}}
EXTENDS, EXTENDED = {"extends": "chat-base-2.5"}, "modelConfigs.customAliases.mine.extends"
OTHER_MODEL = "modelConfigs.customOverrides.1.modelConfig.model"
OTHER_URL = "modelConfigs.overrides.0.modelConfig.generateContentConfig.httpOptions.baseUrl"

# agent -> part of the way out -> keys that another endpoint, key, HOME, price or text would come by
NAMED = [
    (kind, nested(name.split(".")), name, way_out)
    for kind, way_out, names in [
        ("claude-code", "leave it out", "proxyAuthHelper policyHelper.path processWrapper xaaIdp.issuer"),
        ("claude-code", "leave it out", "downloadsMirrorUrl remoteControlAtStartup autoUploadSessions"),
        ("claude-code", "leave it out", "env.CLAUDE_CODE_EXTRA_BODY env.BASH_ENV env.XDG_CONFIG_HOME env.SHELL"),
        ("claude-code", "leave it out", "env.CLAUDE_CODE_API_BASE_URL env.CLAUDE_CODE_PROCESS_WRAPPER"),
        ("claude-code", "leave it out", "env.CLAUDE_CODE_DISABLE_CLAUDE_MDS env.SSL_CERT_FILE"),
        ("claude-code", "model:", "advisorModel fallbackModel modelCatalogUrl enforceAvailableModels"),
        ("claude-code", "effort:", "maxEffortLevel ultracode"),
        ("claude-code", "mcp:", "deniedMcpServers disabledMcpjsonServers allowAllClaudeAiMcps"),
        ("claude-code", "files:", "claudeMdExcludes claudeMd autoMemoryDirectory"),
        ("claude-code", "other prices", "fastMode"),
        ("codex", "leave it out", "experimental_thread_config_endpoint experimental_realtime_ws_base_url debug"),
        ("codex", "leave it out", "features.responses_websockets features.remote_control features.memories"),
        ("codex", "leave it out", "features.omit_skill_descriptions features.respect_system_proxy"),
        ("codex", "model:", "agents.reviewer.config_file auto_review.policy"),
        ("codex", "files:", "project_root_markers project_doc_fallback_filenames memories.generate"),
        ("codex", "other prices", "service_tier"),
        ("copilot", "leave it out", "experimental"),
        ("copilot", "mcp:", "disabledMcpServers enabledMcpServers"),
        ("copilot", "files:", "memory"),
        ("copilot", "other prices", "contextTier"),
        ("opencode", "leave it out", "default_agent shell mode.build.steps mode.build.tools.webfetch"),
        (
            "opencode",
            "leave it out",
            "provider.anthropic.models.m.headers.x-api-key providers.x experimental.hook",
        ),
        ("opencode", "model:", "command.fix.model"),
        ("opencode", "files:", "references.docs.path"),
        ("opencode", "mcp:", "experimental.mcp_timeout"),
        ("gemini", "leave it out", "agents.browser.headless experimental.directWebFetch general.devtools output"),
        ("gemini", "leave it out", "experimental.extensionRegistryURI tools.confirmationRequired"),
        ("gemini", "model:", "experimental.gemmaModelRouter.classifier.host general.plan.modelRouting"),
        ("gemini", "model:", "modelConfigs.customAliases.base.modelConfig.model modelConfigs.modelChains.auto"),
        ("gemini", "files:", "context.discoveryMaxDirs experimental.autoMemory"),
        ("mini-swe-agent", "leave it out", "model.model_kwargs.mock_response model.model_kwargs.extra_body.x"),
        ("mini-swe-agent", "leave it out", "model.model_kwargs.tools model.model_kwargs.web_search_options"),
        ("mini-swe-agent", "leave it out", "environment.env.HOME environment.env.HTTPS_PROXY"),
        (
            "mini-swe-agent",
            "model:",
            "model.model_kwargs.context_window_fallback_dict model.model_kwargs.model_list",
        ),
    ]
    for name in names.split()
]


@pytest.fixture(params=list(FILES))
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent whose program only says its version."""
    name: str = request.param
    program = tmp_path / "venv/bin/program"
    program.parent.mkdir(parents=True)
    models = """if [ "$1" = debug ]; then echo '{"models": [{"slug": "m"}]}'; exit; fi\n"""
    program.write_text(f"#!/bin/sh\n{models}echo '{SAYS.get(name, '')}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(pinned()[name].variable, str(program))
    defaults = tmp_path / "venv/lib/python3.11/site-packages/minisweagent/config/mini.yaml"
    defaults.parent.mkdir(parents=True)
    defaults.touch()
    if name == "gemini":
        monkeypatch.setattr("trialfleet_agents.gemini.agent._node", lambda: Path("/usr/bin/node"))
    return name


def written(tmp_path: Path, kind: str, **options: Any) -> dict[str, Any]:
    """The configuration file of an attempt with hooks and a text for the system channel."""
    spec = AgentSpec(kind=kind, model=list_tool_calls()[kind].model, options=options)
    context = tmp_path / "context"
    context.mkdir(exist_ok=True)
    given: dict[str, Any] = {} if kind == "mini-swe-agent" else {"system": "Be brief.", "hook_context": context}
    setup = agent_setup(tmp_path, spec, gateway_url=URL, gateway_token="tf-token", **given)
    assert agent(kind).job(setup, mapped(tmp_path)) is not None
    text = (setup.home / FILES[kind]).read_text()
    return tomllib.loads(text) if FILES[kind].endswith(".toml") else json.loads(text)


def refused(kind: str, path: tuple[str, ...]) -> bool:
    try:
        refuse_reserved(KINDS[kind], nested(path))
    except OperatorError:
        return True
    return False


def test_no_chosen_setting_takes_the_place_of_one_of_ours(tmp_path: Path, kind: str) -> None:
    ours = [path for path in paths_of(written(tmp_path, kind)) if path[0] != "enabledPlugins"]
    assert ours or kind == "copilot"
    assert [path for path in ours if not refused(kind, path)] == []


def test_any_other_setting_is_written_next_to_ours(tmp_path: Path, kind: str) -> None:
    plain, chosen = written(tmp_path, kind), written(tmp_path, kind, settings=CHOSEN)
    assert chosen == {**plain, "tui": {"theme": "dark"}}


@pytest.mark.parametrize(
    ("kind", "settings", "name", "way_out"),
    [
        ("claude-code", {"env": {"ANTHROPIC_BASE_URL": "http://x"}}, "env.ANTHROPIC_BASE_URL", "leave it out"),
        ("claude-code", {"hooks": {"Stop": []}}, "hooks.Stop", "hook: on_read"),
        ("codex", {"model_providers": {"x": {"base_url": "http://x"}}}, "model_providers.x.base_url", "leave"),
        ("codex", {"features": {"plugins": True}}, "features.plugins", "leave it out"),
        ("codex", {"features": 7}, "features", "leave it out"),
        ("codex", {"model_reasoning_effort": "high"}, "model_reasoning_effort", "effort:"),
        ("copilot", {"proxyUrl": "http://x"}, "proxyUrl", "leave it out"),
        ("opencode", {"provider": {"anthropic": {"options": {"baseURL": "x"}}}}, "provider.anthropic.op", "leave"),
        ("opencode", {"permission": "ask"}, "permission", "leave it out"),
        ("gemini", {"telemetry": {"enabled": True}}, "telemetry.enabled", "leave it out"),
        ("gemini", {"mcpServers": {"x": {"command": "y"}}}, "mcpServers.x.command", "mcp:"),
        ("mini-swe-agent", {"model": {"model_kwargs": {"api_base": "x"}}}, "model.model_kwargs.api_base", "leave"),
        ("mini-swe-agent", {"agent": {"step_limit": 0}}, "agent.step_limit", "max_turns:"),
        ("gemini", {"modelConfigs": {"customOverrides": [WARM, MOVED]}}, OTHER_MODEL, "model:"),
        ("gemini", {"modelConfigs": {"overrides": [ELSEWHERE]}}, OTHER_URL, "leave it out"),
        ("gemini", {"tools": {"allowed": ["ls"]}}, "tools.allowed", "leave it out"),
        ("gemini", {"modelConfigs": {"customAliases": {"mine": EXTENDS}}}, EXTENDED, "model:"),
        *NAMED,
    ],
)
def test_what_isolates_or_limits_an_attempt_is_refused_by_name(
    kind: str, settings: Mapping[str, Any], name: str, way_out: str
) -> None:
    with pytest.raises(OperatorError) as caught:
        agent(kind).identify(
            AgentSpec(kind=kind, model=list_tool_calls()[kind].model, options={"settings": settings})
        )
    assert f"settings.{name}" in caught.value.message
    assert f"options.settings.{name}" in (caught.value.where or "")
    assert way_out in (caught.value.hint or "")


def test_claude_codes_variables_of_isolation_are_reserved() -> None:
    variables = {*QUIET, "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_RETRIES", "ANTHROPIC_AUTH_TOKEN", "HTTPS_PROXY"}
    assert [name for name in variables if not refused("claude-code", ("env", name))] == []
    assert not refused("claude-code", ("env", "MAX_THINKING_TOKENS"))


def test_a_name_that_is_allowed_is_so_alone() -> None:
    assert not refused("codex", ("features", "unified_exec"))
    assert refused("codex", ("features", "unified_exec", "x"))
    assert refused("codex", ("features", "unified_exec_zsh_fork"))
    assert refused("codex", ("features",))
    names = [(kind, name) for kind, one in KINDS.items() for name in one.rules.allowed.split()]
    assert [one for one in names if refused(one[0], tuple(one[1].split(".")))] == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("claude-code", "includeCoAuthoredBy alwaysThinkingEnabled outputStyle enabledPlugins.agents-md@builtin"),
        ("codex", "model_verbosity model_context_window personality tool_output_token_limit"),
        ("copilot", "includeCoAuthoredBy stream"),
        ("opencode", "agent.build.temperature agent.build.prompt compaction.auto tools.bash tool_output"),
        ("gemini", "tools.core context.includeDirectoryTree model.compressionThreshold"),
        ("mini-swe-agent", "agent.system_template model.model_kwargs.temperature environment.env.PAGER"),
    ],
)
def test_what_is_a_treatment_is_accepted(kind: str, names: str) -> None:
    assert [name for name in names.split() if refused(kind, tuple(name.split(".")))] == []


def test_a_treatment_in_a_list_is_accepted() -> None:
    refuse_reserved(KINDS["gemini"], {"modelConfigs": {"customOverrides": [WARM]}})


def test_every_agent_with_a_pin_has_its_reserved_settings() -> None:
    assert {kind for kind, one in KINDS.items() if one.rules.reserved} == set(pinned())


@pytest.mark.parametrize("kind", ["gemini"], indirect=True)
def test_an_effort_that_the_model_lacks_is_refused(kind: str) -> None:
    def planned(model: str) -> None:
        agent(kind).identify(AgentSpec(kind=kind, model=model, options={"effort": "low"}))

    for model in ("gemini-2.5-pro", "gemini-2.0-flash", "gemini-1.5-pro"):
        with pytest.raises(OperatorError, match="no levels of thinking"):
            planned(model)
    for model in ("gemini-3-flash-preview", "gemini-3.1-pro-preview", "my-own"):
        planned(model)
