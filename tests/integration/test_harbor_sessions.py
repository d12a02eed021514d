"""Harbor's converters against ours where Harbor reads an agent's own session files: the ATIF that it makes of
them, read by our reader, says the same as our adapter's trajectory of the same run. An attempt keeps no such
files: a program runs here with a HOME that stays."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_rows import ROWS
from tests.support.harbor import COUNTS, NEEDED, HarborProcess, start_harbor
from tests.support.session_run import SessionRan, session
from trialfleet_agents.agent_check.delivery_matrix import MODULE
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_ledger.trajectory import Parsed

pytestmark = NEEDED


def _claude(home: Path, folder: Path) -> None:
    shutil.copytree(home / ".claude/projects", folder / "sessions/projects")


def _codex(home: Path, folder: Path) -> None:
    shutil.copytree(home / ".codex/sessions", folder / "sessions")


def _gemini(home: Path, folder: Path) -> None:
    (found,) = (home / ".gemini/tmp").rglob("session-*.jsonl")
    shutil.copy(found, folder / "gemini-cli.trajectory.jsonl")


# agent -> its row, Harbor's converter, and what Harbor copies out of HOME
SESSIONS = {
    "claude-code": (ROWS["claude-code"], "claude_code:ClaudeCode", _claude),
    "codex": (ROWS["codex"], "codex:Codex", _codex),
    "gemini": (ROWS["gemini"], "gemini_cli:GeminiCli", _gemini),
}
AGENTS = [pytest.param(kind, marks=pytest.mark.needs(row.program)) for kind, (row, _, _) in SESSIONS.items()]


@pytest.fixture(scope="module", params=AGENTS)
def ran(request: pytest.FixtureRequest) -> Iterator[SessionRan]:
    """A real program that reads a file, edits it, runs a command and says so."""
    row = SESSIONS[request.param][0]
    read = Answer("Looking.", (row.tools.read(MODULE),), TokenUsage(input=100, output=20, cache_read=1000))
    edit = Answer("Mending.", (row.edit(MODULE, "RATE = 3", "RATE = 4"),), TokenUsage(50, 30, 1300))
    with session(
        row, [read, edit, Answer("Running.", (row.tools.run("cat AGENTS.md"),), TokenUsage(7, 11))]
    ) as done:
        assert done.ended.code == 0, (done.scratch.record / "stderr").read_text()
        assert (done.scratch.workspace / MODULE).read_text().strip() == "RATE = 4"
        yield done


@pytest.fixture(scope="module")
def harbor() -> Iterator[HarborProcess]:
    with start_harbor() as process:
        yield process


@pytest.fixture(scope="module")
def harbors(ran: SessionRan, harbor: HarborProcess, tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    """Harbor's ATIF of the session's files, as our reader understands it."""
    _, converter, copied = SESSIONS[ran.row.kind]
    folder = tmp_path_factory.mktemp("harbor")
    copied(ran.scratch.home, folder)
    return harbor.convert(converter, folder)


def test_both_see_the_same_steps(ran: SessionRan, harbors: Parsed) -> None:
    steps = [(step.turn, step.kind, step.tool, step.path, step.detail) for step in harbors.steps]
    assert steps == [(step.turn, step.kind, step.tool, step.path, step.detail) for step in ran.parsed.steps]
    assert [(kind, path) for _, kind, tool, path, _ in steps if tool] == [
        ("read", MODULE),
        ("edit", MODULE),
        ("read", "AGENTS.md"),
    ]


def test_both_count_the_same_turns_calls_and_tokens(ran: SessionRan, harbors: Parsed) -> None:
    assert (harbors.turns, harbors.tool_calls) == (4, ran.parsed.tool_calls) == (4, 3)
    assert ran.parsed.turns in (4, None)  # None: the program's output has no turns, and the gateway counts them
    counted = [getattr(harbors, name) for name in COUNTS]
    assert counted == [getattr(ran.parsed, name) for name in COUNTS] == [167, 66, 2300]
