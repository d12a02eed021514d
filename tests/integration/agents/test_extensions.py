"""Skills and MCP servers that are refused. Those that agents get are in test_agents_end_to_end.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.agents.conftest import AGENTS
from tests.support.agent_attempts import AgentAttempts
from tests.support.agent_extensions import SKILL, server
from tests.support.agent_rows import SERVER_NAME
from trialfleet_controller.planning.extensions import extensions
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.verdicts import HaltScope, LossClass

pytestmark = pytest.mark.needs("bwrap")


@pytest.mark.parametrize("attempts", AGENTS[:1], indirect=True)  # it comes before any agent
@pytest.mark.parametrize(
    ("given", "words", "halt"),
    [
        (server("1.2.3", "{python}", "{files}/none.py"), "does not start: it ended", HaltScope.NONE),
        (server("1.2.3", "/no/such/program"), "does not start: /no/such", HaltScope.NONE),
        (server("9.9.9"), "is version 1.2.3, the plan says 9.9.9", HaltScope.CAMPAIGN),
    ],
)
def test_a_server_that_is_not_the_planned_one_is_a_loss_before_the_agent(
    attempts: AgentAttempts, given: object, words: str, halt: HaltScope
) -> None:
    ran = attempts.run([attempts.reads(), attempts.edits()], composed=Condition.model_validate({"mcp": given}))
    loss = ran.loss
    assert (loss.loss, loss.agent_started, loss.halt) == (LossClass.SETUP, False, halt)
    assert f"MCP server {SERVER_NAME} {words}" in loss.message
    assert ran.main == []


@pytest.mark.parametrize(
    ("skill", "text", "words"),
    [
        ("none", None, "no such folder"),
        ("bare", "", "has no SKILL.md"),
        ("mute", "# A skill\n", "does not say what the skill is for"),
    ],
)
def test_a_folder_that_is_no_skill_is_refused(tmp_path: Path, skill: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / skill).mkdir()
        (tmp_path / skill / ("SKILL.md" if text else "README.md")).write_text(text or "x")
    with pytest.raises(OperatorError, match=words) as caught:
        extensions(Condition(skills=(skill,)), tmp_path, "c.yaml: conditions.mine", Objects(tmp_path / "objects"))
    assert caught.value.where == "c.yaml: conditions.mine: skills[0]"


def test_a_skill_is_its_content(tmp_path: Path) -> None:
    def found(text: str) -> object:
        (tmp_path / "one").mkdir(exist_ok=True)
        (tmp_path / "one/SKILL.md").write_text(text)
        return extensions(Condition(skills=("one",)), tmp_path, "w", Objects(tmp_path / "objects")).skills["one"]

    assert found(SKILL) == found(SKILL)
    assert found(SKILL) != found(SKILL + "\nmore\n")
