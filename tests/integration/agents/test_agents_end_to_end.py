"""Every pinned agent's real program in whole attempts, from claim to end. One row of `agent_rows.ROWS` each."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.integration.agents.conftest import ALSO_SENT, PUSHED, SPARE
from tests.support.agent_attempts import FIXED, HOME_BAIT, KEY, PARENT_BAIT, AgentAttempts, AgentRan
from tests.support.agent_extensions import DESCRIPTION, TOOL
from tests.support.agent_rows import at
from tests.support.harbor import CONVERTERS, COUNTS, HARBOR, HarborProcess, start_harbor
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import Break, Hang, Reply
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.records.receipts import RECEIPTS, Arrival, Receipts
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_ledger.trajectory import Parsed

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow]

PITFALL = "a fraction such as 0.1 is a tenth of a percent"


def prompted(ran: AgentRan) -> bool:
    """Whether the model got the exact bytes of the prompt, alone or inside a longer text of the agent."""
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
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:  # noqa: PTH123
                line = file.read()
        except OSError:
            continue
        found += [line] if text in line and int(pid) != os.getpid() else []
    return found


def test_it_repairs_and_nothing_undeclared_reaches_its_model(attempts: AgentAttempts, repaired: AgentRan) -> None:
    ran, end = repaired, repaired.scored
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.PASSED, Stop.FINISHED, True)
    assert prompted(ran)
    assert attempts.task_text.strip() in ran.main[0].strings
    assert PARENT_BAIT not in ran.everything
    assert HOME_BAIT not in ran.everything
    metrics = end.metrics
    steps = [json.loads(line) for line in ran.left.bundle.files["trajectory.jsonl"].decode().splitlines()]
    touched = [one["path"] for one in steps if one["kind"] in ("read", "change")]
    assert [path for path in touched if "SKILL.md" not in path] == [FIXED, FIXED]
    assert (metrics.first_edit_turn, metrics.edit_turns, metrics.tail_turns) == (2, 1, len(ran.answers) - 2)
    assert (metrics.edits, metrics.files_read_before_edit) == (1, 1)
    assert (metrics.target_hit, metrics.files_changed) == (True, 1)


def test_turns_calls_and_tokens_agree(attempts: AgentAttempts, repaired: AgentRan) -> None:
    """Of the script, of the gateway, and of what the program says itself."""
    ran, metrics, opened = repaired, repaired.scored.metrics, bool(attempts.row.opens_skill)
    spent = (167 + 10 * opened, 66 + 5 * opened, 2300)
    assert tuple(getattr(metrics, kind) for kind in COUNTS) == spent
    if attempts.row.says_tokens:
        assert tuple(getattr(ran.claimed(), kind) for kind in COUNTS) == spent
    assert (metrics.turns, ran.report["turns"], ran.report["error_count"]) == (4 + opened, 4 + opened, 0)
    assert metrics.tool_calls == 3 + opened + len(attempts.row.tools.ends)


def test_the_key_is_nowhere_in_its_reach(repaired: AgentRan) -> None:
    ran, searched = repaired, repaired.main[-1].strings
    assert "SEARCHED" in searched
    assert all(KEY not in request.strings for request in ran.main)
    assert KEY in "".join(str(request.headers) for request in ran.main)
    assert "/environ\n" not in searched
    assert KEY not in ran.left.said()
    assert KEY not in ran.left.errors


def test_the_roots_words_reach_its_model_whatever_the_file_is_called(repaired: AgentRan, reach: Reach) -> None:
    delivery = repaired.scored.delivery
    assert (delivery.reached_model["files"], {*delivery.reached_model.values()}) == (True, {True})
    assert PITFALL in repaired.main[0].strings
    if reach.root_file != "CLAUDE.md":
        assert delivery.read_as["CLAUDE.md"] == (reach.root_file or "prompt")
        assert len(delivery.read_as) == 1 or repaired.row.kind in ALSO_SENT


def test_the_hook_pushes_what_covers_the_file_that_is_read(repaired: AgentRan, reach: Reach) -> None:
    if not reach.hook_after:
        pytest.skip("no hook of this agent can add text: such a condition is refused")
    assert repaired.scored.delivery.reached_model["hook"] is True
    assert PUSHED not in repaired.main[0].strings
    assert PUSHED in repaired.main[1].strings
    assert repaired.scored.metrics.hook_firings == 1


def test_a_node_that_the_program_would_send_too_arrives_once(repaired: AgentRan) -> None:
    kind = repaired.row.kind
    if kind not in ALSO_SENT:
        pytest.skip("its condition has no file that this program would send too")
    found = Receipts.model_validate_json(repaired.left.bundle.files[RECEIPTS]).receipts
    (hook,) = (one for one in found if one.name == "hook:shop/pricing/AGENTS.md")
    assert (hook.arrival, hook.copies) == (Arrival.WHOLE, 1)
    assert repaired.main[-1].strings.count(PUSHED) == 1
    own = "shop/pricing/CLAUDE.md" if kind == "claude-code" else "shop/pricing/AGENTS.md"
    assert repaired.scored.delivery.read_as[own] != own


def test_text_in_the_system_channel(cut_short: AgentRan, reach: Reach) -> None:
    if not reach.system:
        pytest.skip("nothing can be added to this agent's system prompt: such a condition is refused")
    assert cut_short.scored.delivery.reached_model == {"inline": True}
    assert PITFALL in cut_short.main[0].strings
    assert PITFALL not in cut_short.left.bundle.files["prompt.txt"].decode()


def test_text_in_the_prompt(stopped: AgentRan) -> None:
    reached = stopped.scored.delivery.reached_model
    assert (reached["inline"], {*reached.values()}) == (True, {True})
    assert PITFALL in stopped.left.bundle.files["prompt.txt"].decode()
    assert prompted(stopped)


def test_the_third_identical_test_command_is_denied(stopped: AgentRan, reach: Reach) -> None:
    if not reach.fail_fast:
        pytest.skip("no hook of this agent can deny a call: such a condition is refused")
    assert stopped.scored.metrics.fail_fast_denials == 2
    assert "1 failed" in stopped.main[2].strings


def test_its_shell_finds_the_tasks_own_python(repaired: AgentRan) -> None:
    said = repaired.main[-1].strings.replace("\\n", "\n")  # some agents hand output over as JSON
    assert "bin/python\npytest " in said
    assert "/usr/bin/python\n" not in said


def test_the_turn_budget_ends_it_and_what_it_did_is_scored(stopped: AgentRan) -> None:
    played = stopped.script[:-SPARE]
    assert len(stopped.main) == len(played)
    end, turns = stopped.scored, sum(isinstance(reply, Answer) for reply in played)
    assert (end.verdict, end.stop, end.metrics.turns) == (Verdict.PASSED, Stop.MAX_TURNS, turns)


def test_it_goes_on_after_a_provider_that_was_busy(stopped: AgentRan) -> None:
    """Else its edit, which comes after a 429, a 529 and a cut answer, would not be there."""
    assert stopped.scored.tests_passed
    assert (stopped.scored.metrics.throttled_s or 0) > 0
    assert stopped.report["error_count"] == 2 + stopped.row.asks_again


def test_a_cut_answer_that_is_not_asked_for_again_is_said_with_the_verdict(attempts: AgentAttempts) -> None:
    if attempts.row.asks_again:
        pytest.skip("its program repeats the request")
    end = attempts.run([attempts.reads(), Break()]).scored
    assert end.metrics.provider_gave_up or end.stop is Stop.FINISHED, "it was repeated all the same"


def test_a_provider_that_fails_for_seconds_is_said_with_the_verdict(cut_short: AgentRan) -> None:
    """An outage takes a minute (`test_whose_fault.py`): an agent may provoke some failures and end its program."""
    if cut_short.row.impatient is None:
        pytest.skip("no option of this agent makes it end before an outage takes a minute")
    end = cut_short.scored
    assert (end.verdict, end.metrics.provider_gave_up) == (Verdict.PASSED, True)
    assert cut_short.report["turns"] == 2
    assert KEY not in cut_short.left.said()


def test_a_hang_ends_with_its_time_and_leaves_no_process(attempts: AgentAttempts, repaired: AgentRan) -> None:
    """Under a condition that gives it nothing."""
    sleeper = attempts.shell("(setsid sleep 987654 >/dev/null 2>&1 &); true")
    script: list[Reply] = [attempts.reads(), attempts.edits(), sleeper, Hang()]
    took_s = repaired.scored.metrics.agent_s or 0  # for more calls
    for spare in (1, 3, 9):
        ran = attempts.run(script, timeout_s=round(spare * took_s + 2))
        if len(ran.main) == len(script):
            break  # else a busy machine was too slow to come to the hang
    end = ran.scored
    assert len(ran.main) == len(script)
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.TIMED_OUT, Stop.TIMEOUT, True)
    assert left_running("987654") == []
    assert [text for text in (PITFALL, PUSHED, PARENT_BAIT, HOME_BAIT) if text in ran.everything] == []


def test_a_program_that_is_killed_is_scored(cut_short: AgentRan) -> None:
    if cut_short.row.impatient is not None:
        pytest.skip("its attempt ends with a provider that fails")
    end = cut_short.scored
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.ERROR)


def test_skill_and_server_are_offered_and_which_was_used_is_measured(
    attempts: AgentAttempts, repaired: AgentRan, stopped: AgentRan
) -> None:
    """Of two attempts with both, one opens the skill, and the other calls the server's tool."""
    if attempts.row.opens_skill is None:
        pytest.skip("this agent has neither: such a condition is refused")
    for ran, opened in ((repaired, True), (stopped, False)):
        end = ran.scored
        assert DESCRIPTION in ran.main[0].strings
        assert TOOL in ran.main[0].strings
        said = "".join(request.strings for request in ran.main)
        assert ("rounded half to even" in said, "says the glossary" in said) == (opened, not opened)
        reached = end.delivery.reached_model
        assert (reached["skills"], reached["mcp"]) == (True, True)
        assert (end.metrics.skill_opened, end.metrics.mcp_called) == (opened, not opened)
        assert "SKILL.md" not in ran.left.bundle.files["patch.diff"].decode()


def test_settings_and_effort_are_in_the_requests_of_their_condition_only(
    repaired: AgentRan, cut_short: AgentRan
) -> None:
    chosen = repaired.row.chosen
    assert chosen is not None
    assert (chosen.shown(repaired.main[0]), chosen.shown(cut_short.main[0])) == (False, True)
    low = "LOW" if chosen.high.isupper() else "low"
    assert (at(repaired.main[0], *chosen.effort), at(cut_short.main[0], *chosen.effort)) == (low, chosen.high)


@pytest.fixture(scope="module")
def harbor() -> Iterator[HarborProcess]:
    with start_harbor() as process:
        yield process


@pytest.fixture(scope="module")
def harbors(repaired: AgentRan, harbor: HarborProcess, tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    """The ATIF that Harbor's converter makes of what the agent printed, as our reader understands it."""
    if repaired.row.kind not in CONVERTERS:
        pytest.skip("Harbor reads this agent's own session files: test_harbor_sessions.py")
    folder = tmp_path_factory.mktemp("harbor")
    converter, name = CONVERTERS[repaired.row.kind]
    (folder / name).write_bytes(repaired.left.bundle.files["agent/stdout.log"])
    return harbor.convert(converter, folder)


@HARBOR
def test_harbor_sees_the_same_steps(repaired: AgentRan, harbors: Parsed) -> None:
    lines = repaired.left.bundle.files["trajectory.jsonl"].decode().splitlines()
    own = [step for step in map(json.loads, lines) if step["kind"] != "change"]
    steps = [(step.turn, step.kind, step.tool, step.path) for step in harbors.steps]
    assert steps == [(one["turn"], one["kind"], one.get("tool"), one.get("path")) for one in own]
    kinds = [kind for _, kind, tool, _ in steps if tool]
    assert kinds[0] == "read"
    assert kinds[1] in ("edit", "run")  # an agent with a shell alone
    assert kinds[2:].count("run") == 1 + len(repaired.row.tools.ends)


@HARBOR
def test_harbor_counts_the_same_turns_calls_and_tokens(repaired: AgentRan, harbors: Parsed) -> None:
    own = repaired.claimed()
    turns = len(repaired.answers)
    assert (harbors.turns, harbors.tool_calls) == (own.turns, own.tool_calls)
    assert harbors.turns == turns
    if harbors.input_tokens is None:
        assert repaired.row.kind == "copilot", "Harbor takes no tokens from Copilot's events"
        return
    assert [getattr(harbors, name) for name in COUNTS] == [getattr(own, name) for name in COUNTS]
