"""Steps from the gateway's record: the same for an answer of every API."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_agents.agent_check.scripted_answers import Answer, rendered
from trialfleet_agents.model_calls import RECORD, model_turns, steps
from trialfleet_agents.shell_command import read_command
from trialfleet_agents.tool_calls import Call

PATHS = ("/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/m:generateContent")


def record(folder: Path, *rows: object) -> Path:
    (folder / RECORD).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_of_every_api_is_read_alike(tmp_path: Path, path: str) -> None:
    calls = (Call("Read", {"file_path": "/workspace/a.py"}), Call("shell", {"cmd": "pytest -q"}))
    body, _ = rendered(path, Answer("Looking.", calls), "m", 1)
    row = {"at_s": 1.5, "turn": 1, "path": path, "response": body}
    found = steps(record(tmp_path, row, {"turn": None, "response": body}), ("/workspace",))
    assert [(step.turn, step.at_s, step.kind, step.path, step.detail) for step in found] == [
        (1, 1.5, "message", None, "Looking."),
        (1, 1.5, "read", "a.py", None),
        (1, 1.5, "run", None, "pytest -q"),
    ]


def test_a_patch_names_its_file(tmp_path: Path) -> None:
    call = Call("apply_patch", "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x\n+y\n*** End Patch\n")
    body, _ = rendered("/v1/responses", Answer("", (call,)), "m", 1)
    (step,) = steps(record(tmp_path, {"turn": 2, "response": body}), ("/workspace",), {"apply_patch": "edit"})
    assert (step.turn, step.kind, step.path) == (2, "edit", "a/b.py")


@pytest.mark.parametrize(
    "row",
    [
        {"turn": 0, "response": {"content": []}},
        {"turn": True, "response": {"content": []}},
        {"turn": 1, "response": None},
        {"turn": 1, "response": {"content": 3, "output": {}, "choices": [None], "candidates": [{"content": []}]}},
        {"turn": 1, "response": {"content": [{"name": 3}, {"name": "x", "input": [1]}]}},
        {"missing_lines": 3},
    ],
)
def test_what_is_no_answer_does_no_harm(tmp_path: Path, row: object) -> None:
    folder = record(tmp_path, row)
    assert len(steps(folder, ())) == sum(len(turn.calls) for turn in model_turns(folder))
    assert not list(model_turns(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "line", ["sed " * 250_000, "sed -" + "a" * 10**6, "cat " + "a/" * 500_000, "perl -x\n" * 10**5]
)
def test_a_long_command_takes_no_time(line: str) -> None:
    began = time.monotonic()
    assert read_command(line)[0] in ("read", "run")
    assert time.monotonic() - began < 5


@given(st.text(max_size=200))
def test_any_command_is_of_some_kind(command: str) -> None:
    kind, path = read_command(command)
    assert kind in ("read", "search", "run")
    assert path is None or path
