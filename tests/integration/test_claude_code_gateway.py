"""The real Claude Code through the real gateway: what reaches the model, what is counted, how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_code import DONE, KEY, MODEL, Ran, Rig
from tests.support.scripted_messages import (
    Break,
    Fail,
    Hang,
    Request,
    Say,
    ScriptedMessages,
    Usage,
    scripted_messages,
)
from trialfleet_agents.claude_code import agent
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Canaries, TrialBudget

pytestmark = pytest.mark.needs("claude")


@pytest.fixture
def rig(tmp_path: Path, provider: ScriptedMessages) -> Rig:
    return Rig(tmp_path, provider)


# --- what reaches the model -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """A run that is given all that an agent may have at its start, and bait in HOME; `root`: its CLAUDE.md."""

    rig: Rig
    ran: Ran
    first: Request
    root: str

    @property
    def blocks(self) -> list[str]:
        """Texts of the first user message that the program did not write itself."""
        content = self.first.body["messages"][0]["content"]
        return [block["text"] for block in content if not block["text"].startswith("<system-reminder>")]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with scripted_messages() as provider:
        rig = Rig(tmp_path_factory.mktemp("told"), provider)
        rig.prompt = 'Ünïcode "quotes" $HOME `x`\n\n```\nE   assert 1 == 2\n```\n' + "long line " * 20_000
        rig.system = "NEEDLE-SYSTEM: review these pitfalls"
        root = rig.write("CLAUDE.md", "NEEDLE-ROOT: never swallow errors.\n")
        rig.write("AGENTS.md", "NEEDLE-AGENTS\n")
        for home in ("home/.claude", "home"):
            (rig.attempt / home).mkdir(exist_ok=True)
            (rig.attempt / home / "CLAUDE.md").write_text("NEEDLE-HOME\n")
        needles = {"files": "NEEDLE-ROOT", "inline": "NEEDLE-SYSTEM", "other": "NEEDLE-OTHER"}
        declared = tuple(DeclaredText(name, needle) for name, needle in needles.items())
        rig.canaries = Canaries(declared=declared, forbidden={"home": ("NEEDLE-HOME",)}, files=frozenset({root}))
        yield Told(rig, rig.run(DONE), provider.main[0], root)


def test_the_prompt_arrives_exactly_and_in_no_argument(told: Told) -> None:
    assert told.blocks == [told.rig.prompt]
    assert all("assert 1 == 2" not in argument for argument in told.ran.job.argv)
    assert (told.ran.ended.code, told.ran.parsed.stop) == (0, Stop.FINISHED)


def test_the_workspaces_claude_md_and_a_system_channel_text_are_no_contamination(told: Told) -> None:
    assert told.ran.report.reached == {"files": True, "inline": True, "other": False}
    assert told.ran.report.undeclared == ()
    assert "NEEDLE-AGENTS" not in told.first.strings  # this program loads CLAUDE.md only
    assert "NEEDLE-SYSTEM" in json.dumps(told.first.body["system"])


def test_homes_own_claude_md_is_not_sent(told: Told) -> None:
    assert "NEEDLE-HOME" not in told.first.strings


def test_web_tools_and_memory_are_off(told: Told) -> None:
    body = told.first.body
    names = {tool["name"] for tool in body["tools"]}
    assert {"Read", "Edit", "Bash"} <= names
    assert not {"WebSearch", "WebFetch"} & names
    assert all(tool.get("type") in (None, "custom") for tool in body["tools"])
    assert "/memory/" not in json.dumps(body["system"])


def test_an_undeclared_claude_md_of_the_workspace_or_of_a_folder_above_is_found(rig: Rig) -> None:
    own, bait = rig.write("CLAUDE.md", "someone left this here\n"), rig.root / "CLAUDE.md"
    bait.write_text("NEEDLE-PARENT\n")
    rig.canaries = Canaries(forbidden={"parent": ("NEEDLE-PARENT",)})
    assert {*rig.run(DONE).report.undeclared} == {own, str(bait), "parent"}


def test_a_childs_claude_md_counts_once_its_folder_is_read(rig: Rig) -> None:
    child = rig.write("src/CLAUDE.md", "NEEDLE-CHILD\n")
    rig.canaries = Canaries(declared=(DeclaredText("files", "NEEDLE-CHILD"),), files=frozenset({child}))
    ran = rig.run(Say("", (rig.read(),)), DONE).report
    seen = ["NEEDLE-CHILD" in request.strings for request in rig.provider.main]
    assert (seen, ran.reached, ran.undeclared) == ([False, True], {"files": True}, ())
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


# --- what is counted ------------------------------------------------------------------------------------


def test_tokens_turns_cost_and_trajectory_agree_between_gateway_and_agent(rig: Rig) -> None:
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
    seen = [(step.turn, step.kind, step.path) for step in ran.parsed.steps]
    assert seen == [
        (1, "message", None),
        (1, "read", "src/a.py"),
        (2, "message", None),
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


def test_a_429_and_a_stream_that_breaks_are_seen_and_retried(rig: Rig) -> None:
    ran = rig.run(Fail(429, "rate_limit_error", retry_after="1"), Break(), Say("Recovered.", (), Usage(10, 5)))
    assert (ran.parsed.stop, ran.parsed.turns) == (Stop.FINISHED, 1)
    assert 0.9 < ran.report.throttled_s < ran.ended.wall_s
    assert (ran.report.error_count, ran.report.turns, ran.report.provider_error) == (2, 1, None)


def test_a_provider_that_stays_down_is_named(rig: Rig) -> None:
    rig.max_retries = 1
    ran = rig.run(*[Fail(529, "overloaded_error")] * 6)
    assert ran.report.provider_error is not None
    assert "529" in ran.report.provider_error
    assert (ran.report.halt, ran.report.turns, ran.ended.code) == (None, 0, 1)


def test_bad_credentials_halt_the_campaign(rig: Rig) -> None:
    rig.max_retries = 0
    ran = rig.run(then=Fail(401, "authentication_error", f"invalid x-api-key {KEY}"))
    assert ran.report.halt is not None
    assert ran.report.halt.startswith("401")
    assert KEY not in ran.report.model_dump_json()


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
