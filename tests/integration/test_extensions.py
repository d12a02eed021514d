"""Skills and MCP servers in whole attempts of the real programs: offered, opened, called; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_attempts import AgentAttempts, AgentRan
from tests.support.agent_rows import CLAUDE, ROWS
from tests.support.attempts import Lab
from trialfleet_controller.planning.extensions import extensions
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.verdicts import HaltScope, LossClass
from trialfleet_runner.agent_check.scripted_answers import Answer, Call
from trialfleet_runner.agent_check.scripted_model import Reply, scripted_model
from trialfleet_runner.agent_check.tool_calls import TOOL_CALLS

pytestmark = pytest.mark.needs("bwrap")

DESCRIPTION = "Explains how this shop rounds prices, and which discounts may be combined with each other."
SKILL = f"---\nname: rounding\ndescription: {DESCRIPTION}\n---\n# Rounding\n\nPrices are rounded half to even.\n"
TOOL = "Looks up what a word of this shop means."
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        about = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "docs", "version": "1.2.3"}}
    elif asked.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        about = {"tools": [{"name": "look_up", "description": "TOOL", "inputSchema": schema}]}
    elif asked.get("method") == "tools/call":
        about = {"content": [{"type": "text", "text": "A tenth of a percent, says the glossary."}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": about}), flush=True)
""".replace("TOOL", TOOL)

SERVER_NAME = "shop-docs"  # each agent joins it with a tool's name in another way
WORD = {"word": "discount"}
# agent -> how its model opens the skill, and calls the server's tool
USES = {
    "claude-code": (Call("Skill", {"skill": "rounding"}), Call("mcp__shop-docs__look_up", WORD)),
    "codex": (
        TOOL_CALLS["codex"].run("pwd && sed -n '1,200p' .agents/skills/rounding/SKILL.md"),
        Call("look_up", WORD, namespace="mcp__shop_docs"),
    ),
    "copilot": (Call("skill", {"skill": "rounding"}), Call("shop-docs-look_up", WORD)),
    "opencode": (Call("skill", {"name": "rounding"}), Call("shop-docs_look_up", WORD)),
    "gemini": (Call("activate_skill", {"name": "rounding"}), Call("mcp_shop-docs_look_up", WORD)),
}
AGENTS = [
    pytest.param(row, id=kind, marks=pytest.mark.needs(row.program))
    for kind, row in ({"claude-code": CLAUDE} | ROWS).items()
    if kind in USES
]


@pytest.fixture(scope="module", params=AGENTS)
def attempts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentAttempts]:
    root = tmp_path_factory.mktemp("extended")
    root.chmod(0o755)
    (root / "skills/rounding").mkdir(parents=True)
    (root / "skills/rounding/SKILL.md").write_text(SKILL)
    (root / "server").mkdir()
    (root / "server/docs.py").write_text(SERVER)
    with scripted_model() as model:
        made = AgentAttempts(Lab(root), request.param, model)
        assert made.lab.planned
        yield made


def with_server(version: str = "1.2.3", *argv: str) -> Condition:
    command = argv or ("{python}", "{files}/docs.py")
    return Condition.model_validate(
        {"mcp": {SERVER_NAME: {"command": command, "version": version, "files": "server"}}}
    )


def run(attempts: AgentAttempts, composed: Condition, *first: Call) -> AgentRan:
    """A repair, after these calls."""
    script: list[Reply] = [Answer("With help.", (call,)) for call in first]
    return attempts.run([*script, attempts.reads(), attempts.edits()], "mine", composed=composed)


def said(ran: AgentRan) -> str:
    return "".join(request.strings for request in ran.main)


@pytest.mark.parametrize("used", [True, False])
def test_a_skill_is_offered_and_whether_it_was_opened_is_measured(attempts: AgentAttempts, used: bool) -> None:
    opened, _ = USES[attempts.row.kind]
    ran = run(attempts, Condition(skills=("skills/rounding",)), *([opened] if used else []))
    end = ran.scored
    assert end.tests_passed
    assert DESCRIPTION in ran.main[0].strings
    assert ("rounded half to even" in said(ran)) == used
    assert end.delivery.reached_model == {"skills": True}
    assert (end.metrics.skill_opened, end.metrics.mcp_called) == (used, None)
    assert "SKILL.md" not in ran.left.bundle.files["patch.diff"].decode()


@pytest.mark.parametrize("used", [True, False])
def test_a_server_runs_in_the_sandbox_and_whether_it_was_called_is_measured(
    attempts: AgentAttempts, used: bool
) -> None:
    _, called = USES[attempts.row.kind]
    ran = run(attempts, with_server(), *([called] if used else []))
    end = ran.scored
    assert end.tests_passed
    assert TOOL in ran.main[0].strings
    assert ("says the glossary" in said(ran)) == used
    assert end.delivery.reached_model == {"mcp": True}
    assert (end.metrics.skill_opened, end.metrics.mcp_called) == (None, used)
    assert end.metrics.tool_calls == 2 + used


@pytest.mark.parametrize(
    ("server", "words", "halt"),
    [
        (with_server("1.2.3", "{python}", "{files}/none.py"), "does not start: it ended", HaltScope.NONE),
        (with_server("1.2.3", "/no/such/program"), "does not start: /no/such", HaltScope.NONE),
        (with_server("9.9.9"), "is version 1.2.3, the plan says 9.9.9", HaltScope.CAMPAIGN),
    ],
)
def test_a_server_that_is_not_the_planned_one_is_a_loss_before_the_agent(
    attempts: AgentAttempts, server: Condition, words: str, halt: HaltScope
) -> None:
    ran = run(attempts, server)
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
