"""Reading what copilot, opencode and gemini print: what it says, and what a hostile program could make of it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_agents.registry import agent
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trajectory import Parsed
from trialfleet_sandbox.protocol import Exit

ITSELF = Exit(0, "itself", 1.0, None)
FAILED = Exit(1, "itself", 1.0, None)
LATE = Exit(-9, "timeout", 9.0, None)
KINDS = ("copilot", "opencode", "gemini")


def parsed(folder: Path, kind: str, *events: object, ended: Exit | None = ITSELF) -> Parsed:
    rows = [event if isinstance(event, str) else json.dumps(event) for event in events]
    (folder / "stdout").write_text("\n".join(rows), encoding="utf-8", errors="surrogatepass")
    return agent(kind).parse(folder, ended, Path("/host/ws"))


def copilot_says(
    text: str, *calls: tuple[str, str, dict[str, Any]], at: str = "01", **more: Any
) -> dict[str, Any]:
    requests = [{"toolCallId": use, "name": name, "arguments": given} for use, name, given in calls]
    stamp = f"2026-01-01T00:00:{at}Z"
    return {
        "type": "assistant.message",
        "timestamp": stamp,
        "data": {"content": text, "toolRequests": requests, **more},
    }


def opencode_says(kind: str, name: str, at: int = 1000, **part: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": at, "part": {"messageID": name, **part}}


COPILOT = (
    {"type": "session.started", "timestamp": "2026-01-01T00:00:00Z"},
    copilot_says("Look.", ("1", "view", {"path": "/workspace/a.py"}), ("2", "view", {"path": "/workspace/none"})),
    {"type": "tool.execution_complete", "data": {"toolCallId": "1", "success": True}},
    {"type": "tool.execution_complete", "data": {"toolCallId": "2", "success": False, "error": {"message": "no"}}},
    copilot_says("", ("3", "apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n"}), at="03"),
    copilot_says("Helper.", ("4", "bash", {"command": "ls"}), at="04", parentToolCallId="3"),
    copilot_says("Done.", at="05"),
    {"type": "result", "exitCode": 0},
    {
        "modelMetrics": {
            "m": {"usage": {"inputTokens": 360, "outputTokens": 36, "cacheReadTokens": 60, "cacheWriteTokens": 10}}
        }
    },
)
TOKENS = {"input": 100, "output": 7, "reasoning": 5, "cache": {"read": 20, "write": 3}}
OPENCODE = (
    opencode_says("step_start", "m1"),
    opencode_says("text", "m1", text="Look."),
    opencode_says(
        "tool_use",
        "m1",
        tool="read",
        callID="1",
        state={"status": "completed", "input": {"filePath": "/workspace/a.py"}},
    ),
    opencode_says(
        "tool_use",
        "m1",
        tool="read",
        callID="2",
        state={"status": "error", "input": {"filePath": "/workspace/none"}, "error": "no"},
    ),
    opencode_says("step_finish", "m1", reason="tool-calls", tokens=TOKENS),
    opencode_says(
        "tool_use",
        "m2",
        3000,
        tool="edit",
        callID="3",
        state={"status": "completed", "input": {"filePath": "/workspace/a.py"}},
    ),
    opencode_says("step_finish", "m2", reason="tool-calls", tokens=TOKENS),
    opencode_says("text", "m3", 5000, text="Done."),
    opencode_says("step_finish", "m3", reason="stop", tokens=TOKENS),
)
STATS = {"input_tokens": 360, "output_tokens": 30, "total_tokens": 396, "cached": 60}
GEMINI = (
    {"type": "init", "timestamp": "2026-01-01T00:00:00Z", "model": "m"},
    {"type": "message", "role": "user", "content": "the prompt"},
    {"type": "message", "role": "assistant", "content": "Look.", "delta": True},
    {"type": "tool_use", "tool_name": "read_file", "tool_id": "1", "parameters": {"file_path": "/workspace/a.py"}},
    {"type": "tool_use", "tool_name": "read_file", "tool_id": "2", "parameters": {"file_path": "/workspace/none"}},
    {"type": "tool_result", "tool_id": "1", "status": "success"},
    {"type": "tool_result", "tool_id": "2", "status": "error", "error": {"message": "no"}},
    {"type": "tool_use", "tool_name": "replace", "tool_id": "3", "parameters": {"file_path": "/workspace/a.py"}},
    {"type": "tool_result", "tool_id": "3", "status": "success"},
    {"type": "message", "role": "assistant", "content": "Do", "delta": True},
    {"type": "message", "role": "assistant", "content": "ne.", "delta": True},
    {"type": "result", "status": "success", "stats": STATS},
)
PRINTED: dict[str, tuple[dict[str, Any], ...]] = {"copilot": COPILOT, "opencode": OPENCODE, "gemini": GEMINI}
SPENT = {"copilot": (290, 36, 60, 10), "opencode": (300, 36, 60, 9), "gemini": (300, 36, 60, 0)}


@pytest.mark.parametrize("kind", KINDS)
def test_steps_turns_tokens_and_last_words(tmp_path: Path, kind: str) -> None:
    found = parsed(tmp_path, kind, *PRINTED[kind])
    acts = [(step.turn, step.kind, step.path) for step in found.steps if step.kind != "message"]
    assert acts == [(1, "read", "a.py"), (1, "other", "none"), (2, "edit", "a.py")]
    assert (found.turns, found.tool_calls, found.answer) == (3, 3, "Done.")
    spent = (found.input_tokens, found.output_tokens, found.cache_read_tokens, found.cache_write_tokens)
    assert spent == SPENT[kind]
    assert (found.stop, found.malformed_lines) == (Stop.FINISHED, 0)


@pytest.mark.parametrize("kind", ["copilot", "opencode"])
def test_times_count_from_its_first_event(tmp_path: Path, kind: str) -> None:
    found = parsed(tmp_path, kind, *PRINTED[kind])
    assert found.steps[-1].at_s == {"copilot": 5.0, "opencode": 4.0}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_output_keeps_what_was_said(tmp_path: Path, kind: str) -> None:
    events = [json.dumps(event) for event in PRINTED[kind][:-2]]
    found = parsed(tmp_path, kind, *events, events[-1][: len(events[-1]) // 2], ended=LATE)
    assert (found.stop, found.malformed_lines) == (Stop.TIMEOUT, 1)
    assert found.turns is not None
    assert found.turns >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_said_is_not_zero(tmp_path: Path, kind: str) -> None:
    found = parsed(tmp_path, kind, ended=FAILED)
    assert (found.turns, found.tool_calls, found.input_tokens, found.answer) == (None, None, None, None)
    assert found.stop is Stop.ERROR
    assert parsed(tmp_path, kind, ended=ITSELF).stop is Stop.ERROR
    assert parsed(tmp_path, kind, ended=None).stop is None


@pytest.mark.parametrize(
    ("kind", "event", "stop"),
    [
        ("copilot", {"type": "result", "exitCode": 1}, Stop.ERROR),
        ("opencode", {"type": "error", "error": {"name": "APIError"}}, Stop.ERROR),
        ("gemini", {"type": "result", "status": "error", "error": {"type": "unknown"}}, Stop.ERROR),
        (
            "gemini",
            {"type": "result", "status": "error", "error": {"type": "FatalTurnLimitedError"}},
            Stop.MAX_TURNS,
        ),
    ],
)
def test_why_it_stopped(tmp_path: Path, kind: str, event: dict[str, Any], stop: Stop) -> None:
    before = PRINTED[kind][: 3 if kind != "copilot" else 2]
    assert parsed(tmp_path, kind, *before, event).stop is stop


@pytest.mark.parametrize("kind", KINDS)
def test_escapes_are_stripped_and_texts_capped(tmp_path: Path, kind: str) -> None:
    text = json.dumps(PRINTED[kind]).replace("Look.", "\\u001b[31m" + "x" * 2000).replace("a.py", "\\u202ea.py")
    found = parsed(tmp_path, kind, *json.loads(text))
    assert max(len(step.detail or "") for step in found.steps) == 500
    assert not any("\x1b" in (step.detail or "") or "\u202e" in (step.path or "") for step in found.steps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_count_that_no_table_holds_is_no_count(tmp_path: Path, kind: str) -> None:
    text = json.dumps(PRINTED[kind]).replace("360", str(2**80)).replace('"input": 100', f'"input": {2**80}')
    found = parsed(tmp_path, kind, *json.loads(text))
    assert (found.input_tokens, found.turns) == (None, 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(cast("dict[Any, Any]", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Any]", value)))
    for key, inner in items:
        found += _places(inner, (*path, key))
    return found


def _put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_value_in_any_place_is_survived(kind: str, data: st.DataObject) -> None:
    """Wrong types, huge and negative numbers, NaN: nothing is raised, and what is kept is within its limits."""
    events = json.loads(json.dumps(PRINTED[kind]))
    for _ in range(data.draw(st.integers(1, 4))):
        places = _places(events)
        _put(events, data.draw(st.sampled_from(places)), data.draw(JSON))
    with tempfile.TemporaryDirectory() as folder:
        found = parsed(Path(folder), kind, *events)
    Parsed.model_validate(found.model_dump())
    counts = (found.turns, found.tool_calls, found.input_tokens, found.output_tokens, found.cache_read_tokens)
    assert all(number is None or 0 <= number <= LARGEST_COUNT for number in counts)


@pytest.mark.parametrize("kind", KINDS)
@given(noise=st.binary(max_size=300), cut=st.integers(0, 2000))
def test_any_bytes_are_survived(kind: str, noise: bytes, cut: int) -> None:
    whole = "\n".join(json.dumps(event) for event in PRINTED[kind]).encode()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "stdout").write_bytes(whole[:cut] + noise + whole[cut:])
        agent(kind).parse(Path(folder), ITSELF, Path("/host/ws"))
