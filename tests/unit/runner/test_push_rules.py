"""Rules: pushed once, when a path that matches is read, beside what the nodes say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trialfleet_runner.context.hook_log import read_hook_log
from trialfleet_runner.context.push_on_read import RULES, fire, matches


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("a/**", ["a/b.py", "a/b/c.py"], ["b/a/c.py", "a", "ab/c.py"]),
        ("*", ["setup.py"], ["a/setup.py"]),
        ("**/*.py", ["a.py", "a/b/c.py"], ["a.pyc", "a.p"]),
        ("a/*.p?", ["a/b.py"], ["a/b/c.py", "a/b.p"]),
        ("a.b[1]", ["a.b[1]"], ["a.b1", "axb[1]"]),
        ("a/**/z", ["a/z", "a/b/c/z"], ["a/bz"]),
        ("", [], ["a"]),
    ],
)
def test_globs(glob: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in (*yes, *no) if matches(path, glob)] == yes


def test_a_rule_speaks_once_a_session_and_is_logged(tmp_path: Path) -> None:
    context, log = tmp_path / "context", tmp_path / "hook.jsonl"
    (context / "a").mkdir(parents=True)
    (context / "a/AGENTS.md").write_text("Node.")
    (context / RULES).write_text(json.dumps([{"globs": ["a/*", "b/**"], "text": "Rule."}]))

    def read(path: str, session: str = "s") -> str | None:
        event = {"tool_name": "Read", "session_id": session, "tool_input": {"file_path": f"/ws/{path}"}}
        return fire(event, "/ws", str(context), str(log))

    assert read("c/x.py") is None
    assert read("a/x.py") == "Node.\n\nRule."
    assert read("b/c.toml") is None  # spoken before
    assert read("b/c.toml", session="t") == "Rule."  # such files fire no node, and may fire a rule
    kept = read_hook_log(log)
    assert [(firing.path, firing.node) for firing in kept.rules] == [
        ("a/x.py", "rules.json#0"),
        ("b/c.toml", "rules.json#0"),
    ]
    assert [firing.node for firing in kept.emitted] == ["a/AGENTS.md"]
    assert kept.unreadable == 0
