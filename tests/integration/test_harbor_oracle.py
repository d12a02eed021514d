"""Harbor's converters against ours: the ATIF that Harbor makes of what an agent printed, read by our reader, says
the same as our adapter's trajectory. Claude Code, Codex and Gemini CLI are in test_harbor_sessions.py."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.agent_attempts import AgentAttempts, AgentRan
from tests.support.agent_rows import ROWS
from tests.support.attempts import Lab
from tests.support.harbor import COUNTS, NEEDED, converted
from trialfleet_runner.agent_check.scripted_model import scripted_model
from trialfleet_runner.agents.protocol import Parsed

CONVERTERS = {
    "copilot": ("copilot_cli:CopilotCli", "copilot-cli.jsonl"),
    "opencode": ("opencode:OpenCode", "opencode.txt"),
    "mini-swe-agent": (
        "mini_swe_agent:MiniSweAgent",
        "mini-swe-agent.trajectory.json",
    ),
}
pytestmark = NEEDED
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
    return converted(converter, folder)


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
