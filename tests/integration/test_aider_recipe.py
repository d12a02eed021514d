"""examples/agents/aider.yaml with its real program: it has no tools, and edits by what its model writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_agent_recipes import recipe
from tests.support.agent_attempts import BAD, FIXED, GOOD, KEY, AgentAttempts
from tests.support.agent_rows import OPENAI, AgentRow
from tests.support.attempts import Lab
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import scripted_model
from trialfleet_agents.tool_calls import Call, ToolCalls
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.verdicts import Stop, Verdict

pytestmark = pytest.mark.needs("bwrap", "aider")


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[AgentAttempts]:
    tmp_path.chmod(0o755)
    no_tool = Call("none", {})
    tools = ToolCalls(model=recipe("aider")["model"], read=lambda _: no_tool, run=lambda _: no_tool)
    row = AgentRow(
        kind="command",
        program="aider",
        tools=tools,
        edit=lambda *_: no_tool,
        provider=OPENAI,
        options=recipe("aider")["options"],
    )
    with scripted_model() as model:
        made = AgentAttempts(Lab(tmp_path), row, model)
        assert made.lab.planned
        yield made


def whole_file(attempts: AgentAttempts) -> Answer:
    """The mended file in the form that Aider asks for."""
    text = (attempts.lab.root / "task/pre" / FIXED).read_text().replace(BAD, GOOD)
    return Answer(f"{FIXED}\n```python\n{text}```\n")


def test_it_repairs_by_text_and_gets_the_roots_file(attempts: AgentAttempts) -> None:
    attempts.model.side = whole_file(attempts)
    ran = attempts.run([], "flat", composed=Condition(files="flat"), timeout_s=300)
    end = ran.scored
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED), ran.left.bundle.files[
        "agent/stdout.log"
    ].decode()
    assert end.delivery.reached_model == {"files": True}
    assert attempts.task_text.strip() in ran.requests[0].strings
    assert end.metrics.turns == ran.report["turns"] == len(ran.requests)
    patch = ran.left.bundle.files["patch.diff"].decode()
    assert GOOD.strip() in patch
    assert ".aider" not in patch
    assert all(KEY not in request.strings for request in ran.requests)
