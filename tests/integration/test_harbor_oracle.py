"""Harbor's converters against ours: the ATIF that Harbor makes of what an agent printed, read by our reader, says
the same as our adapter's trajectory. Not of every agent that both know: Harbor reads Claude Code, Codex and Gemini
CLI from files in HOME, which an attempt removes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_attempts import AgentAttempts, AgentRan
from tests.support.agent_rows import ROWS
from tests.support.attempts import Lab
from trialfleet_runner.agent_check.scripted_model import scripted_model
from trialfleet_runner.agents.protocol import Parsed
from trialfleet_runner.agents.trajectory import read_trajectory

PYTHON = "TRIALFLEET_TEST_HARBOR"  # of an environment with Harbor, whose Python is 3.12 or newer
CONVERTERS = {
    "copilot": ("harbor.agents.installed.copilot_cli:CopilotCli", "copilot-cli.jsonl"),
    "opencode": ("harbor.agents.installed.opencode:OpenCode", "opencode.txt"),
    "mini-swe-agent": (
        "harbor.agents.installed.mini_swe_agent:MiniSweAgent",
        "mini-swe-agent.trajectory.json",
    ),
}
# Writes trajectory.json into the folder in which the agent's output is.
CONVERT = """
import importlib, sys
from pathlib import Path
from harbor.models.agent.context import AgentContext
module, _, name = sys.argv[1].partition(":")
agent = getattr(importlib.import_module(module), name)(logs_dir=Path(sys.argv[2]))
agent.populate_context_post_run(AgentContext())
"""
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens")

pytestmark = [
    pytest.mark.needs("bwrap"),
    pytest.mark.skipif(
        PYTHON not in os.environ, reason=f"needs the Python of an environment with Harbor in ${PYTHON}"
    ),
]
AGENTS = [pytest.param(kind, marks=pytest.mark.needs(ROWS[kind].program)) for kind in CONVERTERS]


@pytest.fixture(scope="module", params=AGENTS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentRan]:
    """A real program that reads a file, edits it and runs a command."""
    root = tmp_path_factory.mktemp("agents")
    root.chmod(0o755)
    with scripted_model() as model:
        attempts = AgentAttempts(Lab(root), ROWS[request.param], model)
        yield attempts.run(attempts.repair())


@pytest.fixture(scope="module")
def harbors(ran: AgentRan, tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    """Harbor's ATIF of the same output, as our reader understands it."""
    folder = tmp_path_factory.mktemp("harbor")
    converter, name = CONVERTERS[ran.row.kind]
    (folder / name).write_bytes(ran.left.bundle.files["agent/stdout.log"])
    env = {"PATH": os.defpath, "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    argv = (os.environ[PYTHON], "-c", CONVERT, converter, str(folder))
    subprocess.run(argv, check=True, env=env, capture_output=True, timeout=300)
    return read_trajectory(folder / "trajectory.json", Path("/workspace"))


def test_both_see_the_same_steps(ran: AgentRan, harbors: Parsed) -> None:
    own = [json.loads(line) for line in ran.left.bundle.files["trajectory.jsonl"].decode().splitlines()]
    steps = [(step.turn, step.kind, step.tool, step.path) for step in harbors.steps]
    assert steps == [(one["turn"], one["kind"], one.get("tool"), one.get("path")) for one in own]
    assert [kind for _, kind, tool, _ in steps if tool] == [
        "read",
        "edit",
        "run",
        *["run"] * len(ran.row.tools.ends),
    ]


def test_both_count_the_same_turns_calls_and_tokens(ran: AgentRan, harbors: Parsed) -> None:
    own = ran.claimed()
    assert (harbors.turns, harbors.tool_calls) == (own.turns, own.tool_calls) == (4, 3 + len(ran.row.tools.ends))
    if harbors.input_tokens is None:
        assert ran.row.kind == "copilot", "Harbor takes no tokens from Copilot's events"
        return
    assert (
        [getattr(harbors, name) for name in COUNTS] == [getattr(own, name) for name in COUNTS] == [167, 66, 2300]
    )
