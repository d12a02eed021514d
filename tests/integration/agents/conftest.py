"""Attempts of every pinned agent's real program, each read by many tests: programs take up to eleven core seconds
to start. Tests that share an attempt are in one file, which one worker runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.agent_attempts import AgentAttempts, AgentRan
from tests.support.agent_extensions import extended, write_extensions
from tests.support.agent_rows import ROWS
from tests.support.attempts import CHILD_NODE, ROOT_NODE, Lab
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import Break, Fail, Reply, scripted_model
from trialfleet_agents.registry import agent
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import InlineSpec

# Contexts with nodes that a program would send too, when something in their folder is read: Claude Code what they
# import, Copilot files of these names.
ALSO_SENT = {"claude-code": "importing", "copilot": "named"}
PUSHED = "Discounts are read from the table of vouchers, which a job rewrites every night."
SPARE = 3  # answers of the script that the turn budget leaves unsaid
AGENTS = [pytest.param(kind, marks=pytest.mark.needs(row.program)) for kind, row in ROWS.items()]


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """One validated task for all agents, with a tree for the hook, a skill and an MCP server."""
    root = tmp_path_factory.mktemp("shop")
    root.chmod(0o755)
    write_extensions(root)
    node = f"# Pricing\n\n## Pitfalls\n\n- {PUSHED}\n"
    pushed = {"shop/pricing/AGENTS.md": node}
    named = {**pushed, "CLAUDE.md": ROOT_NODE + CHILD_NODE, "shop/pricing/CLAUDE.md": node}
    importing = {**named, "shop/pricing/CLAUDE.md": "@AGENTS.md\n"}
    lab = Lab(root, contexts={"pushed": pushed, "named": named, "importing": importing})
    assert lab.planned
    return lab


@pytest.fixture(scope="module", params=AGENTS)
def attempts(request: pytest.FixtureRequest, shop: Lab) -> Iterator[AgentAttempts]:
    with scripted_model() as model:
        yield AgentAttempts(shop, ROWS[request.param], model)


@pytest.fixture(scope="module")
def reach(attempts: AgentAttempts) -> Reach:
    spec = AgentSpec(kind=attempts.row.kind, model=attempts.row.tools.model, options=attempts.row.options)
    return agent(attempts.row.kind).identify(spec).reach


@pytest.fixture(scope="module")
def repaired(attempts: AgentAttempts, reach: Reach) -> AgentRan:
    """It reads, edits, opens a skill where it has one, looks for secrets, and says so; with the root's file, and
    what a hook pushes where there are hooks."""
    hook = {"hook": "on_read", "context": "pushed"} if reach.hook_after else {}
    also_sent = ALSO_SENT.get(attempts.row.kind)
    files = {"files": also_sent, "hook": "on_read", "pull": True} if also_sent else {"files": "flat", **hook}
    composed = Condition.model_validate({**files, **extended(attempts.row)})
    opens = [Answer("Opening.", (attempts.row.opens_skill,))] if attempts.row.opens_skill else []
    script = [attempts.reads(), attempts.edits(), *opens, attempts.searches(), attempts.done]
    return attempts.run(script, "repaired", composed=composed, options={"effort": "low"})


@pytest.fixture(scope="module")
def stopped(attempts: AgentAttempts, reach: Reach) -> AgentRan:
    """Ended by the turn budget, after a provider that was busy and, where the program asks again, cut an answer.
    With text in the prompt, a server's tool where it has one, and denials where hooks can deny: the same failing
    test four times."""
    parts = {"inline": {"source": "nearest"}, "fail_fast": reach.fail_fast, **extended(attempts.row)}
    calls = [Answer("Asking.", (attempts.row.calls_server,))] if attempts.row.calls_server else []
    again: Reply = attempts.shell("python -m pytest -q tests/test_rules.py")
    cut: list[Reply] = [Break()] * attempts.row.asks_again
    waiting: list[Reply] = [Fail(429, retry_after="1"), again, Fail(529), again]
    script = [*waiting, again, again, *calls, *cut, attempts.edits(), *[attempts.shell("true")] * SPARE]
    turns = 5 + len(calls)
    return attempts.run(script, "stopped", composed=Condition.model_validate(parts), max_turns=turns)


@pytest.fixture(scope="module")
def cut_short(attempts: AgentAttempts, reach: Reach) -> AgentRan:
    """With text in the system prompt where there may be some, and with chosen settings. After its edit the program
    ends before it is done: by itself where an option makes it give up on a provider that fails, else killed."""
    row, told = attempts.row, Condition(inline=InlineSpec(source="nearest", channel="system"))
    end: list[Reply] = [attempts.shell(row.killer)] if row.impatient is None else [Fail(529)] * 12
    options = {"effort": "high", "settings": row.chosen.settings if row.chosen else {}, **(row.impatient or {})}
    script: list[Reply] = [attempts.reads(), attempts.edits(), *end]
    return attempts.run(script, "cut-short", composed=told if reach.system else Condition(), options=options)
