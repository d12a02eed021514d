"""What the real Claude Code takes up of a context folder: what docs/reference/conditions.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.claude_code import DONE, Rig
from tests.support.scripted_messages import Say, ScriptedMessages
from trialfleet_agents.workspace_settings import deliverable_files

pytestmark = pytest.mark.needs("claude")

SETTINGS = ".claude/settings.json"


FILES = {
    "CLAUDE.md": "NEEDLE-ROOT\n@AGENTS.md\n",
    "AGENTS.md": "NEEDLE-IMPORTED\n",
    "src/AGENTS.md": "NEEDLE-FOLDER-AGENTS\n",
    "src/CLAUDE.md": "NEEDLE-FOLDER-CLAUDE\n",
    "GEMINI.md": "NEEDLE-GEMINI\n",
    "CLAUDE.team.md": "NEEDLE-TEAM\n",
    ".claude/skills/prices/SKILL.md": "---\nname: prices\ndescription: NEEDLE-SKILL\n---\nNEEDLE-BODY\n",
    ".claude/agents/needle.md": "---\nname: needle\ndescription: NEEDLE-AGENT\n---\nNEEDLE-PROMPT\n",
    ".claude/commands/needle.md": "---\ndescription: NEEDLE-COMMAND\n---\nNEEDLE-WORDS\n",
}
REACHES = {"ROOT", "IMPORTED", "FOLDER-CLAUDE", "SKILL", "AGENT", "COMMAND"}


def test_what_of_a_context_folder_claude_code_takes_up(tmp_path: Path, provider: ScriptedMessages) -> None:
    rig = Rig(tmp_path, provider)
    for name, text in FILES.items():
        rig.write(name, text)
    started, hooked = tmp_path / "started", tmp_path / "hooked"
    server = {"command": "/bin/sh", "args": ["-c", f"touch {started}"]}
    rig.write(".mcp.json", json.dumps({"mcpServers": {"needle-server": server}}))
    hook = {"matcher": "Read", "hooks": [{"type": "command", "command": f"touch {hooked}"}]}
    rig.write(".claude/settings.json", json.dumps({"hooks": {"PostToolUse": [hook]}}))
    rig.run(Say("", (rig.read(),)), DONE)
    said = "\n".join(json.dumps(request.body) for request in provider.requests)
    assert set(re.findall(r"NEEDLE-([A-Z-]+)", said)) == REACHES
    assert "needle-server" not in said
    assert (hooked.exists(), started.exists()) == (True, False), "a project's hooks hold, its servers do not start"


@pytest.mark.parametrize("enabled", [False, True])
def test_agents_md_is_loaded_where_settings_ask_for_it_only(
    tmp_path: Path, provider: ScriptedMessages, enabled: bool
) -> None:
    """By default the program would load AGENTS.md where a project has no CLAUDE.md. The canary sees each: what is
    sent before a model has answered is contamination, what is sent later an agent may have written itself."""
    rig = Rig(tmp_path, provider)
    found = tuple(rig.write(name, f"NEEDLE of {name}\n") for name in ("AGENTS.md", "src/AGENTS.md"))
    if enabled:
        rig.settings = {"enabledPlugins": {"agents-md@builtin": True}}
    ran = rig.run(Say("", (rig.read(),)), DONE)
    assert [request.strings.count("NEEDLE") for request in provider.main] == ([1, 2] if enabled else [0, 0])
    assert ran.report.undeclared == (found[:1] if enabled else ())
    assert ran.report.own_files == (found[1:] if enabled else ())


NOWHERE = "http://127.0.0.1:9"
UNBINDING = {
    "bedrock": {"env": {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "us-east-1"}},
    "proxy": {"env": {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE}},
}


@pytest.mark.parametrize("name", UNBINDING)
def test_a_workspaces_settings_would_lead_elsewhere_and_those_of_a_context_do_not(
    tmp_path: Path, provider: ScriptedMessages, name: str
) -> None:
    """The control first: the same file as a context's author wrote it."""
    data = json.dumps(UNBINDING[name]).encode()
    for requests, text in ((0, data), (1, deliverable_files("claude-code", {SETTINGS: data})[0][SETTINGS])):
        rig = Rig(tmp_path / str(requests), provider, timeout_s=6)
        rig.write(SETTINGS, text.decode())
        rig.run(DONE)
        assert len(provider.main) == requests


def test_an_address_in_a_workspaces_settings_does_not_beat_ours(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    rig = Rig(tmp_path, provider)
    rig.write(SETTINGS, json.dumps({"env": {"ANTHROPIC_BASE_URL": NOWHERE, "ANTHROPIC_AUTH_TOKEN": "other"}}))
    rig.run(DONE)
    assert len(provider.main) == 1
