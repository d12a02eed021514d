"""The on-read hook: a standalone script, standard library only, for any Python from 3.8 on.

    python -I push_on_read.py --workspace DIR --context DIR --log FILE < event.json

Reads one Claude Code hook event. When the tool's path has a covering node below --context, prints the node's
text as `additionalContext`: once per node and session, never the root's. --context holds each node's text ready
to be printed (`Composed.hook_nodes`); an empty one covers its folder and says nothing. `rules.json` there is a
list of {globs, text}: a text is printed once per session, when a path matches one of its globs (`**` is any number
of folders, `*` and `?` stay inside one name, the whole path must match). It never blocks the agent: it always
exits 0 and prints nothing when anything is wrong. Every call is one JSON line in --log, and one more per rule that
spoke.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import re
import shlex
import signal
import sys
import time
from typing import Any, NoReturn, cast

NODE_NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")  # the rule of `nodes.covering_node`, on a folder
PATH_KEYS = ("file_path", "notebook_path", "path", "absolute_path", "filePath")
PATCH_MARKS = ("*** Update File: ", "*** Add File: ")
MAX_PATHS = 20  # of one command
SKIPPED = (".json", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".lock")
RULES = "rules.json"
STDIN_BYTES = 16 * 2**20
PATIENCE_S = 8  # Claude Code waits ten, and counts the interpreter's start


def relative(path: str, cwd: str, workspace: str) -> str | None:
    """The tool's path inside the workspace; None: outside, or the workspace itself."""
    full = posixpath.normpath(posixpath.join(workspace, cwd, path))
    root = posixpath.normpath(workspace)
    return full[len(root) + 1 :] if full.startswith(root + "/") else None


def covering(context: str, path: str) -> str | None:
    folder = path
    while folder:
        for name in NODE_NAMES:
            if os.path.isfile(f"{context}/{folder}/{name}"):  # noqa: PTH113 - pathlib doubles the start-up time
                return f"{folder}/{name}"
        folder = posixpath.dirname(folder)
    return None


def first_time(log: str, session: str, node: str) -> bool:
    """Whether nobody has taken this node in this session: creating its mark is atomic."""
    name = hashlib.sha256(f"{session}\0{node}".encode()).hexdigest()[:40]
    folder = f"{log}.seen"
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)  # noqa: PTH102
    try:
        os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def note(log: str, **fields: object) -> None:
    line = json.dumps({"at": time.time(), **fields}).encode() + b"\n"
    fd = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.write(fd, line)  # one write: lines of parallel calls never mix
    finally:
        os.close(fd)


def tool_paths(event: dict[str, Any], workspace: str) -> list[str]:
    """The paths that a tool was called with: its own argument, or the words of a shell command that name files."""
    given = event.get("tool_input")
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    named = next((value for key in PATH_KEYS if isinstance(value := fields.get(key), str) and value), None)
    command = fields.get("command")
    if named is not None or not isinstance(command, str):
        return [] if named is None else [named]
    return command_paths(command, str(event.get("cwd") or workspace))[:MAX_PATHS]


def command_paths(command: str, cwd: str) -> list[str]:
    """Files that a patch changes, else words that are files below `cwd`, each once.

    >>> command_paths("*** Begin Patch\\n*** Update File: a/b.py\\n@@", "/")
    ['a/b.py']
    """
    marked = [
        line[len(mark) :].strip() for line in command.splitlines() for mark in PATCH_MARKS if mark in line[:20]
    ]
    if marked:
        return list(dict.fromkeys(marked))
    try:
        words = shlex.split(command, comments=False)
    except ValueError:
        words = command.split()
    files = (word for word in words[:1000] if os.path.isfile(posixpath.join(cwd, word)))  # noqa: PTH113
    return list(dict.fromkeys(files))


def matches(path: str, glob: str) -> bool:
    """
    >>> [matches(path, "a/**/*.py") for path in ("a/b.py", "a/b/c.py", "b/a/c.py")]
    [True, True, False]
    """
    pattern = ""
    for piece in re.findall(r"\*\*/|\*\*|.", glob, re.DOTALL):
        pattern += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)
    return re.fullmatch(pattern, path, re.DOTALL) is not None


def rules(context: str) -> list[dict[str, Any]]:
    try:
        with open(f"{context}/{RULES}", encoding="utf-8") as file:  # noqa: PTH123
            return cast("list[dict[str, Any]]", json.load(file))
    except FileNotFoundError:
        return []


def fire_rules(event: dict[str, Any], path: str | None, context: str, log: str) -> list[str]:
    """The texts of the rules that this path is the first to match, each with a line in the log."""
    said: list[str] = []
    for number, rule in enumerate(rules(context) if path is not None else []):
        name = f"{RULES}#{number}"
        hit = any(matches(path or "", glob) for glob in rule["globs"])
        if hit and first_time(log, str(event.get("session_id")), name):
            said.append(rule["text"])
            chars = len(rule["text"])
            tool = str(event.get("tool_name"))[:100]
            note(log, tool=tool, path=(path or "")[:1000], node=name, emitted=True, chars=chars, rule=True)
    return said


def fire(event: dict[str, Any], workspace: str, context: str, log: str) -> str | None:
    """The text to push for this event, and a line in the log for each of its paths; None: nothing to say."""
    said: list[str] = []
    paths: list[str | None] = [*tool_paths(event, workspace)]
    for given in paths or [None]:
        path = relative(given, str(event.get("cwd") or workspace), workspace) if given else None
        said += [*fire_node(event, path, context, log), *fire_rules(event, path, context, log)]
    return "\n\n".join(said) or None


def fire_node(event: dict[str, Any], path: str | None, context: str, log: str) -> list[str]:
    """The node that covers this path, if it has something to say and has not said it, with a line in the log."""
    skipped = path is None or path.lower().endswith(SKIPPED)
    node = None if skipped or path is None else covering(context, path)
    text = ""
    if node is not None:
        with open(f"{context}/{node}", encoding="utf-8") as file:  # noqa: PTH123
            text = file.read()
    emitted = bool(text) and node is not None and first_time(log, str(event.get("session_id")), node)
    note(
        log,
        tool=str(event.get("tool_name"))[:100],
        path=None if path is None else path[:1000],
        node=node,
        emitted=emitted,
        chars=len(text) if emitted else 0,
    )
    return [text] if emitted else []


def main(argv: list[str]) -> None:
    options = dict(zip(argv[::2], argv[1::2]))
    log = options.get("--log", os.devnull)
    try:
        event = json.loads(sys.stdin.buffer.read(STDIN_BYTES))
        text = fire(event, options["--workspace"], options["--context"], log)
        if text is not None:
            name = event.get("hook_event_name") or "PostToolUse"
            answer = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    except Exception as error:
        with contextlib.suppress(Exception):
            note(log, error=repr(error)[:500])


def leave(*_: object) -> NoReturn:
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, leave)
    signal.alarm(PATIENCE_S)
    main(sys.argv[1:])
    leave()
