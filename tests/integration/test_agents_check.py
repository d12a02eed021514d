"""`trialfleet agents check` with every pinned agent's real program: what reaches its model is what is declared."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, declared
from trialfleet_agents.pinned import pinned
from trialfleet_agents.registry import agent, find_kind
from trialfleet_controller.commands.agents import agents
from trialfleet_repository.cache import Cache

# What brings something of the agent's own along into the first request, apart from the delivered text.
FILES, NESTED = CheckedDelivery.ROOT_FILE, CheckedDelivery.NESTED
SYSTEM, SKILLS, MCP = CheckedDelivery.SYSTEM, CheckedDelivery.SKILLS, CheckedDelivery.MCP
BROUGHT_ALONG = {
    "claude-code": {FILES},
    "codex": {FILES, SYSTEM, SKILLS, MCP},
    "copilot": {FILES, SYSTEM, SKILLS},
    "opencode": {FILES, SYSTEM, SKILLS},
    "gemini": {FILES, NESTED, SYSTEM, SKILLS},
    "mini-swe-agent": set[CheckedDelivery](),
}
AGENTS = [pytest.param(kind, marks=pytest.mark.needs(pin.program)) for kind, pin in pinned().items()]


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("kind", AGENTS)
def test_what_reaches_its_model_is_what_its_adapter_declares(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path))
    ran = CliRunner().invoke(agents, ["check", kind, "--json"], catch_exceptions=False)
    found = json.loads(ran.stdout)
    assert found["reached"] == {str(name): reaches for name, reaches in declared(agent(kind).reach).items()}
    assert (ran.exit_code, found["differing"]) == (0, [])
    assert len(found["reached"]) == len(CheckedDelivery)
    files = find_kind(kind).files
    declared_limits = {FILES: files.root_bytes, NESTED: files.nested_characters}
    limits = {str(name): limit for name, limit in declared_limits.items() if limit is not None}
    assert found["cut"].keys() == limits.keys()
    for name, limit in limits.items():
        assert limit - 200 < found["cut"][name] <= limit
    assert found["control"] == [], "two runs that are given the same send the same first request"
    loud = {name for name, said in found["also_differ"].items() if said}
    assert loud == {str(name) for name in BROUGHT_ALONG[kind]}, found["also_differ"]
    assert len([*Cache(tmp_path).agent_checks.iterdir()]) == 1


@pytest.mark.needs("bwrap")
@pytest.mark.needs("codex")
def test_another_version_is_measured_and_compared_with_the_pinned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other is the installed one, where the script that installs it finds it."""
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path))
    pin, cache = pinned()["codex"], Cache(tmp_path)
    installed = Path(os.environ.get(pin.variable, "/nowhere/bin/codex")).parents[1] / "codex"
    if not (installed / ".installed").exists():
        pytest.skip("needs codex as runner_image/trialfleet_agents/install.sh installs it")
    place = cache.agent_versions / f"codex@{pin.version}"
    (place / "bin").mkdir(parents=True)
    (place / "codex").symlink_to(installed)
    ran = CliRunner().invoke(agents, ["check", "codex", "--version", pin.version], catch_exceptions=False)
    assert ran.exit_code == 0
    assert f"changed since {pin.version}, the pinned version:\n  nothing that is measured here\n" in ran.output
    assert (place / "bin" / "codex").resolve() == (installed / "node_modules/.bin/codex").resolve()
