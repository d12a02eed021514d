"""Reading Claude Code's output: partial, malformed, hostile, cut short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trialfleet_agents.claude_code.parse import parse_stream
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_sandbox.protocol import Exit

INIT = {"type": "system", "subtype": "init", "cwd": "/workspace", "model": "claude-sonnet-4-6"}
FINE = Exit(0, "itself", 1.0, None)


def assistant(
    name: str, *blocks: dict[str, Any], output: int = 1, model: str = "claude-sonnet-4-6"
) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 100}
    message = {"id": name, "model": model, "role": "assistant", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": message}


def use(name: str, number: int, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


def result(subtype: str = "success", **more: Any) -> dict[str, Any]:
    models = {
        "claude-sonnet-4-6": {"inputTokens": 30, "outputTokens": 60, "cacheReadInputTokens": 300},
        "claude-haiku-4-5": {"inputTokens": 5, "outputTokens": 1},
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    base = {"is_error": subtype != "success", "num_turns": 99, "usage": usage, "modelUsage": models}
    return {"type": "result", "subtype": subtype, "total_cost_usd": 0.5, **base, **more}


def write(folder: Path, *events: dict[str, Any] | str) -> Path:
    rows = [event if isinstance(event, str) else json.dumps(event) for event in events]
    (folder / "stdout").write_text("\n".join(rows) + "\n")
    return folder


def test_turns_are_answers_and_not_tool_calls(tmp_path: Path) -> None:
    events = [
        INIT,
        assistant("m1", {"type": "text", "text": "look"}),
        assistant("m1", use("Read", 1, file_path="/workspace/a/b.py")),
        assistant("m1", use("Grep", 2, pattern="x", path="/workspace/a")),
        assistant("m1", use("Read", 1, file_path="/workspace/a/b.py")),  # the same block again
        assistant("m2", use("MultiEdit", 3, file_path="/elsewhere/c.py")),
        assistant("m2", use("Bash", 4, command="pytest -q")),
        assistant("m2", use("Bash", 5, command="sed -i s/1/2/ a/b.py")),
        result(),
    ]
    parsed = parse_stream(write(tmp_path, *events), FINE, tmp_path)
    assert (parsed.turns, parsed.tool_calls) == (2, 5)
    assert [(step.turn, step.kind, step.path) for step in parsed.steps] == [
        (1, "message", None),
        (1, "read", "a/b.py"),
        (1, "search", "a"),
        (2, "edit", "/elsewhere/c.py"),
        (2, "run", None),
        (2, "run", None),
    ]
    assert parsed.steps[4].detail == "pytest -q"


def test_the_last_result_wins_and_sums_over_models(tmp_path: Path) -> None:
    events = [INIT, assistant("m1"), result("error_during_execution", total_cost_usd=9), result()]
    parsed = parse_stream(write(tmp_path, *events), FINE, tmp_path)
    assert (parsed.input_tokens, parsed.output_tokens, parsed.cache_read_tokens) == (35, 61, 300)
    assert (parsed.cost_usd, parsed.stop, parsed.turns) == (0.5, Stop.FINISHED, 1)


@pytest.mark.parametrize(
    ("event", "stop"),
    [
        (result("error_max_turns"), Stop.MAX_TURNS),
        (result("error_max_budget_usd"), Stop.COST),
        (result("error_during_execution"), Stop.ERROR),
        (result("success", is_error=True), Stop.ERROR),
        (result("something_new", is_error=True), Stop.ERROR),
        (result("success"), Stop.FINISHED),
    ],
)
def test_why_it_stopped(tmp_path: Path, event: dict[str, Any], stop: Stop) -> None:
    assert parse_stream(write(tmp_path, INIT, event), FINE, tmp_path).stop is stop


def test_a_time_out_sums_what_was_answered(tmp_path: Path) -> None:
    """Counts of an answer's end come from the gateway where it knows the message."""
    noted = {
        "id": "m1",
        "turn": 1,
        "at_s": 2.5,
        "input_tokens": 10,
        "output_tokens": 500,
        "cache_read_tokens": 100,
    }
    (tmp_path / "answers.jsonl").write_text(json.dumps(noted) + "\n{broken")
    events = [INIT, assistant("m1", use("Read", 1, file_path="a.py")), assistant("m2", output=3)]
    parsed = parse_stream(write(tmp_path, *events), Exit(-9, "timeout", 60, None), tmp_path)
    assert (parsed.input_tokens, parsed.output_tokens, parsed.cache_read_tokens) == (20, 503, 200)
    assert (parsed.stop, parsed.cost_usd, parsed.turns) == (Stop.TIMEOUT, None, 2)
    assert parsed.steps[0].at_s == 2.5


def test_nothing_said_is_not_zero(tmp_path: Path) -> None:
    parsed = parse_stream(tmp_path, Exit(1, "itself", 1, None), tmp_path)
    assert (parsed.turns, parsed.input_tokens, parsed.cost_usd) == (None, None, None)
    assert parsed.stop is Stop.ERROR


def test_leaving_quietly_without_a_result_is_a_crash(tmp_path: Path) -> None:
    assert parse_stream(write(tmp_path, INIT, assistant("m1")), FINE, tmp_path).stop is Stop.ERROR


def test_malformed_and_partial_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    nested = "[" * 100_000
    events = [INIT, "not json", nested, "[1]", '"text"', assistant("m1"), '{"type": "assistant", "mess']
    parsed = parse_stream(write(tmp_path, *events), FINE, tmp_path)
    assert (parsed.turns, parsed.malformed_lines) == (1, 5)


def test_hostile_shapes_do_not_break_it(tmp_path: Path) -> None:
    events = [
        {"type": "assistant"},
        {"type": "assistant", "message": []},
        {"type": "assistant", "message": {"id": 7, "content": "x"}},
        {"type": "assistant", "message": {"id": "m", "content": [1, {"type": "tool_use", "input": 3, "id": []}]}},
        {"type": "user", "message": {"content": [{"tool_use_id": {}, "is_error": True}]}},
        {"type": "result", "modelUsage": {"x": 1}, "usage": [], "total_cost_usd": "much"},
        {"type": {"a": 1}},
    ]
    parsed = parse_stream(write(tmp_path, *events), FINE, tmp_path)
    assert (parsed.turns, parsed.cost_usd) == (1, None)


def test_the_programs_own_error_messages_are_no_turns(tmp_path: Path) -> None:
    said = assistant("x", {"type": "text", "text": "API Error"}, model="<synthetic>")
    parsed = parse_stream(write(tmp_path, INIT, said, result(is_error=True, modelUsage={})), FINE, tmp_path)
    assert (parsed.turns, parsed.steps) == (0, ())


def test_a_failed_edit_is_no_edit_and_escapes_are_stripped(tmp_path: Path) -> None:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": "\x1b[31mno\x1b[0m\x07"}
    events = [INIT, assistant("m1", use("Edit", 1, file_path="/workspace/\x1b]0;x\x07a.py"))]
    parsed = parse_stream(
        write(tmp_path, *events, {"type": "user", "message": {"content": [block]}}), FINE, tmp_path
    )
    assert [(step.kind, step.path, step.detail) for step in parsed.steps] == [("other", "a.py", "failed: no")]


def test_long_texts_are_capped(tmp_path: Path) -> None:
    events = [INIT, assistant("m1", {"type": "text", "text": "x" * 10_000}), result()]
    detail = parse_stream(write(tmp_path, *events), FINE, tmp_path).steps[0].detail
    assert detail is not None
    assert len(detail) == 500


def test_a_smaller_models_answers_are_no_turns(tmp_path: Path) -> None:
    events = [INIT, assistant("m1"), assistant("h1", model="claude-haiku-4-5-20251001"), result()]
    assert parse_stream(write(tmp_path, *events), FINE, tmp_path).turns == 1
