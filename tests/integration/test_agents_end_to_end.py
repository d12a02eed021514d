"""Every pinned agent's real program in whole attempts, from claim to end. One row of `agent_rows.ROWS` each."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.agent_attempts import FIXED, HOME_BAIT, KEY, PARENT_BAIT, AgentAttempts, AgentRan
from tests.support.agent_rows import ROWS
from tests.support.attempts import Lab
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import InlineSpec
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_runner.agent_check.scripted_model import Break, Fail, Hang, Reply, scripted_model
from trialfleet_runner.agents.protocol import Reach
from trialfleet_runner.agents.registry import agent

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow]

PITFALL = "a fraction such as 0.1 is a tenth of a percent"
AGENTS = [pytest.param(kind, marks=pytest.mark.needs(row.program)) for kind, row in ROWS.items()]
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens")


@pytest.fixture(scope="module", params=AGENTS)
def attempts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentAttempts]:
    root = tmp_path_factory.mktemp("agents")
    root.chmod(0o755)
    with scripted_model() as model:
        made = AgentAttempts(Lab(root), ROWS[request.param], model)
        assert made.lab.planned
        yield made


@pytest.fixture(scope="module")
def reach(attempts: AgentAttempts) -> Reach:
    spec = AgentSpec(kind=attempts.row.kind, model=attempts.row.tools.model, options=attempts.row.options)
    return agent(attempts.row.kind).identify(spec).reach


# Programs take up to eleven core seconds to start: an attempt serves each test that can read it.


@pytest.fixture(scope="module")
def repaired(attempts: AgentAttempts) -> AgentRan:
    return attempts.run(attempts.repair())


@pytest.fixture(scope="module")
def rooted(attempts: AgentAttempts, reach: Reach) -> AgentRan:
    """With the root's file, and denials where hooks can deny: the same failing test four times."""
    again = attempts.shell("python -m pytest -q tests/test_rules.py")
    return attempts.run([again] * 4, "flat", composed=Condition(files="flat", fail_fast=reach.fail_fast))


@pytest.fixture(scope="module")
def prompted_and_stopped(attempts: AgentAttempts) -> AgentRan:
    """With text in the prompt, and ended by the turn budget."""
    idle: list[Reply] = [attempts.shell("true")] * 6
    return attempts.run([attempts.reads(), attempts.edits(), *idle], "preamble_only", max_turns=3)


@pytest.fixture(scope="module")
def told_and_killed(attempts: AgentAttempts, reach: Reach) -> AgentRan:
    """With text in the system prompt where there may be some, and killed after its edit."""
    told = Condition(inline=InlineSpec(source="nearest", channel="system"))
    script: list[Reply] = [attempts.reads(), attempts.edits(), attempts.shell(attempts.row.killer)]
    return attempts.run(script, "killed", composed=told if reach.system else Condition())


def prompted(ran: AgentRan) -> bool:
    """Whether the model got the prompt to the byte, as a text of its own or inside one of the agent's."""
    prompt, strings = ran.left.bundle.files["prompt.txt"].decode(), ran.main[0].strings
    if ran.row.own_prompt:
        return prompt.strip() in strings
    return f"\n{prompt}\n" in f"\n{strings}\n"


def left_running(text: str) -> list[str]:
    """Command lines of processes that name `text`."""
    listed = subprocess.run(["ls", "/proc"], capture_output=True, text=True, check=True).stdout.split()
    found: list[str] = []
    for pid in filter(str.isdigit, listed):
        try:
            with open(f"/proc/{pid}/cmdline") as file:  # noqa: PTH123
                line = file.read()
        except OSError:
            continue
        found += [line] if text in line and int(pid) != os.getpid() else []
    return found


def test_it_repairs_and_nothing_undeclared_reaches_its_model(attempts: AgentAttempts, repaired: AgentRan) -> None:
    ran = repaired
    end, claimed = ran.scored, ran.claimed()
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.PASSED, Stop.FINISHED, True)
    assert prompted(ran)
    assert attempts.task_text.strip() in ran.main[0].strings
    assert PARENT_BAIT not in ran.everything
    assert HOME_BAIT not in ran.everything
    metrics = end.metrics
    assert tuple(getattr(metrics, kind) for kind in TOKENS) == (167, 66, 2300)
    assert (metrics.turns, ran.report["turns"], ran.report["error_count"]) == (4, 4, 0)
    if attempts.row.says_tokens:
        assert tuple(getattr(claimed, kind) for kind in TOKENS) == (167, 66, 2300)
    assert metrics.tool_calls == 3 + len(attempts.row.tools.ends)
    assert (metrics.first_edit_turn, metrics.edit_turns, metrics.tail_turns) == (2, 1, 2)
    assert metrics.files_read_before_edit == 1
    steps = [json.loads(line) for line in ran.left.bundle.files["trajectory.jsonl"].decode().splitlines()]
    assert [one["path"] for one in steps if one["kind"] in ("read", "edit")] == [FIXED, FIXED]
    assert (metrics.target_hit, metrics.files_changed) == (True, 1)


def test_the_key_is_nowhere_in_its_reach(repaired: AgentRan) -> None:
    ran, searched = repaired, repaired.main[3].strings
    assert "SEARCHED" in searched
    assert all(KEY not in request.strings for request in ran.main)
    assert KEY in "".join(str(request.headers) for request in ran.main)
    assert "/environ\n" not in searched
    assert KEY not in ran.left.said()
    assert KEY not in ran.left.errors


def test_the_roots_words_reach_its_model_whatever_the_file_is_called(rooted: AgentRan, reach: Reach) -> None:
    delivery = rooted.scored.delivery
    assert delivery.reached_model == {"files": True}
    assert PITFALL in rooted.main[0].strings
    if reach.root_file != "CLAUDE.md":
        assert delivery.read_as == {"CLAUDE.md": reach.root_file or "prompt"}


def test_the_hook_pushes_what_covers_the_file_that_is_read(attempts: AgentAttempts, reach: Reach) -> None:
    if not reach.hook_after:
        pytest.skip("no hook of this agent can add text: such a condition is refused")
    ran = attempts.run(attempts.repair(), "hooked", composed=Condition(hook="on_read", context="tree"))
    assert ran.scored.delivery.reached_model == {"hook": True}
    assert PITFALL not in ran.main[0].strings
    assert PITFALL in ran.main[1].strings
    assert ran.scored.metrics.hook_firings == 1


def test_text_in_the_system_channel(told_and_killed: AgentRan, reach: Reach) -> None:
    if not reach.system:
        pytest.skip("nothing can be added to this agent's system prompt: such a condition is refused")
    ran = told_and_killed
    assert ran.scored.delivery.reached_model == {"inline": True}
    assert PITFALL in ran.main[0].strings
    assert PITFALL not in ran.left.bundle.files["prompt.txt"].decode()


def test_text_in_the_prompt(prompted_and_stopped: AgentRan) -> None:
    ran = prompted_and_stopped
    assert ran.scored.delivery.reached_model == {"inline": True}
    assert PITFALL in ran.left.bundle.files["prompt.txt"].decode()
    assert prompted(ran)


def test_the_third_identical_test_command_is_denied(rooted: AgentRan, reach: Reach) -> None:
    if not reach.fail_fast:
        pytest.skip("no hook of this agent can deny a call: such a condition is refused")
    assert rooted.scored.metrics.fail_fast_denials == 2
    assert "1 failed" in rooted.main[2].strings


def test_its_shell_finds_the_tasks_own_python(repaired: AgentRan) -> None:
    said = repaired.main[3].strings.replace("\\n", "\n")  # some agents hand output over as JSON
    assert "bin/python\npytest " in said
    assert "/usr/bin/python\n" not in said


def test_the_turn_budget_ends_it_and_what_it_did_is_scored(prompted_and_stopped: AgentRan) -> None:
    assert len(prompted_and_stopped.main) == 3
    end = prompted_and_stopped.scored
    assert (end.verdict, end.stop, end.metrics.turns) == (Verdict.PASSED, Stop.MAX_TURNS, 3)


def test_it_goes_on_after_a_provider_that_was_busy(attempts: AgentAttempts) -> None:
    script: list[Reply] = [Fail(429, retry_after="1"), attempts.reads(), Fail(529), attempts.edits()]
    end = attempts.run(script + [Break()] * attempts.row.asks_again).scored
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED)
    assert (end.metrics.throttled_s or 0) > 0


def test_a_cut_answer_that_is_not_asked_for_again_is_a_loss(attempts: AgentAttempts) -> None:
    if attempts.row.asks_again:
        pytest.skip("its program repeats the request")
    end = attempts.run([attempts.reads(), Break()]).left.end
    if end.loss is not None:
        assert (end.loss.loss, end.loss.agent_started) == (LossClass.PROVIDER, True)
    else:
        assert end.scored is not None
        assert end.scored.stop is Stop.FINISHED, "it was repeated all the same"


def test_a_provider_that_fails_for_good_is_a_loss(attempts: AgentAttempts) -> None:
    if attempts.row.impatient is None:
        pytest.skip("this agent repeats a failed request until its time is over")
    options = {**attempts.row.options, **attempts.row.impatient}
    ran = attempts.run([attempts.reads(), *[Fail(529)] * 12], options=options)
    assert (ran.loss.loss, ran.loss.agent_started) == (LossClass.PROVIDER, True)
    assert ran.report["turns"] == 1
    assert KEY not in ran.left.said()


def test_a_hang_ends_with_its_time_and_leaves_no_process(attempts: AgentAttempts) -> None:
    sleeper = attempts.shell("(setsid sleep 987654 >/dev/null 2>&1 &); true")
    ran = attempts.run(
        [attempts.reads(), attempts.edits(), sleeper, Hang()],
        timeout_s=attempts.row.hangs_s + attempts.row.starts_s,
    )
    end = ran.scored
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.TIMED_OUT, Stop.TIMEOUT, True)
    assert left_running("987654") == []


def test_a_program_that_is_killed_is_scored(told_and_killed: AgentRan) -> None:
    end = told_and_killed.scored
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.CRASHED)
