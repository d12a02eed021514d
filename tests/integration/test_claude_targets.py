"""The real Claude Code under every delivery that names files, and under the fail-fast hook: what arrives, when."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.attempts import Lab, Told
from tests.support.claude_attempts import FIXED, Attempts, Ran, bash, edit, read
from tests.support.scripted_messages import Fail, Say, Usage, scripted_messages
from trialfleet_deliveries.naming import naming
from trialfleet_deliveries.texts import render
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.condition_order import Channel, InlineSource, InlineSpec
from trialfleet_ledger.records.measurements import Coverage, PreflightResult
from trialfleet_ledger.records.task_order import PredictedTarget, Prediction
from trialfleet_ledger.records.verdicts import Scored, Stop, Verdict

pytestmark = [pytest.mark.needs("claude"), pytest.mark.needs("bwrap")]

PREDICTION = Prediction(
    method="default",
    index="1" * 64,
    history=False,
    targets=(PredictedTarget(path=FIXED, score=1.0),),
    hit=True,
)
NAMED = Told(text=naming([FIXED]), targets=(FIXED,), globs=("shop/pricing/**",), prediction=PREDICTION)
POINTED = Told(targets=(FIXED,), prediction=PREDICTION)  # a pre-flight's text is yet to come
ABSTAINED = Told(
    abstained="low_confidence",
    prediction=PREDICTION.model_copy(update={"targets": (), "abstained": "low_confidence", "hit": None}),
)
DIRECTIVE = naming([FIXED]).splitlines()[0]
TESTS = "python -m pytest -q tests/test_rules.py"


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempts]:
    root = tmp_path_factory.mktemp("claude-targets")
    root.chmod(0o755)
    native = {"CLAUDE.md": "Shop.\n", ".claude/rules/pricing.md": NATIVE}
    with scripted_messages() as provider:
        made = Attempts(Lab(root, contexts={"native": native}), provider)
        with pytest.MonkeyPatch.context() as patched:
            if os.geteuid() == 0:
                patched.setenv("TRIALFLEET_ISOLATION", "uid")
            assert made.lab.planned
        yield made
        shutil.rmtree(made.clean, ignore_errors=True)


NATIVE_LINE = "A native rule about pricing that stands in no other file of this repository."
NATIVE = f"---\npaths:\n  - shop/pricing/**\n---\n\n{NATIVE_LINE}\n"


def scored(ran: Ran) -> Scored:
    assert ran.left.end.scored is not None, (ran.left.end.loss, ran.left.errors)
    return ran.left.end.scored


def inline(source: InlineSource = "targets", channel: Channel = "user") -> Condition:
    return Condition(inline=InlineSpec(source=source, channel=channel))


def repair() -> list[Say]:
    return [Say("", (bash("ls"),)), Say("", (read(),)), Say("", (edit(),)), Say("Done.")]


# --- deliveries -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", ["user", "system", "rules"])
def test_a_text_that_names_files_arrives_by_its_channel(attempts: Attempts, channel: Channel) -> None:
    ran = attempts.run(repair(), "named", composed=inline(channel=channel), told=NAMED)
    end, requests = scored(ran), [request.strings for request in ran.main]
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED)
    assert [DIRECTIVE in text for text in requests] == {
        "user": [True] * 4,
        "system": [True] * 4,
        "rules": [False, False, True, True],  # pushed with the result of the first read below its globs
    }[channel]
    assert (ran.prompts[0] == attempts.task_text) == (channel != "user")
    assert ran.prompts[0].startswith(attempts.task_text)
    assert end.delivery.reached_model == {"rules" if channel == "rules" else "inline": True}
    assert (end.delivery.targets, end.delivery.coverage) == ((FIXED,), Coverage.COVERED)
    assert (end.metrics.predicted_hit, end.metrics.target_hit) == (True, True)
    assert end.metrics.rule_firings == (1 if channel == "rules" else None)
    assert json.loads(ran.left.bundle.files["targets.json"])["targets"][0]["path"] == FIXED


def test_rules_nodes_and_fail_fast_compose(attempts: Attempts) -> None:
    condition = Condition(
        files="tree", hook="on_read", fail_fast=True, inline=InlineSpec(source="targets", channel="rules")
    )
    ran = attempts.run(repair(), "all", composed=condition, told=NAMED)
    end, second = scored(ran), ran.main[2].strings
    assert DIRECTIVE in second
    assert "Notes on the code in shop/pricing/" in second
    assert end.delivery.reached_model == {"files": True, "hook": True, "rules": True}
    assert (end.metrics.hook_firings, end.metrics.rule_firings, end.metrics.fail_fast_denials) == (1, 1, 0)


def test_an_abstention_changes_nothing_and_is_in_the_bundle(attempts: Attempts) -> None:
    ran = attempts.run(repair(), "named", composed=inline(), told=ABSTAINED)
    end = scored(ran)
    assert ran.prompts == [attempts.task_text]
    assert (end.delivery.abstained, end.delivery.coverage) == ("low_confidence", Coverage.NONE)
    assert (end.delivery.targets, end.delivery.reached_model) == ((), {})
    assert end.metrics.predicted_hit is None
    assert json.loads(ran.left.bundle.files["targets.json"])["abstained"] == "low_confidence"


def test_what_claude_code_does_with_rules_of_its_own_and_a_rule_that_nothing_matches(attempts: Attempts) -> None:
    """Files below .claude/rules with `paths` are the program's own: not sent at the start, but with a match. Ours
    for another folder is never pushed."""
    other = Told(text=naming(["docs/a.md"]), targets=("docs/a.md",), globs=("docs/**",))
    composed = Condition(files="native", inline=InlineSpec(source="targets", channel="rules"))
    ran = attempts.run(repair(), "native", composed=composed, told=other)
    end = scored(ran)
    assert end.verdict is Verdict.PASSED
    assert [NATIVE_LINE in request.strings for request in ran.main] == [False, False, True, True]
    assert all(DIRECTIVE not in request.strings for request in ran.main)
    assert (end.metrics.rule_firings, "rules" in end.delivery.reached_model) == (0, False)


# --- the fail-fast hook ---------------------------------------------------------------------------------


def run_tests() -> Say:
    return Say("", (bash(TESTS),))


def denied(ran: Ran) -> list[bool]:
    """By request: whether a denial is among the tool results that it brings for the first time."""
    said = [sum(render("fail_fast") in text for text in request.strings.split("\n")) for request in ran.main]
    return [now > before for before, now in zip([0, *said], said, strict=False)]


def test_the_third_identical_test_run_is_denied_and_only_that(attempts: Attempts) -> None:
    script = [run_tests(), run_tests(), run_tests(), Say("", (bash("ls"),)), Say("", (read(),)), run_tests()]
    script += [Say("", (bash("python -m pytest -q tests"),)), Say("", (edit(),)), run_tests(), Say("Done.")]
    ran = attempts.run(script, "fast", composed=Condition(fail_fast=True), max_turns=20)
    end = scored(ran)
    assert denied(ran) == [False, False, False, True, False, False, True, False, False, False]
    assert (end.verdict, end.metrics.fail_fast_denials) == (Verdict.PASSED, 2)
    log = [json.loads(line) for line in ran.left.bundle.files["fail_fast.jsonl"].splitlines()]
    assert [(line["command"] == TESTS, line["denied"]) for line in log] == [
        *[(True, False)] * 2,
        *[(True, True)] * 2,
        (False, False),
        (True, False),
    ]
    assert "1 failed" in ran.main[1].strings  # a failing command is what it is for
    assert "3 passed" in ran.main[-1].strings  # after the edit it ran


def test_without_the_condition_nothing_is_denied_and_what_was_predicted_is_recorded(attempts: Attempts) -> None:
    script = [run_tests(), run_tests(), run_tests(), Say("Done.")]
    ran = attempts.run(script, told=Told(prediction=PREDICTION))
    assert denied(ran) == [False] * 4
    assert scored(ran).metrics.fail_fast_denials is None
    assert scored(ran).metrics.predicted_hit is True
    assert "targets.json" in ran.left.bundle.files
    assert all(DIRECTIVE not in request.strings for request in ran.main)


def test_an_edit_by_a_shell_command_counts(attempts: Attempts) -> None:
    sed = "sed -i 's/discount \\/ 0/discount \\/ 100/' shop/pricing/rules.py"
    script = [run_tests(), run_tests(), Say("", (bash(sed),)), run_tests(), Say("Done.")]
    ran = attempts.run(script, "fast", composed=Condition(fail_fast=True))
    assert not any(denied(ran))
    assert (scored(ran).verdict, scored(ran).metrics.fail_fast_denials) == (Verdict.PASSED, 0)


def test_first_edits_are_what_changed_on_disk(attempts: Attempts) -> None:
    wrong = f"git apply <<'EOF'\n--- a/{FIXED}\n+++ b/{FIXED}\n@@ -1,1 +1,1 @@\n-no such line\n+new\nEOF"
    script = [
        Say("", (bash("cat > /tmp/x; echo 'a > b.py'; python -m pytest -q > log; touch shop/pricing/rules.py"),)),
        Say("", (bash(wrong),)),
        Say("", (bash(f"python3 - <<'EOF'\nopen('{FIXED}', 'a').write('# tried\\n')\nEOF"),)),
        Say("", (bash(f"git checkout -q {FIXED}"),)),
        Say("", (read(),)),
        Say("", (edit(),)),
        Say("Done."),
    ]
    ran = attempts.run(script, "none")
    end, metrics = scored(ran), scored(ran).metrics
    assert end.verdict is Verdict.PASSED
    assert (metrics.edits, metrics.target_hit, metrics.turns) == (3, True, 7)
    assert (metrics.first_edit_turn, metrics.exploration_turns) == (3, 2)
    assert (metrics.edit_turns, metrics.tail_turns, metrics.files_read_before_edit) == (4, 1, 0)
    steps = [json.loads(line) for line in ran.left.bundle.files["trajectory.jsonl"].splitlines()]
    shown = [(step["turn"], step["path"], step["detail"]) for step in steps if step["kind"] == "change"]
    assert shown == [(turn, FIXED, "changed") for turn in (3, 4, 6)]
    assert [step["turn"] for step in steps if step["kind"] == "edit"] == [6]


# --- the pre-flight -------------------------------------------------------------------------------------

FOUND = f"""FILE: {FIXED}
LINE: 10
FUNCTION: total
FIX: divide by 100
REASON: the discount is in percent
"""


def test_a_preflight_looks_and_its_cost_is_the_trials(attempts: Attempts) -> None:
    look = [Say("Looking.", (read(),), Usage(40, 10)), Say(FOUND, (), Usage(60, 20))]
    ran = attempts.run([*look, *repair()], "preflight", told=POINTED)
    end, requests = scored(ran), ran.main
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED)

    # the look: read-only tools, the targets, the task
    assert sorted(tool["name"] for tool in requests[0].body["tools"]) == ["Glob", "Read"]
    assert f"- `{FIXED}`" in requests[0].strings
    assert attempts.task_text.strip() in requests[0].strings

    # the turn: a session of its own, with what was found
    first = requests[2]
    assert "Bash" in [tool["name"] for tool in first.body["tools"]]
    assert f"- `{FIXED}`, line 10, in `total`: divide by 100. the discount is in percent." in first.strings
    asking = render("preflight", files="", calls=10, task="").splitlines()[0]
    assert asking in requests[0].strings
    assert asking not in "".join(request.strings for request in requests[2:])
    prompt = ran.left.bundle.files["prompt.txt"].decode()
    assert prompt.startswith(attempts.task_text)
    assert "in `total`" in prompt
    assert (end.delivery.preflight, end.delivery.targets) == (PreflightResult.FOUND, (FIXED,))
    assert end.delivery.reached_model == {"inline": True}

    # what it took is part of the whole, and stands apart
    metrics = end.metrics
    assert (metrics.turns, metrics.preflight_turns) == (6, 2)
    assert (metrics.tool_calls, metrics.preflight_tool_calls) == (4, 1)
    assert (metrics.input_tokens, metrics.preflight_input_tokens) == (100 + 4 * 10, 100)
    assert (metrics.output_tokens, metrics.preflight_output_tokens) == (30 + 4 * 5, 30)
    assert 0 < (metrics.preflight_cost_usd or 0) < (metrics.cost_usd or 0)
    assert 0 < (metrics.preflight_s or 0) < (metrics.agent_s or 0)
    assert (metrics.first_edit_turn, metrics.exploration_turns, metrics.tail_turns) == (5, 4, 1)
    assert (metrics.first_edit_s or 0) > (metrics.preflight_s or 0)
    assert metrics.preflight_hit is True
    kept = ran.left.bundle.files
    assert json.loads(kept["preflight/result.json"])["findings"][0]["line"] == 10
    assert kept["preflight/answer.txt"].decode() == FOUND
    assert b'"subtype":"init"' in kept["preflight/stdout.log"]


@pytest.mark.parametrize("isolation", [pytest.param("uid", marks=pytest.mark.needs("root")), "subreaper"])
def test_a_preflight_in_the_other_sandboxes(attempts: Attempts, isolation: str) -> None:
    look = [Say("Looking.", (read(),)), Say(FOUND)]
    env = {"TRIALFLEET_SCRATCH": str(attempts.clean)}
    ran = attempts.run([*look, *repair()], "preflight", told=POINTED, isolation=isolation, env=env)
    end = scored(ran)
    assert (end.verdict, end.delivery.preflight, end.metrics.turns) == (Verdict.PASSED, PreflightResult.FOUND, 6)
    assert end.delivery.reached_model == {"inline": True}


def test_a_preflight_that_the_provider_left_for_seconds_is_a_verdict_that_says_so(attempts: Attempts) -> None:
    """An agent could bring about some failures: only an outage that our own requests meet is a loss."""
    failing = [Fail(529, "overloaded_error")] * 12
    ran = attempts.run([Say("", (read(),)), *failing], "preflight", told=POINTED, options={"max_retries": 1})
    end = scored(ran)
    assert (end.verdict, end.metrics.provider_gave_up) == (Verdict.FAILED, True)


def test_a_preflight_is_kept_to_its_rules(attempts: Attempts) -> None:
    """Each file once, ten calls, nothing written: whatever the model asks for."""
    glob = ("Glob", {"pattern": "**/*.py"})
    write = ("Write", {"file_path": "{ws}/shop/new.py", "content": "x"})
    look = [Say("", (read(), read())), Say("", (write,)), Say("", (glob,) * 12), Say("UNCERTAIN: too much")]
    ran = attempts.run([*look, *repair()], "preflight", told=POINTED)
    end = scored(ran)
    seen = [json.loads(row) for row in results(ran, 3)]
    assert seen.count("ok") == 1 + 9
    assert ran.left.bundle.files["prompt.txt"].decode() == attempts.task_text
    assert end.delivery.preflight is PreflightResult.UNCERTAIN
    assert (end.delivery.targets, end.delivery.coverage) == ((), Coverage.NONE)
    assert end.metrics.files_changed == 1


def results(ran: Ran, request: int) -> list[str]:
    """Of the tools' results in this request: `"ok"`, or `"denied"`, as JSON."""
    found: list[Any] = []
    for message in ran.main[request].body["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        found += [block for block in content if block.get("type") == "tool_result"]
    return [json.dumps("denied" if block.get("is_error") else "ok") for block in found]


def test_nothing_to_look_at_costs_nothing(attempts: Attempts) -> None:
    ran = attempts.run(repair(), "preflight", told=ABSTAINED)
    end = scored(ran)
    assert len(ran.main) == 4
    assert ran.prompts == [attempts.task_text]
    assert (end.delivery.preflight, end.metrics.preflight_turns) == (PreflightResult.NO_TARGETS, 0)
    assert end.delivery.abstained == "low_confidence"


def test_turns_of_both_are_one_budget(attempts: Attempts) -> None:
    look = [Say("Looking.", (read(),)), Say(FOUND)]
    ran = attempts.run([*look, *repair()], "preflight", told=POINTED, max_turns=5)
    end = scored(ran)
    assert (len(ran.main), end.metrics.turns, end.stop) == (5, 5, Stop.MAX_TURNS)
    assert end.verdict is Verdict.PASSED  # the edit was the fifth
