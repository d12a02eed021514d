"""The on-read hook as it is run: a script, an event on stdin, an answer on stdout, exit code 0."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trialfleet_deliveries.hook_log import read_hook_log
from trialfleet_deliveries.hooks import push_on_read
from trialfleet_deliveries.hooks.push_on_read import RULES, fire, matches

SCRIPT = Path(push_on_read.__file__)
WORKSPACE = "/workspace"


class Hook:
    def __init__(self, root: Path) -> None:
        self.context, self.log = root / "context", root / "hook.jsonl"
        nodes = {"pkg": "about pkg", "pkg/deep": "about deep", "pkg/silent": "", "tests": "about tests"}
        for folder, text in nodes.items():
            (self.context / folder).mkdir(parents=True, exist_ok=True)
            (self.context / folder / "AGENTS.md").write_text(text)
        (self.context / "claude").mkdir()
        (self.context / "claude" / "CLAUDE.md").write_text("about claude")
        (self.context / "CLAUDE.md").write_text("the root")

    def raw(self, stdin: bytes, *extra: str) -> str:
        argv = [sys.executable, "-I", "-S", str(SCRIPT), "--workspace", WORKSPACE, "--context", str(self.context)]
        done = subprocess.run(
            [*argv, "--log", str(self.log), *extra], input=stdin, capture_output=True, check=True
        )
        assert done.stderr == b""
        return done.stdout.decode()

    def fire(self, path: str | None, tool: str = "Read", key: str = "file_path", **event: object) -> str | None:
        given = {} if path is None else {key: path}
        said = self.raw(
            json.dumps(
                {"session_id": "s", "cwd": WORKSPACE, "tool_name": tool, "tool_input": given, **event}
            ).encode()
        )
        return json.loads(said)["hookSpecificOutput"]["additionalContext"] if said else None


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    return Hook(tmp_path)


def test_the_nearest_node_once_per_session(hook: Hook) -> None:
    assert hook.fire("/workspace/pkg/deep/a.py") == "about deep"
    assert hook.fire("/workspace/pkg/deep/b.py", "Edit") is None
    assert hook.fire("/workspace/pkg/a.py") == "about pkg"
    assert hook.fire("/workspace/pkg/deep/a.py", session_id="other") == "about deep"
    firings = read_hook_log(hook.log).firings
    assert [(f.tool, f.path, f.node, f.emitted, f.chars) for f in firings] == [
        ("Read", "pkg/deep/a.py", "pkg/deep/AGENTS.md", True, 10),
        ("Edit", "pkg/deep/b.py", "pkg/deep/AGENTS.md", False, 0),
        ("Read", "pkg/a.py", "pkg/AGENTS.md", True, 9),
        ("Read", "pkg/deep/a.py", "pkg/deep/AGENTS.md", True, 10),
    ]
    assert all(f.at > 1_700_000_000 for f in firings)


@pytest.mark.parametrize(
    ("tool", "key", "path", "text"),
    [
        ("Grep", "path", "/workspace/pkg", "about pkg"),
        ("Glob", "path", "pkg/deep", "about deep"),
        ("Write", "file_path", "/workspace/pkg/new.py", "about pkg"),
        ("NotebookEdit", "notebook_path", "/workspace/claude/a.ipynb", "about claude"),
        ("Read", "file_path", "tests/../pkg/./a.py", "about pkg"),
        ("Read", "file_path", "/workspace/pkg/deep/not/there/yet.py", "about deep"),
        ("Read", "file_path", "/workspace/a.py", None),  # never the root's
        ("Grep", "path", "/workspace", None),
        ("Grep", "pattern", "x", None),
        ("Read", "file_path", "/etc/passwd", None),
        ("Read", "file_path", "/workspace/../etc/passwd", None),
        ("Read", "file_path", "/workspace_pkg/a.py", None),
        ("Read", "file_path", "", None),
        ("Read", "file_path", "/workspace/pkg/silent/a.py", None),  # its own node has nothing to say
        *(
            ("Read", "file_path", f"/workspace/pkg/a.{suffix}", None)
            for suffix in ("json", "yaml", "yml", "toml", "cfg", "ini", "lock", "JSON")
        ),
    ],
)
def test_tools_and_paths(hook: Hook, tool: str, key: str, path: str, text: str | None) -> None:
    assert hook.fire(path, tool, key) == text


def test_a_relative_path_starts_at_the_events_folder(hook: Hook) -> None:
    assert hook.fire("a.py", cwd="/workspace/pkg") == "about pkg"


def test_the_answer_names_the_event(hook: Hook) -> None:
    event = {"tool_name": "Read", "tool_input": {"file_path": "pkg/a.py"}, "hook_event_name": "PreToolUse"}
    said = json.loads(hook.raw(json.dumps(event).encode()))
    assert said == {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "about pkg"}}
    said = json.loads(hook.raw(b'{"tool_input": {"path": "tests"}}'))
    assert said["hookSpecificOutput"]["hookEventName"] == "PostToolUse"


@pytest.mark.parametrize(
    "stdin", [b"", b"not json", b"[]", b"null", b'{"tool_input": 3}', b'{"tool_input": {"path": ["a"]}}', b"\xff{"]
)
def test_nonsense_is_silent(hook: Hook, stdin: bytes) -> None:
    assert hook.raw(stdin) == ""


def test_a_context_or_log_that_is_gone_is_silent(hook: Hook) -> None:
    event = b'{"tool_input": {"path": "pkg"}}'
    assert hook.raw(event, "--context", "/nowhere") == ""
    assert hook.raw(event, "--log", "/nowhere/at/all/log") == ""
    assert hook.raw(event, "--odd") != ""


def test_parallel_calls_emit_once(hook: Hook) -> None:
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda n: hook.fire(f"/workspace/pkg/{n}.py"), range(12)))
    assert sorted(said, key=str) == [*[None] * 11, "about pkg"]
    log = read_hook_log(hook.log)
    assert (len(log.firings), len(log.emitted), log.unreadable) == (12, 1, 0)


def test_it_needs_nothing_but_the_standard_library() -> None:
    """It runs in the agent's sandbox with whatever Python is there."""
    program = f"import sys; sys.argv = ['x']; exec(open({str(SCRIPT)!r}).read().split('if __name__')[0])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_log_of_a_hostile_agent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    good = {"at": 1.5, "tool": "Read", "path": "a", "node": None, "emitted": False, "chars": 0}
    lines = [
        json.dumps(good).encode(),
        b"\xff\xfe",
        b"[]",
        b"{",
        b"",
        b'{"at": 1}',
        json.dumps({**good, "chars": "many"}).encode(),
        json.dumps({**good, "emitted": 1}).encode(),
        b"[" * 100_000,
        json.dumps({"at": 2, "error": "x"}).encode(),
        json.dumps(good).encode()[:20],
    ]
    log.write_bytes(b"\n".join(lines))
    read = read_hook_log(log)
    assert (len(read.firings), read.unreadable) == (1, 9)


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
