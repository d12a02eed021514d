"""The real Claude Code through the real gateway: what reaches the model, what is counted, how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_code import DONE, KEY, MODEL, Rig
from tests.support.scripted_messages import Break, Fail, Hang, Say, ScriptedMessages, Usage
from trialfleet_agents.claude_code import agent
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Canaries, TrialBudget

pytestmark = pytest.mark.needs("claude")


@pytest.fixture
def rig(tmp_path: Path, provider: ScriptedMessages) -> Rig:
    return Rig(tmp_path, provider)


# --- what reaches the model -----------------------------------------------------------------------------


def prompt_blocks(rig: Rig) -> list[str]:
    """Texts of the first user message that the program did not write itself."""
    content = rig.provider.main[0].body["messages"][0]["content"]
    return [block["text"] for block in content if not block["text"].startswith("<system-reminder>")]


def test_the_prompt_arrives_exactly_and_in_no_argument(rig: Rig) -> None:
    rig.prompt = 'Ünïcode "quotes" $HOME `x`\n\n```\nE   assert 1 == 2\n```\n' + "long line " * 20_000
    ran = rig.run(DONE)
    assert prompt_blocks(rig) == [rig.prompt]
    assert all("assert 1 == 2" not in argument for argument in ran.job.argv)
    assert (ran.ended.code, ran.parsed.stop) == (0, Stop.FINISHED)


def test_the_workspaces_claude_md_reaches_the_model_and_is_no_contamination(rig: Rig) -> None:
    path = rig.write("CLAUDE.md", "NEEDLE-ROOT: never swallow errors.\n")
    rig.write("AGENTS.md", "NEEDLE-AGENTS\n")
    rig.canaries = Canaries(
        declared=(
            DeclaredText("files", "NEEDLE-ROOT"),
            DeclaredText("other", "NEEDLE-OTHER"),
        ),
        files=frozenset({path}),
    )
    ran = rig.run(DONE)
    assert ran.report.reached == {"files": True, "other": False}
    assert ran.report.undeclared == ()
    assert "NEEDLE-AGENTS" not in rig.provider.main[0].strings  # this program loads CLAUDE.md only


def test_an_undeclared_claude_md_of_the_workspace_is_found(rig: Rig) -> None:
    path = rig.write("CLAUDE.md", "someone left this here\n")
    assert rig.run(DONE).report.undeclared == (path,)


def test_a_parent_folders_claude_md_is_found_when_scratch_lies_below_one(rig: Rig) -> None:
    bait = rig.root / "CLAUDE.md"
    bait.write_text("NEEDLE-PARENT\n")
    rig.canaries = Canaries(forbidden={"parent": ("NEEDLE-PARENT",)})
    assert rig.run(DONE).report.undeclared == (str(bait), "parent")


def test_a_childs_claude_md_counts_once_its_folder_is_read(rig: Rig) -> None:
    child = rig.write("src/CLAUDE.md", "NEEDLE-CHILD\n")
    rig.canaries = Canaries(declared=(DeclaredText("files", "NEEDLE-CHILD"),), files=frozenset({child}))
    first = rig.run(DONE).report
    assert first.reached == {"files": False}
    ran = rig.run(Say("", (rig.read(),)), DONE).report
    assert (ran.reached, ran.undeclared) == ({"files": True}, ())
    rig.canaries = Canaries()
    undeclared = rig.run(Say("", (rig.read(),)), DONE).report
    assert (undeclared.undeclared, undeclared.own_files) == ((), (child,)), "the agent may have made it"


@pytest.mark.parametrize("script", ["echo mine > src/CLAUDE.md", 'name=CLAUDE; echo mine > "src/$name.md"'])
def test_a_claude_md_that_the_agents_run_makes_is_no_contamination(rig: Rig, script: str) -> None:
    """Also if no answer of the model names the file: a script of the project may write it."""
    own = rig.seen("src/CLAUDE.md")
    ran = rig.run(Say("", (rig.bash(script),)), Say("", (rig.read(),)), DONE)
    assert f"Contents of {own}" in rig.provider.main[2].strings
    assert (ran.report.undeclared, ran.report.own_files) == ((), (own,))


def test_homes_own_claude_md_is_not_sent(rig: Rig) -> None:
    for home in ("home/.claude", "home"):
        (rig.attempt / home).mkdir(exist_ok=True)
        (rig.attempt / home / "CLAUDE.md").write_text("NEEDLE-HOME\n")
    rig.canaries = Canaries(forbidden={"home": ("NEEDLE-HOME",)})
    assert rig.run(DONE).report.undeclared == ()
    assert "NEEDLE-HOME" not in rig.provider.main[0].strings


def test_control_with_a_users_settings_homes_own_claude_md_is_sent(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flag alone keeps it out; without it the model gets it, and the canary sees that."""
    flags = agent._flags  # pyright: ignore[reportPrivateUsage]

    def weakened(*given: Any) -> tuple[str, ...]:
        return tuple(f"user,{word}" if word == "project,local" else word for word in flags(*given))

    monkeypatch.setattr(agent, "_flags", weakened)
    bait = rig.attempt / "home" / ".claude" / "CLAUDE.md"
    bait.parent.mkdir()
    bait.write_text("NEEDLE-HOME\n")
    rig.canaries = Canaries(forbidden={"home": ("NEEDLE-HOME",)})
    assert rig.run(DONE).report.undeclared == (str(bait), "home")
    assert "NEEDLE-HOME" in rig.provider.main[0].strings


def test_a_system_channel_text_reaches_the_system_prompt(rig: Rig) -> None:
    rig.system = "NEEDLE-SYSTEM: review these pitfalls"
    rig.canaries = Canaries(declared=(DeclaredText("inline", "NEEDLE-SYSTEM"),))
    assert rig.run(DONE).report.reached == {"inline": True}
    assert "NEEDLE-SYSTEM" in json.dumps(rig.provider.main[0].body["system"])
    assert prompt_blocks(rig) == [rig.prompt]


def test_the_hooks_text_arrives_after_the_read_and_not_before(rig: Rig) -> None:
    rig.hook = {"src/AGENTS.md": "## Pitfalls\n\n- NEEDLE-HOOK: x is shared\n"}
    rig.canaries = Canaries(declared=(DeclaredText("hook", "NEEDLE-HOOK"),))
    ran = rig.run(Say("", (rig.read(),)), Say("", (rig.read(),)), DONE)
    assert ran.report.reached == {"hook": True}
    seen = ["NEEDLE-HOOK" in request.strings for request in rig.provider.main]
    assert seen == [False, True, True]
    assert rig.provider.main[2].strings.count("NEEDLE-HOOK") == 1  # once per node
    firings = [json.loads(line) for line in (rig.attempt / "home/hook.jsonl").read_text().splitlines()]
    assert [(firing["node"], firing["emitted"]) for firing in firings] == [
        ("src/AGENTS.md", True),
        ("src/AGENTS.md", False),
    ]


def test_web_tools_and_memory_are_off(rig: Rig) -> None:
    rig.run(DONE)
    body = rig.provider.main[0].body
    names = {tool["name"] for tool in body["tools"]}
    assert {"Read", "Edit", "Bash"} <= names
    assert not {"WebSearch", "WebFetch"} & names
    assert all(tool.get("type") in (None, "custom") for tool in body["tools"])
    assert "/memory/" not in json.dumps(body["system"])


# --- what is counted ------------------------------------------------------------------------------------


def test_tokens_turns_and_cost_agree_between_gateway_and_agent(rig: Rig) -> None:
    ran = rig.run(
        Say("Looking.", (rig.read(),), Usage(100, 20, cache_read=1000, cache_write=300)),
        Say("Fixing.", (rig.edit(), rig.bash("cat src/a.py")), Usage(50, 30, cache_read=1300)),
        Say("Done.", (), Usage(7, 11)),
    )
    report, parsed = ran.report, ran.parsed
    assert (rig.ws / "src/a.py").read_text() == "x = 2\n"
    assert (report.turns, parsed.turns) == (3, 3)
    assert parsed.tool_calls == 3
    counted = (report.input_tokens, report.output_tokens, report.cache_read_tokens, report.cache_write_tokens)
    claimed = (parsed.input_tokens, parsed.output_tokens, parsed.cache_read_tokens, parsed.cache_write_tokens)
    assert counted == claimed == (157, 61, 2300, 300)
    assert parsed.cost_usd == pytest.approx(report.cost_usd)
    assert report.cost_usd == pytest.approx((157 * 3 + 61 * 15 + 2300 * 0.3 + 300 * 3.75) / 1e6)
    assert report.models == (MODEL,)


def test_the_trajectory_has_turns_paths_and_times(rig: Rig) -> None:
    ran = rig.run(Say("Looking.", (rig.read(),)), Say("", (rig.edit(), rig.bash("cat src/a.py"))), Say("Done."))
    seen = [(step.turn, step.kind, step.path) for step in ran.parsed.steps]
    assert seen == [
        (1, "message", None),
        (1, "read", "src/a.py"),
        (2, "edit", "src/a.py"),
        (2, "read", "src/a.py"),  # by a shell command
        (3, "message", None),
    ]
    times = [step.at_s for step in ran.parsed.steps]
    assert None not in times
    assert times == sorted(times, key=lambda at: at or 0.0)


LOOK = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}


def test_a_sub_agents_turns_and_tokens_are_counted(rig: Rig) -> None:
    task = {**LOOK, "run_in_background": False}
    ran = rig.run(Say("", (("Agent", task),)), Say("Sub.", (rig.read(),)), Say("Sub done."), Say("All done."))
    assert "Look around." in rig.provider.main[1].strings
    assert ran.report.turns == 4
    assert ran.parsed.turns == 3  # the program does not print a sub-agent's closing answer
    assert [(step.turn, step.kind) for step in ran.parsed.steps][-2:] == [(2, "read"), (4, "message")]
    assert ran.report.output_tokens == ran.parsed.output_tokens == 20


def test_a_sub_agent_in_the_background_has_turns_too(rig: Rig) -> None:
    """The program's default. Which of both asks next is not known: every answer but the last calls a tool."""
    ran = rig.run(Say("", (("Agent", LOOK),)), *[Say("", (rig.read(),))] * 4)
    assert "Look around." in "\n".join(request.strings for request in rig.provider.main)
    assert ran.report.side_requests == 0
    assert ran.report.turns == ran.parsed.turns == len(rig.provider.main) > 5
    assert ran.report.output_tokens == ran.parsed.output_tokens == 5 * len(rig.provider.main)


def test_an_edit_that_was_refused_is_no_edit(rig: Rig) -> None:
    name, change = rig.edit()
    ran = rig.run(Say("", ((name, {**change, "old_string": "no such text"}),)), DONE)
    assert (rig.ws / "src/a.py").read_text() == "x = 1\n"
    assert [step.kind for step in ran.parsed.steps] == ["other", "message"]


# --- how it ends ----------------------------------------------------------------------------------------


def test_turns_end_at_the_campaigns_limit(rig: Rig) -> None:
    rig.max_turns = 2
    ran = rig.run(*[Say("", (rig.bash("true"), rig.bash("true")))] * 4)
    assert len(rig.provider.main) == 2
    assert (ran.report.turns, ran.parsed.turns, ran.parsed.stop) == (2, 2, Stop.MAX_TURNS)


def test_the_gateways_turn_budget_ends_an_agent_that_does_not_count(rig: Rig) -> None:
    rig.budget = TrialBudget(max_turns=2)
    ran = rig.run(*[Say("", (rig.bash("true"),))] * 4)
    assert len(rig.provider.main) == 2
    assert (ran.report.turns, ran.report.stop) == (2, Stop.MAX_TURNS)
    assert ran.ended.code == 1


def test_the_money_budget_is_never_exceeded(rig: Rig) -> None:
    rig.budget = TrialBudget(max_cost_usd=0.5)
    spent = Usage(20_000, 10_000)  # 0.06 + 0.15 dollars a turn
    ran = rig.run(*[Say("", (rig.bash("true"),), spent)] * 9)
    assert ran.report.stop is Stop.COST
    assert ran.report.cost_usd is not None
    assert 0.2 < ran.report.cost_usd <= 0.5
    caps = [request.body["max_tokens"] for request in rig.provider.main]
    assert caps[-1] < caps[0]  # the last request was cut to what was left


def test_a_time_out_keeps_the_tokens_so_far(rig: Rig) -> None:
    script = (
        Say("Looking.", (rig.read(),), Usage(100, 20)),
        Say("", (rig.bash("timeout 130 tail -f /dev/null"),), Usage(50, 30)),  # nothing else ends it
    )
    for rig.timeout_s in (4, 20, 100):  # a busy machine may not have come to the second answer yet
        ran = rig.run(*script)
        if ran.parsed.turns == 2:
            break
    assert ran.ended.cause == "timeout"
    assert (ran.parsed.stop, ran.parsed.turns) == (Stop.TIMEOUT, 2)
    assert (ran.parsed.input_tokens, ran.parsed.output_tokens) == (150, 50)
    assert (ran.report.input_tokens, ran.report.output_tokens) == (150, 50)
    assert ran.report.provider_error is None


def test_a_429_is_waited_out_and_its_time_recorded(rig: Rig) -> None:
    ran = rig.run(Fail(429, "rate_limit_error", retry_after="1"), DONE)
    assert ran.parsed.stop is Stop.FINISHED
    assert 0.9 < ran.report.throttled_s < ran.ended.wall_s
    assert (ran.report.error_count, ran.report.turns, ran.report.provider_error) == (1, 1, None)


@pytest.mark.parametrize("failure", [Fail(529, "overloaded_error"), Fail(500)])
def test_a_provider_that_stays_down_is_named(rig: Rig, failure: Fail) -> None:
    rig.max_retries = 1
    ran = rig.run(*[failure] * 6)
    assert ran.report.provider_error is not None
    assert str(failure.status) in ran.report.provider_error
    assert (ran.report.halt, ran.report.turns, ran.ended.code) == (None, 0, 1)


def test_bad_credentials_halt_the_campaign(rig: Rig) -> None:
    rig.max_retries = 0
    ran = rig.run(then=Fail(401, "authentication_error", f"invalid x-api-key {KEY}"))
    assert ran.report.halt is not None
    assert ran.report.halt.startswith("401")
    assert KEY not in ran.report.model_dump_json()


def test_a_stream_that_breaks_is_retried_and_seen(rig: Rig) -> None:
    ran = rig.run(Break(), Say("Recovered.", (), Usage(10, 5)))
    assert ran.parsed.stop is Stop.FINISHED
    assert (ran.report.error_count, ran.report.provider_error, ran.report.turns) == (1, None, 1)
    assert ran.parsed.turns == 1


def test_a_provider_that_stops_in_mid_answer_is_cut_off(rig: Rig) -> None:
    rig.idle_timeout_s = 5
    ran = rig.run(Hang(after_words=True), DONE)
    assert ran.parsed.stop is Stop.FINISHED
    assert "the stream broke" in ran.report.errors[0].message
    assert ran.report.throttled_s >= 5


# --- the key --------------------------------------------------------------------------------------------


def test_the_key_is_nowhere_in_the_agents_reach_or_the_record(rig: Rig) -> None:
    look = "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; grep -rs sk-ant-the $HOME /tmp/trialfleet* | head"
    ran = rig.run(Say("", (rig.bash(look),)), DONE)
    assert [request.headers["x-api-key"] for request in rig.provider.main] == [KEY, KEY]  # the provider gets it
    assert all("authorization" not in request.headers for request in rig.provider.main)
    assert "ANTHROPIC_AUTH_TOKEN" in rig.provider.main[1].strings  # the agent saw its whole environment
    assert KEY not in rig.provider.main[1].strings
    assert KEY not in "\n".join([*ran.job.env.values(), *ran.job.argv])
    assert rig.files_with(KEY) == []
    token = ran.job.env["ANTHROPIC_AUTH_TOKEN"]
    assert (
        token in rig.provider.main[1].strings
    )  # worth nothing elsewhere, and kept out of the record all the same
    assert token not in (rig.attempt / "record/model.jsonl").read_text()
