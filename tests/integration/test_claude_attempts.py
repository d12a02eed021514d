"""The real Claude Code in whole attempts, for every condition, from claim to end."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.attempts import Lab
from tests.support.claude_attempts import (
    HOME_BAIT,
    KEY,
    LIMITS,
    PARENT_BAIT,
    Attempts,
    Ran,
    bash,
    edit,
    read,
    repair,
)
from tests.support.scripted_messages import Break, Fail, Hang, Reply, Say, Usage, scripted_messages
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.condition_order import PromptFrame
from trialfleet_ledger.records.measurements import Coverage
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass, Scored, Stop, Verdict

pytestmark = [pytest.mark.needs("claude"), pytest.mark.needs("bwrap")]

ROOT_LINE = "Prices are floats in euros, kept in the folder shop/pricing of this repository."
PITFALL = "a fraction such as 0.1 is a tenth of a percent"
RIVAL_LINE = "- Discounts are looked up in the table of vouchers, which a nightly job writes anew."
RIVAL = {"CLAUDE.md": "# Shop\n", "shop/pricing/AGENTS.md": f"# Pricing\n\n## Pitfalls\n\n{RIVAL_LINE}\n"}
DELIVERED = {
    "none": set[str](),
    "placebo": {"files"},
    "flat_llm": {"files"},
    "intent_layer": {"files", "hook"},
    "intent_layer_preamble": {"files", "inline", "hook"},
    "preamble_only": {"inline"},
}
EVERYWHERE = [
    *((name, "bubblewrap") for name in DELIVERED),
    pytest.param("intent_layer_preamble", "uid", marks=pytest.mark.needs("root")),
    ("intent_layer_preamble", "subreaper"),
]


# As a team commits it: its own gateway, which no trial can reach.
TEAM = {
    "CLAUDE.md": "Prices have two decimal places everywhere.\n",
    ".claude/settings.json": json.dumps(
        {
            "env": {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"},
            "outputStyle": "default",
        }
    ),
}
CONTEXTS = {
    "rival": RIVAL,
    "team": TEAM,
    "renamed": {"AGENTS.md": "Prices are floats.\n", ".claude/commands/mend.md": "In small steps: $ARGUMENTS\n"},
}


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempts]:
    root = tmp_path_factory.mktemp("claude")
    root.chmod(0o755)
    with scripted_messages() as provider:
        made = Attempts(
            Lab(root, contexts=CONTEXTS),
            provider,
        )
        with pytest.MonkeyPatch.context() as patched:
            if os.geteuid() == 0:  # one environment for all: its interpreter must be another user's too
                patched.setenv("TRIALFLEET_ISOLATION", "uid")
            assert made.lab.planned
        yield made
        shutil.rmtree(made.clean, ignore_errors=True)


def scored(ran: Ran) -> Scored:
    assert ran.left.end.scored is not None, ran.left.end
    return ran.left.end.scored


def lost(ran: Ran) -> Loss:
    assert ran.left.end.loss is not None, ran.left.end
    return ran.left.end.loss


# --- every condition ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "isolation"), EVERYWHERE)
def test_a_condition_from_prompt_to_verdict(attempts: Attempts, name: str, isolation: str) -> None:
    env = {} if isolation == "bubblewrap" else {"TRIALFLEET_SCRATCH": str(attempts.clean)}
    ran = attempts.run(repair(), name, isolation=isolation, env=env)
    end, first, second = scored(ran), ran.main[0].strings, ran.main[1].strings
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.PASSED, Stop.FINISHED, True)
    assert ran.left.bundle.manifest.isolation == isolation

    # what was asked, to the byte
    assert ran.prompts == [ran.left.bundle.files["prompt.txt"].decode()]
    assert ran.prompts[0].startswith(attempts.task_text)
    assert (ran.prompts[0] == attempts.task_text) == (name in ("none", "placebo"))

    # what reached the model, and when
    wanted = DELIVERED[name]
    assert end.delivery.reached_model == dict.fromkeys(wanted, True)
    assert (ROOT_LINE in first) == (name in ("flat_llm", "intent_layer", "intent_layer_preamble"))
    assert ("Language: Python" in first) == (name == "placebo")
    assert (PITFALL in first) == (name in ("flat_llm", "intent_layer_preamble", "preamble_only"))
    assert (PITFALL in "".join(ran.prompts)) == ("inline" in wanted)
    assert ("Notes on the code in shop/pricing/" in second) == ("hook" in wanted)
    assert "Notes on the code in" not in first
    assert end.delivery.coverage is (Coverage.COVERED if "inline" in wanted else Coverage.NOT_ASKED)
    assert end.delivery.files == tuple(
        {"placebo": ["CLAUDE.md"], "flat_llm": ["CLAUDE.md"]}.get(
            name, ["CLAUDE.md", "shop/pricing/AGENTS.md"] if "hook" in wanted else []
        )
    )

    # what must not have
    everything = "\n".join(request.strings for request in attempts.provider.requests)
    assert PARENT_BAIT not in everything
    assert HOME_BAIT not in everything

    counted(ran, hook="hook" in wanted)
    if isolation != "subreaper":  # the same user as the runner may read its environment; a warning says so
        hidden(ran)


def counted(ran: Ran, *, hook: bool) -> None:
    """The script's own numbers, as the gateway has them, as the program claims them, and as the end records."""
    metrics, claimed = scored(ran).metrics, ran.claimed()
    gateway = report(ran)
    tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    for source in (metrics, claimed):
        assert tuple(getattr(source, kind) for kind in tokens) == (157, 61, 2300, 300)
        assert (source.turns, source.tool_calls) == (3, 3)
        assert source.cost_usd == pytest.approx((157 * 3 + 61 * 15 + 2300 * 0.3 + 300 * 3.75) / 1e6)
    assert (gateway["turns"], gateway["error_count"], gateway["undeclared"]) == (3, 0, [])
    assert (metrics.first_edit_turn, metrics.exploration_turns) == (2, 1)
    assert (metrics.edit_turns, metrics.tail_turns) == (1, 1)
    assert (metrics.files_read_before_edit, metrics.context_files_read) == (1, 0)
    assert metrics.hook_firings == (1 if hook else None)
    assert (metrics.target_hit, metrics.files_changed) == (True, 1)
    assert (metrics.lines_added, metrics.lines_removed) == (1, 1)
    assert metrics.throttled_s == 0
    assert 0 < (metrics.first_edit_s or 0) < (metrics.agent_s or 0) < (metrics.wall_s or 0)


def hidden(ran: Ran) -> None:
    """The provider got the key; the agent, which looked, and the records did not. The gateway's own token, worth
    nothing elsewhere, is in the agent's environment and in no record."""
    assert {request.headers["x-api-key"] for request in ran.main} == {KEY}
    searched = ran.main[2].strings
    assert "SEARCHED" in searched
    assert "environ\n" not in searched.partition("SEARCHED")[0].rpartition("ANTHROPIC_AUTH_TOKEN")[2]
    assert all(KEY not in request.strings for request in ran.main)
    token = re.search(r"ANTHROPIC_AUTH_TOKEN=(tf-[\w-]+)", searched)
    assert token is not None
    recorded = ran.left.said() + ran.live().decode()
    assert "SEARCHED" in recorded
    assert '"model"' in ran.left.bundle.files["gateway/model.jsonl"].decode()
    for secret in (KEY, token[1]):
        assert secret not in recorded
        assert secret not in ran.left.errors


def test_slash_command_chosen_tools_and_a_root_file_of_another_agents_name(attempts: Attempts) -> None:
    """Claude Code loads no AGENTS.md by itself: a condition names what is said."""
    composed = Condition(files="renamed", prompt=PromptFrame(template="/mend {task}"))
    options = {"tools": ["Read", "Edit", "Bash"], "disallowed_tools": ["Bash"]}
    ran = attempts.run([Say("Done.")], condition="renamed", composed=composed, options=options)
    first, delivery = ran.main[0], scored(ran).delivery
    assert f"In small steps: {attempts.task_text}".strip() in first.strings
    assert {tool["name"] for tool in first.body["tools"]} == {"Read", "Edit"}
    assert delivery.reached_model["files"] is True
    assert delivery.read_as == {"AGENTS.md": "CLAUDE.md"}
    assert "CLAUDE.md" in delivery.files


@pytest.mark.parametrize(
    ("options", "denied"),
    [
        ({"permission_mode": "acceptEdits"}, True),
        ({"permission_mode": "dontAsk", "allowed_tools": ["Read", "Edit"]}, True),
        ({"permission_mode": "dontAsk", "allowed_tools": ["Edit", "Bash(python3 *)"]}, False),
    ],
)
def test_it_does_what_its_permissions_allow(attempts: Attempts, options: dict[str, object], denied: bool) -> None:
    """Without such an option it runs every command: the conditions above."""
    mend = edit(" / 0", " / 100")
    ran = attempts.run(
        [Say("", (mend,)), Say("", (bash("python3 -c 'print(6 * 7)'"),)), Say("Done.")], options=options
    )
    assert scored(ran).verdict is Verdict.PASSED
    assert ("42" in str(ran.main[2].body["messages"][-1])) is not denied


def test_bait_that_does_reach_the_model_is_a_loss(attempts: Attempts) -> None:
    """The control of the tests above: the same bait, without the namespace that hid it."""
    ran = attempts.run([Say("Done.")], isolation="subreaper")
    loss = lost(ran)
    assert PARENT_BAIT in ran.main[0].strings
    assert (loss.loss, loss.halt) == (LossClass.CONTAMINATED, HaltScope.NONE)
    assert str(attempts.lab.scratch.parent / "CLAUDE.md") in loss.message
    assert (loss.agent_started, loss.patched, ran.left.patch) == (True, False, None)
    assert PARENT_BAIT in ran.left.bundle.files["gateway/model.jsonl"].decode()


@pytest.mark.parametrize("isolation", ["subreaper", "bubblewrap"])
def test_another_contexts_text_is_contamination_wherever_it_comes_from(attempts: Attempts, isolation: str) -> None:
    """The agent goes through the operator's folders. Where the sandbox hides them it comes back empty, and under
    the condition that delivers the text it reads nothing new: the same search is scored."""
    folder = attempts.lab.task_file.parent / "contexts"
    script = [Say("", (read(),)), Say("", (bash(f"cat {folder}/flat/CLAUDE.md; echo SEARCHED"),)), Say("Done.")]
    env = {"TRIALFLEET_SCRATCH": str(attempts.clean)}
    ran = attempts.run(script, isolation=isolation, env=env)
    assert "SEARCHED" in ran.main[2].strings
    if isolation == "bubblewrap":
        assert ROOT_LINE not in ran.main[2].strings
        assert scored(ran).verdict is Verdict.FAILED
        return
    assert ROOT_LINE in ran.main[2].strings
    loss = lost(ran)
    assert (loss.loss, loss.halt, loss.patched) == (LossClass.CONTAMINATED, HaltScope.NONE, False)
    assert loss.message == "reached the model undeclared: context flat, context tree"
    assert scored(attempts.run(script, "flat_llm", isolation=isolation, env=env)).verdict is Verdict.FAILED


def test_a_hook_that_pushes_another_tree_than_was_planned_is_contamination(attempts: Attempts) -> None:
    """Planned is the task's `tree`; what the hook reads from is another. Watched as what it is, it is scored."""
    planned, other = attempts.lab.condition("intent_layer").forbidden, Condition(hook="on_read", context="rival")
    assert planned == {"rival": (RIVAL_LINE,)}
    ran = attempts.run(repair(), "hooked", composed=other, forbidden=planned)
    assert RIVAL_LINE in ran.main[1].strings
    loss = lost(ran)
    assert (loss.loss, loss.halt) == (LossClass.CONTAMINATED, HaltScope.NONE)
    assert loss.message == "reached the model undeclared: context rival"
    assert scored(attempts.run(repair(), "hooked", composed=other)).verdict is Verdict.PASSED


def test_what_is_watched_for_is_nowhere_in_the_agents_reach(attempts: Attempts) -> None:
    """It lies in the grants, which are the runner's; the control is a line that is delivered. /usr is the
    machine's own, read-only, and gigabytes: from a cold disk that takes longer than the agent's tool waits. Below
    `.claude/projects` the program notes what it sent itself."""
    excluded = " ".join(f"--exclude-dir={name}" for name in ("proc", "sys", "dev", "usr", "projects"))
    everywhere = f"{excluded} / /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
    search = bash(f"grep -rslE 'table of [v]ouchers|kept in the [f]older' {everywhere}; true")
    assert attempts.lab.condition("flat_llm").forbidden == {"rival": (RIVAL_LINE,)}
    ran = attempts.run([Say("", (search,)), Say("Done.")], "flat_llm")
    assert "/workspace/CLAUDE.md" in ran.main[1].strings
    assert scored(ran).verdict is Verdict.FAILED
    found = [line for line in ran.main[1].strings.splitlines() if line.startswith("/")]
    assert found == ["/workspace/CLAUDE.md"]
    assert "vouchers" not in ran.left.said()


# --- budgets --------------------------------------------------------------------------------------------


def test_turns_of_sub_agents_count_and_the_gateway_ends_the_trial(attempts: Attempts) -> None:
    task = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}
    script = [Say("", (read(),)), Say("", (edit(), ("Agent", task))), Say("Sub.", (read(),))]
    ran = attempts.run([*script, *[Say("", (edit("/ 100", "/ 7"),))] * 3], max_turns=3)
    assert len(ran.main) == 3
    end = scored(ran)
    assert (end.verdict, end.stop, end.metrics.turns) == (Verdict.PASSED, Stop.MAX_TURNS, 3)
    assert any("turns are spent" in why for why in report(ran)["refused"])


def test_the_trials_money_ends_it_and_what_it_did_is_scored(attempts: Attempts) -> None:
    spent = Usage(20_000, 10_000)  # 0.21 dollars
    script = [Say("", (read(),), spent), Say("", (edit(),), spent), *[Say("", (bash("true"),), spent)] * 3]
    ran = attempts.run(script, limits=LIMITS.model_copy(update={"cost_usd": 0.7}))
    end = scored(ran)
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.COST)
    assert 0.4 < (end.metrics.cost_usd or 0) <= 0.7


@pytest.mark.timeout(600)
def test_a_time_out_is_scored_and_keeps_what_was_counted(attempts: Attempts) -> None:
    script = [Say("", (read(),), Usage(100, 20)), Say("", (edit(),), Usage(50, 30)), Hang(after_words=True)]
    for timeout_s in (8, 30, 120):  # a busy machine may not have come to the words of the answer that hangs
        ran = attempts.run(script, timeout_s=timeout_s)
        if "Let me think" in ran.left.bundle.files["gateway/model.jsonl"].decode():
            break
    end, claimed = scored(ran), ran.claimed()
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.TIMED_OUT, Stop.TIMEOUT, True)
    # the answer that was cut is a turn, and had announced 10 and 1 when it began
    assert (end.metrics.turns, end.metrics.input_tokens, end.metrics.output_tokens) == (3, 160, 51)
    assert (claimed.turns, claimed.tool_calls, claimed.input_tokens) == (2, 2, 150)
    assert end.metrics.first_edit_turn == 2
    assert b'"subtype":"init"' in ran.live()


# --- the provider ---------------------------------------------------------------------------------------


@pytest.mark.timeout(600)
def test_throttled_time_is_recorded_and_not_the_agents(attempts: Attempts) -> None:
    """The whole takes longer than the agent's time, and without the wait it does not: on a busy machine with
    more of all three."""
    for scale in (1, 3, 9):
        script: list[Reply] = [
            Fail(429, "rate_limit_error", retry_after=str(5 * scale)),
            Say("", (read(),)),
            Say("", (edit(), bash(f"sleep {4 * scale}"))),
        ]
        ran = attempts.run(script, timeout_s=8 * scale)
        end = scored(ran)
        if end.stop is not Stop.TIMEOUT:
            break
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED)
    assert 4.9 * scale < (end.metrics.throttled_s or 0) < (end.metrics.agent_s or 0) - 4 * scale
    assert (end.metrics.agent_s or 0) > 8 * scale
    assert ran.left.patch is not None
    assert ran.left.patch.throttled_s == end.metrics.throttled_s


def test_a_provider_that_refuses_everybody_is_a_loss_and_halts(attempts: Attempts) -> None:
    failure = Fail(401, "authentication_error", f"invalid x-api-key {KEY}")
    ran = attempts.run([Say("", (read(),))], then=failure, options={"max_retries": 1})
    loss = lost(ran)
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.PROVIDER, HaltScope.CAMPAIGN, True)
    assert ran.left.patch is None
    assert report(ran)["turns"] == 1
    assert KEY not in ran.left.said()


@pytest.mark.parametrize("failure", [Fail(529, "overloaded_error"), Break()], ids=["overloaded", "broken streams"])
def test_an_outage_that_a_request_of_our_own_does_not_meet_is_a_verdict(
    attempts: Attempts, failure: Fail | Break
) -> None:
    ran = attempts.run([Say("", (read(),)), *[failure] * 12], options={"max_retries": 1})
    assert scored(ran).verdict is Verdict.FAILED
    assert report(ran)["provider_error"] is not None


def test_without_a_key_nothing_starts(attempts: Attempts) -> None:
    loss = lost(attempts.run([], env={"ANTHROPIC_API_KEY": ""}))
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.PROVIDER, HaltScope.CAMPAIGN, False)
    assert "ANTHROPIC_API_KEY" in loss.message


def test_a_contexts_settings_do_not_lead_the_agent_elsewhere(attempts: Attempts) -> None:
    look = Say("", (bash("cat .claude/settings.json"),))
    ran = attempts.run([look, *repair()], "team", composed=Condition(files="team"))
    assert scored(ran).verdict is Verdict.PASSED
    assert '{\\"outputStyle\\": \\"default\\"}' in json.dumps(ran.main[1].body)
    settings = "left out of the context: .claude/settings.json: env"
    assert ran.left.bundle.manifest.warnings == (f"{settings}.HTTPS_PROXY", f"{settings}.HTTP_PROXY")


def test_a_program_that_is_killed_by_itself_is_scored(attempts: Attempts) -> None:
    last = bash("env > leaked.txt; kill -9 $PPID")
    ran = attempts.run([Say("", (read(),)), Say("", (edit(),)), Say("", (last,))])
    end = scored(ran)
    assert "+ANTHROPIC_AUTH_TOKEN=[redacted]" in ran.left.said()
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.ERROR)
    assert (end.metrics.turns, end.metrics.tool_calls, end.metrics.cost_usd) == (3, 3, report(ran)["cost_usd"])


def test_a_program_that_dies_while_the_provider_fails_for_seconds_has_a_verdict_that_says_so(
    attempts: Attempts,
) -> None:
    """An agent can kill its own program, and provoke a refusal first: that is no outage."""
    for nap in (3, 12, 25):  # a busy machine may not have come to the first refusal after three seconds
        killer = bash(f"(sleep {nap}; kill -9 $PPID) >/dev/null 2>&1 & true")
        ran = attempts.run([Say("", (killer,)), *[Fail(529, "overloaded_error", retry_after="30")] * 3])
        if report(ran)["error_count"]:
            break
    end = scored(ran)
    assert (end.verdict, end.metrics.provider_gave_up) == (Verdict.FAILED, True)


def report(ran: Ran) -> dict[str, Any]:
    return json.loads(ran.left.bundle.files["gateway/report.json"])
