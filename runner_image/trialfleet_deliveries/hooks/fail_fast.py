"""The fail-fast hook: a standalone script, standard library only, for any Python from 3.8 on.

    python -I fail_fast.py --workspace DIR --log FILE [--reason TEXT] [--say TEXT] < event.json

Denies a test or build command of the Bash tool that has already run twice, word for word, with nothing edited
since; --reason is the text that the agent reads. Called before Bash (PreToolUse) and after Bash and the editing
tools (PostToolUse, PostToolUseFailure). All counts return to zero after anything that may have changed the
outcome: an edit, another command that is not known to read only, and a file of the workspace that differs from
what the last run of tests left. If anything goes wrong, it exits 0 and prints nothing. Every command that counts
is one JSON line in --log. With --say it adds that text before every command that it lets run: `trialfleet agents
check` measures whether such a text reaches the model.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Generator, Iterator
from typing import Any, NoReturn, cast

TIMES = 2  # a command may run so often without an edit; the reason says so, too
EDITS = ("Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "write_file", "replace")
STDIN_BYTES = 16 * 2**20
PATIENCE_S = 8  # Claude Code waits ten, and counts the interpreter's start
FILES = 200_000  # of a workspace that are looked at; with more, nothing is denied

_TESTERS = {
    *("pytest", "py.test", "nosetests", "stestr", "trial", "tox", "nox"),
    *("jest", "vitest", "mocha", "ava", "tsc", "ctest", "rspec", "phpunit"),
}
_MAKERS = {"make", "gmake", "ninja", "just"}  # of their own words, only those that test or build
_MODULES = {"pytest", "unittest", "tox", "nox", "build", "compileall"}
_VERBS: dict[str, set[str]] = {
    "go": {"test", "build", "vet"},
    "cargo": {"test", "build", "check", "clippy", "nextest"},
    "npm": {"test", "t"},
    "yarn": {"test", "build"},
    "pnpm": {"test", "build"},
    "bun": {"test", "build"},
    "bazel": {"test", "build"},
    "dotnet": {"test", "build"},
    "swift": {"test", "build"},
    "cmake": {"--build"},
    "ansible-test": {"units", "sanity", "integration"},
}
_GOALS = {
    **{name: {"test", "verify", "compile", "package"} for name in ("mvn", "mvnw")},
    **{name: {"test", "build", "check", "assemble", "classes"} for name in ("gradle", "gradlew")},
}
_VALUED = {"-pl", "--projects", "-f", "--file", "-P", "-p", "--project-dir"}  # a word follows that is no goal
_RUNS = {"npm", "yarn", "pnpm", "bun"}  # `npm run test:unit`
_SCRIPT = re.compile(r"(?:test|tests|build|check|lint|typecheck|compile|all)(?:[:_-].*)?")
_LOOKS = {"--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--list", "--dry-run"}
_READERS = {
    *("cat", "ls", "grep", "egrep", "fgrep", "rg", "head", "tail", "wc", "pwd", "echo", "printf", "true", "cd"),
    *("which", "file", "stat", "du", "tree", "sort", "uniq", "cut", "tr", "nl", "diff", "sleep", "date"),
}
_GIT_READERS = {"diff", "log", "show", "status", "blame", "grep", "ls-files", "rev-parse"}
_BESIDE = {"cd", "echo", "printf", "true", "head", "tail", "grep", "egrep", "cat", "wc", "uniq", "export"}
_WRAPPED = {"time", "nice", "env", "command", "exec", "xvfb-run", "stdbuf"}
_RUNNERS = {"uv": "run", "poetry": "run", "pdm": "run", "hatch": "run", "pipenv": "run", "rye": "run"}
_JOINTS = {"&&", "||", ";", "|", "\n"}
_SHELL = re.compile(r"\$\(|`|<<|<\(|>\(")  # what hides another command
_QUIET = re.compile(r"\d?>&\d|&?\d?>\s*/dev/null")


def parts(command: str) -> list[list[str]] | None:
    """The simple commands of a line as words; None: it writes to a file, hides a command, or is no shell."""
    if _SHELL.search(command):
        return None
    try:
        lexer = shlex.shlex(_QUIET.sub(" ", command).replace("\n", ";"), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:
        return None
    found: list[list[str]] = [[]]
    for word in words:
        if word in _JOINTS or set(word) == {";"}:
            found.append([])
        elif word and set(word) <= set("<>&|();"):
            return None
        else:
            found[-1].append(word)
    return [part for part in found if part]


def bare(words: list[str]) -> list[str]:
    """Without assignments and programs that only run another one."""
    while words:
        name = os.path.basename(words[0])  # noqa: PTH119 - pathlib doubles the start-up time
        if re.fullmatch(r"[A-Za-z_]\w*=.*", words[0]) or name in _WRAPPED:
            words = words[1:]
        elif name == "timeout" or words[1:2] == [_RUNNERS.get(name)]:
            words = words[2:]
        elif name == "npx":
            words = words[1:]
        else:
            return [name, *words[1:]]
    return []


def tests(words: list[str]) -> bool:
    """Whether a simple command runs tests or a build. What is not known to does not."""
    if any(word in _LOOKS for word in words):
        return False
    name, *rest = bare(words) or [""]
    if name in _TESTERS:
        return True
    if rest[:1] == ["-m"] and len(rest) > 1 and re.fullmatch(r"python[\d.]*", name):
        return rest[1] in _MODULES
    if name == "coverage" and rest[:2] == ["run", "-m"] and len(rest) > 2:
        return rest[2] in _MODULES
    if name in _MAKERS:
        return "-n" not in rest and all(_SCRIPT.fullmatch(word) for word in _plain(rest))
    if name in _RUNS and rest[:1] == ["run"] and len(rest) > 1:
        return bool(_SCRIPT.fullmatch(rest[1]))
    return _runs_goal(name, rest)


def _runs_goal(name: str, rest: list[str]) -> bool:
    """Whether a tool with verbs or goals runs tests or a build."""
    if name == "node":
        return "--test" in rest or _first(_plain(rest)).rpartition("/")[2] in _TESTERS
    if name == "cargo":
        return _first([word for word in rest if not word.startswith("+")]) in _VERBS["cargo"]
    if name in _GOALS:
        goals = set(_plain(_without_values(rest)))
        return bool(goals & _GOALS[name]) and goals <= _GOALS[name] | {"clean"}
    return bool(rest) and rest[0] in _VERBS.get(name, ())


def _plain(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-") and "=" not in word]


def _first(words: list[str]) -> str:
    return words[0] if words else ""


def _without_values(words: list[str]) -> list[str]:
    """Without what belongs to the option before it: `-pl core`."""
    return [word for n, word in enumerate(words) if n == 0 or words[n - 1] not in _VALUED]


def counts(command: str) -> bool:
    """Whether this is a test or build command, and nothing else in it could change a file.

    >>> [counts(line) for line in ("cd a && python -m pytest -x 2>&1 | tail -5", "sed -i s/a/b/ x && pytest")]
    [True, False]
    """
    found = parts(command)
    if not found:
        return False
    return any(map(tests, found)) and all(
        tests(part) or not bare(part) or bare(part)[0] in _BESIDE for part in found
    )


def reads_only(command: str) -> bool:
    """Whether this is known to change nothing.

    >>> reads_only("grep -rn x . | head"), reads_only("git diff"), reads_only("git stash"), reads_only("cat a > b")
    (True, True, False, False)
    """
    found = parts(command)
    return found is not None and all(map(_reads, found))


def _reads(words: list[str]) -> bool:
    command = bare(words)
    if not command or (command[:2] == ["sed", "-n"] and len(command) > 2):
        return not any(word.startswith("-i") for word in words)
    name, *rest = command
    if name == "git":
        return _first(rest) in _GIT_READERS and not any(word.startswith("--output") for word in rest[1:])
    if name == "find":
        return not any(word.startswith(("-exec", "-ok", "-delete", "-fprint", "-fls")) for word in rest)
    if name == "sort":
        return not any(word.startswith(("-o", "--output")) for word in rest)
    return name in _READERS


# --- the workspace ----------------------------------------------------------------------------------


def _files(folder: str) -> Iterator[str]:
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            yield f"{above}/{name}"


def fingerprint(workspace: str) -> str | None:
    """Of every file's name, size and time of change; None: there are too many."""
    seen = hashlib.sha256()
    for number, path in enumerate(_files(workspace)):
        if number == FILES:
            return None
        with contextlib.suppress(OSError):
            facts = os.lstat(path)
            seen.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0{facts.st_ino}\n".encode(errors="replace"))
    return seen.hexdigest()


# --- one event --------------------------------------------------------------------------------------


@contextlib.contextmanager
def kept(path: str) -> Generator[dict[str, Any]]:
    """The session's state, locked; a state that cannot be read counts as empty and is overwritten."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            value = json.loads(file.read(2**20) or b"{}")
        except (ValueError, RecursionError):
            value = {}
        state = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        yield state
        file.seek(0)
        file.truncate()
        file.write(json.dumps(state).encode())


def forget(state: dict[str, Any]) -> None:
    state["runs"], state["left"] = {}, None


def before(state: dict[str, Any], command: str, now: str | None) -> tuple[bool, int]:
    """Whether to deny, and how often it has run since the last edit. `now`: the workspace's fingerprint."""
    if now is None or state.get("left") != now:
        forget(state)
    runs = cast("dict[str, int]", state.setdefault("runs", {}))
    ran = int(runs.get(command, 0))
    if ran >= TIMES:
        return True, ran
    runs[command] = ran + 1
    state["left"] = now
    return False, ran


def denies(event: dict[str, Any], workspace: str, log: str) -> bool:
    """Whether this event is a command that may not run."""
    name, tool = event.get("hook_event_name"), event.get("tool_name")
    given = event.get("tool_input")
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    command = fields.get("command")
    command = " ".join(command.split()) if isinstance(command, str) and "\n" not in command.strip() else None
    counting = tool == "Bash" and command is not None and counts(command)
    with kept(f"{log}.state") as state:
        if name != "PreToolUse":
            if tool in EDITS and name == "PostToolUse":
                forget(state)
            elif counting and state.get("runs"):
                state["left"] = fingerprint(workspace)
            return False
        if not counting:
            if tool == "Bash" and not reads_only(str(fields.get("command") or "")):
                forget(state)
            return False
        denied, ran = before(state, cast("str", command), fingerprint(workspace))
    note(log, command=cast("str", command)[:1000], ran=ran, denied=denied)
    return denied


def note(log: str, **fields: object) -> None:
    line = json.dumps({"at": time.time(), **fields}).encode() + b"\n"
    fd = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.write(fd, line)  # one write: lines of parallel calls never mix
    finally:
        os.close(fd)


def answer_to(event: dict[str, Any], options: dict[str, str], log: str) -> dict[str, str]:
    """What the agent reads; empty: nothing."""
    if denies(event, options["--workspace"], log):
        return {"permissionDecision": "deny", "permissionDecisionReason": options.get("--reason", "")}
    if "--say" in options and event.get("hook_event_name") == "PreToolUse":
        return {"additionalContext": options["--say"]}
    return {}


def main(argv: list[str]) -> None:
    options = dict(zip(argv[::2], argv[1::2]))
    log = options.get("--log", os.devnull)
    try:
        event = json.loads(sys.stdin.buffer.read(STDIN_BYTES))
        said = answer_to(event, options, log)
        if said:
            answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}
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
