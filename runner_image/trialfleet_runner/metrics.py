"""What a trajectory, a patch and test results say, as numbers and a verdict. What did not happen is None, never 0.

JUnit decides the verdict, and the exit code of the tests must not contradict it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from trialfleet_deliveries.skills import FILE, FOLDER, SHARED_FOLDER, TOOLS
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_ledger.trajectory import Step, WorkspaceChange

_CONTEXT_NAMES = re.compile(r"^(AGENTS|CLAUDE(\..*)?|GEMINI)\.md$", re.IGNORECASE)


class Phases(NamedTuple):
    """Turns before the first edit, from first to last edit, and after; all None without an edit. An edit is a
    change on disk, whichever tool made it, also one that was undone later."""

    first_edit_turn: int | None
    first_edit_s: float | None
    exploration_turns: int | None
    edit_turns: int | None
    tail_turns: int | None
    files_read_before_edit: int | None


def phases(edits: Sequence[WorkspaceChange], steps: Sequence[Step], turns: int | None) -> Phases:
    """Phases of a session. Source: the exploration / edit / tail split of notes on first-edit timing.

    `edits`: in order. `turns` is the session's length; without it the last step's turn stands in. If the turn of
    an edit is not known, only the time of the first one is.

    >>> edit = WorkspaceChange(path="a.py", how="changed", turn=3, at_s=9.5)
    >>> phases([edit], [Step(turn=1, kind="read", path="a.py"), Step(turn=5, kind="run")], 6)[1:]
    (9.5, 2, 1, 3, 1)
    """
    if not edits:
        return Phases(None, None, None, None, None, None)
    known = [edit.turn for edit in edits if edit.turn is not None]
    if len(known) < len(edits):
        return Phases(None, edits[0].at_s, None, None, None, None)
    first, last = min(known), max(known)
    read = {step.path for step in steps if step.kind == "read" and step.path and step.turn <= first}
    return Phases(
        first_edit_turn=first,
        first_edit_s=edits[0].at_s,
        exploration_turns=first - 1,
        edit_turns=last - first + 1,
        tail_turns=max(turns or 0, last, *(step.turn for step in steps)) - last,
        files_read_before_edit=len(read),
    )


def context_files_read(steps: Sequence[Step]) -> int:
    """Distinct context files that the agent opened by itself."""
    paths = {step.path for step in steps if step.kind == "read" and step.path}
    return sum(1 for path in paths if _CONTEXT_NAMES.match(PurePosixPath(path).name))


class DiffSize(NamedTuple):
    files: tuple[str, ...]
    added: int
    removed: int


def diff_size(diff: str) -> DiffSize:
    """Changed files and lines of a git diff (hunk bodies only; headers are told apart by the hunk's counts).

    >>> diff_size("diff --git a/x b/x\\n--- a/x\\n+++ b/x\\n@@ -1,2 +1 @@\\n-a\\n--- b\\n+c\\n")
    DiffSize(files=('x',), added=1, removed=2)
    """
    files: list[str] = []
    added = removed = left_old = left_new = 0
    for line in diff.split("\n"):
        if left_old > 0 or left_new > 0:
            mark = line[:1]
            added += mark == "+"
            removed += mark == "-"
            left_old -= mark in {"-", " ", ""}
            left_new -= mark in {"+", " ", ""}
        elif match := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            left_old, left_new = int(match[1] or 1), int(match[2] or 1)
        elif match := re.match(r'diff --git "?a/(.*?)"? "?b/', line):
            files.append(match[1])
    return DiffSize(tuple(files), added, removed)


def target_hit(changed: Collection[str], targets: Collection[str]) -> bool | None:
    """Whether one of these files is one that the fix touches; None when the fix's files are not known."""
    return bool(set(changed) & set(targets)) if targets else None


def has_edited_target(
    edits: Iterable[WorkspaceChange] | None, patched: Collection[str], targets: Collection[str]
) -> bool | None:
    """Whether the agent edited a file that the fix touches, also if it undid that later. None: the fix's files are
    not known; or the edits are not, and its patch touches none of them."""
    hit = target_hit({*patched, *(edit.path for edit in edits or ())}, targets)
    return None if edits is None and not hit else hit


def verdict(
    stop: Stop, *, passed: bool, tests_timed_out: bool, forged: bool = False, tests_exhausted: bool = False
) -> Verdict:
    """The verdict of a scored attempt. Only `PASSED` counts as a pass.

    One that crashed has failed: what passes without its model is not its work. A forged pass is named, no matter
    why the agent stopped. Otherwise an agent that ran out of time, memory or disk keeps that verdict even if its
    tests pass; one that ended with an error or ran out of turns or money is judged by its tests alone.

    >>> verdict(Stop.ERROR, passed=True, tests_timed_out=False).value
    'passed'
    >>> verdict(Stop.TIMEOUT, passed=True, tests_timed_out=False).value
    'timed_out'
    >>> verdict(Stop.CRASHED, passed=True, tests_timed_out=False).value
    'failed'
    >>> verdict(Stop.TIMEOUT, passed=True, tests_timed_out=False, forged=True).value
    'forged'
    >>> verdict(Stop.FINISHED, passed=False, tests_timed_out=False, tests_exhausted=True).value
    'tests_exhausted'
    """
    match stop:
        case Stop.CRASHED:
            return Verdict.FAILED
        case _ if forged:
            return Verdict.FORGED
        case Stop.TIMEOUT:
            return Verdict.TIMED_OUT
        case Stop.MEMORY | Stop.DISK:
            return Verdict.EXHAUSTED
        case _ if tests_timed_out:
            return Verdict.TESTS_TIMED_OUT
        case _ if tests_exhausted:
            return Verdict.TESTS_EXHAUSTED
        case _:
            return Verdict.PASSED if passed else Verdict.FAILED


_APART = re.compile(r"[^a-z0-9]+")


def extension_uses(
    condition: ConditionOrder, steps: Sequence[Step], tools: Mapping[str, Iterable[str]]
) -> dict[str, bool]:
    """The metrics that say whether the agent used a skill or a server of the condition, if it has any. `tools`:
    of its MCP servers."""
    found = dict[str, bool]()
    if condition.skills:
        found["skill_opened"] = skill_opened(steps, condition.skills)
    if condition.mcp:
        found["mcp_called"] = mcp_called(steps, tools)
    return found


def skill_opened(steps: Iterable[Step], skills: Iterable[str]) -> bool:
    """Whether one of the skills was used by the agent's tool for that, or one of its files was read.

    >>> shell = Step(turn=1, kind="run", tool="exec_command", detail="pwd && cat .agents/skills/sql/SKILL.md")
    >>> skill_opened([shell], ["sql"]), skill_opened([shell], ["s"])
    (True, False)
    """
    names = tuple(skills)
    folders = tuple(f"{folder}/{name}/" for folder in (FOLDER, SHARED_FOLDER) for name in names)
    return any(_opens(step, names, folders) for step in steps)


def _opens(step: Step, names: tuple[str, ...], folders: tuple[str, ...]) -> bool:
    detail = step.detail or ""
    if (step.tool or "").lower() in TOOLS:
        return detail in names
    named = step.kind != "message" and any(f"{folder}{FILE}" in detail for folder in folders)
    return named or (step.path or "").startswith(folders)


def mcp_called(steps: Iterable[Step], servers: Mapping[str, Iterable[str]]) -> bool:
    """Whether a tool of one of the MCP servers was called. `servers`: name -> its tools' names.

    Agents join the two names in different ways.

    >>> given = ("mcp__my-docs__look_up", "my-docs-look_up", "mcp_my-docs_look_up", "my_docs__look")
    >>> [mcp_called([Step(turn=1, kind="other", tool=name)], {"my-docs": ["look_up"]}) for name in given]
    [True, True, True, False]
    """
    tools = {_joined(f"{server}_{tool}") for server, names in servers.items() for tool in names}
    called = {_joined(step.tool).removeprefix("mcp_") for step in steps if step.tool}
    return bool(called & {tool.removeprefix("mcp_") for tool in tools})


def _joined(name: str) -> str:
    return _APART.sub("_", name.lower())
