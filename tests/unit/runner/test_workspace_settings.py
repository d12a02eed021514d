"""Agent × settings file × key: what no campaign may choose does not arrive as a file of a context either."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from trialfleet_agents.claude_code import CLAUDE_CODE
from trialfleet_agents.registry import KINDS
from trialfleet_agents.workspace_settings import deliverable_files

AS_FILES = {("claude-code", "hooks"), ("claude-code", "statusLine")}


def _nested(name: str, value: object) -> dict[str, Any]:
    """`a.b` as {"a": {"b": value}}."""
    for part in reversed(name.split(".")):
        value = {part: value}
    return value  # type: ignore[return-value]


def _rows() -> Iterator[tuple[str, str, str]]:
    for kind, one in KINDS.items():
        for path in one.files.settings:
            for keys in one.rules.reserved.values():
                for key in keys.split():
                    if (kind, key) not in AS_FILES:
                        yield kind, path, key.replace("*", "x")


@pytest.mark.parametrize(("kind", "path", "key"), [*_rows()])
def test_a_reserved_key_is_left_out_and_named(kind: str, path: str, key: str) -> None:
    data = json.dumps({"a choice of the team": [1, {"b": 2}], **_nested(key, "x")}).encode()
    delivered, left_out = deliverable_files(kind, {path: data})
    assert json.loads(delivered[path]) == {"a choice of the team": [1, {"b": 2}]}
    assert left_out == (f"{path}: {key}",)
    below = json.dumps(_nested(key, {"below": ["x"]})).encode()
    assert json.loads(deliverable_files(kind, {path: below})[0][path]) == {}
    assert deliverable_files("command", {path: data}) == ({path: data}, ())  # the control: nobody reads it there


@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if one.files.left_out])
def test_a_file_that_is_no_settings_in_json_is_left_out_whole(kind: str) -> None:
    files = {path.replace("*", "x.js"): b"anything" for path in KINDS[kind].files.left_out}
    assert deliverable_files(kind, {**files, "AGENTS.md": b"x"}) == ({"AGENTS.md": b"x"}, tuple(files))


@pytest.mark.parametrize("key", CLAUDE_CODE.rules.allowed.split())
def test_what_a_campaign_may_choose_a_context_may_too(key: str) -> None:
    data = json.dumps(_nested(key, "1")).encode()
    assert deliverable_files("claude-code", {".claude/settings.json": data}) == (
        {".claude/settings.json": data},
        (),
    )


def test_hooks_of_a_context_arrive() -> None:
    data = b'{"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
    assert deliverable_files("claude-code", {".claude/settings.json": data})[0] == {".claude/settings.json": data}


@pytest.mark.parametrize(
    "data",
    [
        b'{"env": {"A": "b"}, } // comment',
        b'{"env": {}, "env": {"ANTHROPIC_BASE_URL": "http://x"}}',
        b"[" * 100_000,
        b'["env"]',
        b"\xff\xfe{\x00}\x00",
        b"",
    ],
)
def test_what_two_programs_could_read_in_two_ways_is_left_out(data: bytes) -> None:
    delivered, left_out = deliverable_files("claude-code", {".claude/settings.json": data})
    assert b"env" not in delivered.get(".claude/settings.json", b"")
    assert left_out == (".claude/settings.json (it is no JSON object)",) or delivered
