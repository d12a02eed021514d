"""Skills and MCP servers in whole attempts of the real Claude Code: offered, opened, called; what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attempts import Lab
from tests.support.claude_attempts import Attempts, Ran, repair
from tests.support.scripted_messages import Reply, Say, scripted_messages
from trialfleet_controller.planning.extensions import extensions
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.verdicts import HaltScope, LossClass

pytestmark = [pytest.mark.needs("claude"), pytest.mark.needs("bwrap")]

DESCRIPTION = "Explains how this shop rounds prices, and which discounts may be combined with each other."
SKILL = f"---\nname: rounding\ndescription: {DESCRIPTION}\n---\n# Rounding\n\nPrices are rounded half to even.\n"
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        about = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "docs", "version": "1.2.3"}}
    elif asked.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        about = {"tools": [{"name": "look_up", "description": "Looks a word up.", "inputSchema": schema}]}
    elif asked.get("method") == "tools/call":
        about = {"content": [{"type": "text", "text": "A tenth of a percent, says the glossary."}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": about}), flush=True)
"""


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempts]:
    root = tmp_path_factory.mktemp("extended")
    root.chmod(0o755)
    (root / "skills/rounding").mkdir(parents=True)
    (root / "skills/rounding/SKILL.md").write_text(SKILL)
    (root / "server").mkdir()
    (root / "server/docs.py").write_text(SERVER)
    with scripted_messages() as provider:
        made = Attempts(Lab(root), provider)
        assert made.lab.planned
        yield made
        shutil.rmtree(made.clean, ignore_errors=True)


def with_server(version: str = "1.2.3", *argv: str) -> Condition:
    command = argv or ("{python}", "{files}/docs.py")
    return Condition.model_validate({"mcp": {"docs": {"command": command, "version": version, "files": "server"}}})


def run(attempts: Attempts, composed: Condition, script: list[Reply]) -> Ran:
    return attempts.run(script, "mine", composed=composed)


@pytest.mark.parametrize("used", [True, False])
def test_a_skill_is_offered_and_whether_it_was_opened_is_measured(attempts: Attempts, used: bool) -> None:
    first: list[Reply] = [Say("A skill.", (("Skill", {"skill": "rounding"}),))] if used else []
    ran = run(attempts, Condition(skills=("skills/rounding",)), [*first, *repair()])
    end = ran.left.end.scored
    assert end is not None, ran.left.end
    assert end.tests_passed
    assert DESCRIPTION in ran.main[0].strings
    assert ("rounded half to even" in "".join(request.strings for request in ran.main)) == used
    assert end.delivery.reached_model == {"skills": True}
    assert (end.metrics.skill_opened, end.metrics.mcp_called) == (used, None)
    assert "SKILL.md" not in ran.left.bundle.files["patch.diff"].decode()


@pytest.mark.parametrize("used", [True, False])
def test_a_server_runs_in_the_sandbox_and_whether_it_was_called_is_measured(
    attempts: Attempts, used: bool
) -> None:
    first: list[Reply] = [Say("Looking it up.", (("mcp__docs__look_up", {"word": "discount"}),))] if used else []
    ran = run(attempts, with_server(), [*first, *repair()])
    end = ran.left.end.scored
    assert end is not None, ran.left.end
    assert end.tests_passed
    assert "mcp__docs__look_up" in json.dumps(ran.main[0].body["tools"])
    assert ("says the glossary" in "".join(request.strings for request in ran.main)) == used
    assert end.delivery.reached_model == {"mcp": True}
    assert (end.metrics.skill_opened, end.metrics.mcp_called) == (None, used)


@pytest.mark.parametrize(
    ("server", "words", "halt"),
    [
        (
            with_server("1.2.3", "{python}", "{files}/none.py"),
            "MCP server docs does not start: it ended",
            HaltScope.NONE,
        ),
        (with_server("1.2.3", "/no/such/program"), "MCP server docs does not start: /no/such", HaltScope.NONE),
        (with_server("9.9.9"), "MCP server docs is version 1.2.3, the plan says 9.9.9", HaltScope.CAMPAIGN),
    ],
)
def test_a_server_that_is_not_the_planned_one_is_a_loss_before_the_agent(
    attempts: Attempts, server: Condition, words: str, halt: HaltScope
) -> None:
    ran = run(attempts, server, repair())
    loss = ran.left.end.loss
    assert loss is not None, ran.left.end
    assert (loss.loss, loss.agent_started, loss.halt) == (LossClass.SETUP, False, halt)
    assert words in loss.message
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
