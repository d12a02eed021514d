"""Agent × settings file × key: only what says what the model reads arrives as a file of a context."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_agents.chosen_settings import paths_of
from trialfleet_agents.front_matter import UNCLEAR_FRONT_MATTER
from trialfleet_agents.registry import KINDS
from trialfleet_agents.workspace_settings import deliverable_files

WITH_SETTINGS = [(kind, path) for kind, one in KINDS.items() for path in one.files.settings]
# Keys of the pinned programs that change the harness and that no list of forbidden keys had.
HARNESS = {
    "claude-code": "agent permissionMode fileSuggestion alwaysThinkingEnabled env.MAX_THINKING_TOKENS "
    "skipDangerousModePermissionPrompt",
    "gemini": "tools.core general.requestTimeoutMs tools.shell.inactivityTimeout model.compressionThreshold "
    "modelConfigs.overrides.modelConfig.generateContentConfig.maxOutputTokens useWriteTodos",
    "copilot": "excludedTools availableTools provider.baseUrl stream",
}


def _nested(name: str, value: object) -> dict[str, Any]:
    """`a.b` as {"a": {"b": value}}."""
    for part in reversed(name.split(".")):
        value = {part: value}
    return value  # type: ignore[return-value]


def _rows() -> Iterator[tuple[str, str, str]]:
    for kind, path in WITH_SETTINGS:
        one = KINDS[kind]
        reserved = [key.replace("*", "x") for keys in one.rules.reserved.values() for key in keys.split()]
        for key in (*reserved, *one.rules.allowed.split(), *HARNESS[kind].split(), "a key of a later version"):
            if key not in one.rules.in_files.split():
                yield kind, path, key


@pytest.mark.parametrize(("kind", "path", "key"), [*_rows()])
def test_a_key_that_is_not_known_to_be_harmless_is_left_out_and_named(kind: str, path: str, key: str) -> None:
    data = json.dumps({"$schema": "x", **_nested(key, "x")}).encode()
    delivered, left_out = deliverable_files(kind, {path: data})
    assert json.loads(delivered[path]) == {"$schema": "x"}
    assert left_out == (f"{path}: {key}",)
    below = json.dumps(_nested(key, {"below": ["x"]})).encode()
    assert json.loads(deliverable_files(kind, {path: below})[0][path]) == {}
    assert deliverable_files("command", {path: data}) == ({path: data}, ())  # the control: nobody reads it there


_JSON = st.recursive(
    st.booleans() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40)
@given(
    st.sampled_from(WITH_SETTINGS),
    st.dictionaries(st.sampled_from(["agent", "hooks", "ui", "context", "theme", "tools", "x.y"]), _JSON),
)
def test_nothing_arrives_but_the_allowed_keys(where: tuple[str, str], written: dict[str, Any]) -> None:
    kind, path = where
    delivered, _ = deliverable_files(kind, {path: json.dumps(written).encode()})
    patterns = [pattern.split(".") for pattern in KINDS[kind].rules.in_files.split()]
    for found in paths_of(json.loads(delivered[path])):
        assert any(len(found) >= len(one) and all(map(fnmatchcase, found, one)) for one in patterns), found


@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if one.files.left_out])
def test_a_file_that_is_no_settings_in_json_is_left_out_whole(kind: str) -> None:
    files = {path.replace("*", "x.js"): b"anything" for path in KINDS[kind].files.left_out}
    assert deliverable_files(kind, {**files, "AGENTS.md": b"x"}) == ({"AGENTS.md": b"x"}, tuple(files))


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [(kind, path, key) for kind, path in WITH_SETTINGS for key in KINDS[kind].rules.in_files.split()],
)
def test_what_says_what_the_model_reads_arrives(kind: str, path: str, key: str) -> None:
    data = json.dumps(_nested(key.replace("*", "x"), {"below": [1, {"b": 2}]})).encode()
    assert deliverable_files(kind, {path: data}) == ({path: data}, ())


TEXTS = (
    ".claude/agents/review.md",
    "src/.claude/skills/prices/SKILL.md",
    ".claude/commands/a/fix.md",
    ".github/agents/review.agent.md",
    ".opencode/mode/plan.md",
    ".gemini/agents/x.md",
)
AGENT = "---\nname: review\ndescription: Reads\n  the code\n{0}---\nRead it.\n"
REFUSED = ["tools", "model", "permissionMode", "mcpServers", "hooks", "maxTurns", "permission", "allowed-tools"]


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if one.files.roots])
def test_front_matter_keeps_what_the_model_reads(kind: str, path: str) -> None:
    more = "".join(f"{key}:\n  - x\n- y\n" for key in REFUSED)
    delivered, left_out = deliverable_files(kind, {path: AGENT.format(more).encode()})
    assert delivered == {path: AGENT.format("").encode()}
    assert left_out == tuple(f"{path}: {key}" for key in REFUSED)
    plain = {
        path: AGENT.format("").encode(),
        "docs/agents/x.md": AGENT.format(more).encode(),
        "AGENTS.md": b"---\nx",
    }
    assert deliverable_files(kind, plain) == (plain, ()), "the control: other keys, other files"


@pytest.mark.parametrize(
    "text",
    [
        "---\n'tools': x\n---\n",
        "---\n{tools: x}\n---\n",
        "---\n  tools: x\n---\n",
        "---\n? tools\n: x\n---\n",
        "---\n<<: *a\n---\n",
        "---\ndescription: a\rtools: x\n---\n",
        "---\ndescription: a\u2028tools: x\n---\n",
        "---js\n{tools: 1}\n---\n",
        "\n---\ntools: x\n---\n",
        "---\nname: a\n...\ntools: x\n---\n",
        "---\nname: a\n",
    ],
)
def test_front_matter_that_two_programs_could_read_in_two_ways_is_left_out(text: str) -> None:
    (named,) = deliverable_files("claude-code", {TEXTS[0]: text.encode()})[1]
    assert named == f"{TEXTS[0]} ({UNCLEAR_FRONT_MATTER})"


def test_front_matter_that_agents_accept_arrives_without_other_keys() -> None:
    """Behind a byte order mark, or with a key twice: no program finds one of the others in it."""
    text = "\ufeff---\r\nname: a\r\n{}description: b: c\r\ndescription: d\r\n---\r\nRead it.\r\n"
    given = text.format("tools: x\r\n  tools: y\r\ntools: z\r\n").encode()
    delivered, left_out = deliverable_files("claude-code", dict.fromkeys(TEXTS, given))
    assert delivered == {path: text.format("").encode() for path in TEXTS}
    assert left_out == tuple(f"{path}: tools" for path in TEXTS)


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
