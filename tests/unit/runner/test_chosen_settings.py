"""What a campaign may choose of an agent's own configuration file, and what is refused by name."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent_setup, mapped
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_runner.agent_check.tool_calls import TOOL_CALLS
from trialfleet_runner.agents.chosen_settings import RESERVED, paths_of, refuse_reserved
from trialfleet_runner.agents.claude_code.agent import _QUIET as QUIET
from trialfleet_runner.agents.pinned import pinned
from trialfleet_runner.agents.registry import agent

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


@pytest.fixture(params=list(FILES))
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent whose program only says its version."""
    name: str = request.param
    program = tmp_path / "venv/bin/program"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{SAYS.get(name, '')}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(pinned()[name].variable, str(program))
    if name == "gemini":
        monkeypatch.setattr("trialfleet_runner.agents.gemini._node", lambda: Path("/usr/bin/node"))
    return name


def written(tmp_path: Path, kind: str, **options: Any) -> dict[str, Any]:
    """The configuration file of an attempt with hooks and a text for the system channel."""
    spec = AgentSpec(kind=kind, model=TOOL_CALLS[kind].model, options=options)
    context = tmp_path / "context"
    context.mkdir(exist_ok=True)
    given: dict[str, Any] = {} if kind == "mini-swe-agent" else {"system": "Be brief.", "hook_context": context}
    setup = agent_setup(tmp_path, spec, gateway_url=URL, gateway_token="tf-token", **given)
    assert agent(kind).job(setup, mapped(tmp_path)) is not None
    text = (setup.home / FILES[kind]).read_text()
    return tomllib.loads(text) if FILES[kind].endswith(".toml") else json.loads(text)


def refused(kind: str, path: tuple[str, ...]) -> bool:
    value: Any = "x"
    for name in reversed(path):
        value = {name: value}
    try:
        refuse_reserved(kind, value)
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
    ],
)
def test_what_isolates_or_limits_an_attempt_is_refused_by_name(
    kind: str, settings: Mapping[str, Any], name: str, way_out: str
) -> None:
    with pytest.raises(OperatorError) as caught:
        agent(kind).identify(AgentSpec(kind=kind, model=TOOL_CALLS[kind].model, options={"settings": settings}))
    assert f"settings.{name}" in caught.value.message
    assert f"options.settings.{name}" in (caught.value.where or "")
    assert way_out in (caught.value.hint or "")


def test_claude_codes_variables_of_isolation_are_reserved() -> None:
    variables = {*QUIET, "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_RETRIES", "ANTHROPIC_AUTH_TOKEN", "HTTPS_PROXY"}
    assert [name for name in variables if not refused("claude-code", ("env", name))] == []
    assert not refused("claude-code", ("env", "MAX_THINKING_TOKENS"))


def test_every_agent_with_a_pin_has_its_reserved_settings() -> None:
    assert set(RESERVED) == set(pinned())
