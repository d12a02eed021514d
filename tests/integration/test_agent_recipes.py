"""The files of examples/agents, each with its real program in a whole attempt against the scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.agent_attempts import KEY, AgentAttempts
from tests.support.agent_rows import OPENAI, AgentRow
from tests.support.attempts import Lab
from trialfleet_agents.agent_check.scripted_model import scripted_model
from trialfleet_agents.tool_calls import Call, ToolCalls
from trialfleet_ledger.records.verdicts import Stop, Verdict

pytestmark = pytest.mark.needs("bwrap")

RECIPES = Path(__file__).resolve().parents[2] / "examples/agents"


def recipe(name: str) -> dict[str, Any]:
    return yaml.safe_load((RECIPES / f"{name}.yaml").read_text())["agent"]


def row(name: str, read: str, edit: str, **given: str) -> Any:
    made = AgentRow(
        kind="command",
        program=name,
        tools=ToolCalls(
            model=recipe(name)["model"],
            read=lambda path: Call(read, {given["path"]: f"/workspace/{path}"}),
            run=lambda command: Call(given["shell"], {"command": command}),
        ),
        edit=lambda path, old, new: Call(
            edit, {given["path"]: f"/workspace/{path}", given["old"]: old, given["new"]: new}
        ),
        provider=OPENAI,
        options=recipe(name)["options"],
    )
    return pytest.param(made, id=name, marks=pytest.mark.needs(name))


ROWS = [
    row("goose", "tree", "edit", path="path", old="before", new="after", shell="shell"),
    row(
        "qwen",
        "read_file",
        "edit",
        path="file_path",
        old="old_string",
        new="new_string",
        shell="run_shell_command",
    ),
]


@pytest.fixture(params=ROWS)
def attempts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentAttempts]:
    tmp_path.chmod(0o755)
    with scripted_model() as model:
        made = AgentAttempts(Lab(tmp_path), request.param, model)
        assert made.lab.planned
        yield made


def test_a_recipe_repairs_behind_the_gateway(attempts: AgentAttempts) -> None:
    ran = attempts.run(attempts.repair())
    end = ran.scored
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED), ran.left.said()[-3000:]
    assert attempts.task_text.strip() in ran.main[0].strings
    assert (end.metrics.turns, ran.report["turns"]) == (4, 4)
    assert KEY not in ran.left.said()
    assert all(KEY not in request.strings for request in ran.main)


def test_its_turn_budget_ends_a_recipe(attempts: AgentAttempts) -> None:
    ran = attempts.run([attempts.reads(), attempts.edits(), *[attempts.shell("true")] * 5], max_turns=3)
    assert len(ran.main) == 3
    assert (ran.scored.verdict, ran.scored.metrics.turns) == (Verdict.PASSED, 3)
