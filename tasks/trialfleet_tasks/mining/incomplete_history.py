"""The commits of a clone that lacks files on purpose (`git clone --filter`): which changes can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_repository.git import GitError, git

_LINK = b"160000"  # of a submodule, whose commit is in another repository


@dataclass(frozen=True)
class ReadableChanges:
    """`whole`: commits of whose changes every file is there, in the given order. `paths`: what the others change,
    as far as their folders are there."""

    whole: tuple[str, ...]
    paths: dict[str, tuple[str, ...]]


def find_readable_changes(git_dir: Path, commits: Sequence[str]) -> ReadableChanges:
    """Raises `GitError` where not even the commits are there."""
    listed = _list_changes(git_dir, commits)
    blobs = sorted({blob for rows in listed.values() for _, ids in rows for blob in ids})
    missing = _missing(git_dir, blobs)
    whole = tuple(
        sha for sha in commits if sha in listed and not any(set(ids) & missing for _, ids in listed[sha])
    )
    found = frozenset(whole)
    return ReadableChanges(
        whole, {sha: tuple(path for path, _ in listed.get(sha, ())) for sha in commits if sha not in found}
    )


_Rows = list[tuple[str, tuple[bytes, ...]]]  # (path, objects before and after)


def _list_changes(git_dir: Path, commits: Sequence[str]) -> dict[str, _Rows]:
    """By commit; one whose folders are not all there is left out. git ends at the first such commit, so the others
    are found by halves."""
    if not commits:
        return {}
    how = ("diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--raw", "--no-abbrev")
    try:
        output = git(how, git_dir=git_dir, stdin="".join(f"{sha}\n" for sha in commits).encode())
    except GitError:
        if len(commits) == 1:
            return {}
        half = len(commits) // 2
        return _list_changes(git_dir, commits[:half]) | _list_changes(git_dir, commits[half:])
    return _rows_of(output)


def _rows_of(output: bytes) -> dict[str, _Rows]:
    found: dict[str, _Rows] = {}
    rows: _Rows = []
    words = iter(output.split(b"\0"))
    for word in words:
        if not word.startswith(b":"):
            rows = found.setdefault(word.decode(), []) if word else rows
            continue
        old, new, before, after, _ = word[1:].split(b" ")
        ids = (one for mode, one in ((old, before), (new, after)) if mode != _LINK and one.strip(b"0"))
        rows.append((next(words, b"").decode("utf-8", "surrogateescape"), tuple(ids)))
    return found


def _missing(git_dir: Path, objects: Sequence[bytes]) -> frozenset[bytes]:
    asked = b"".join(name + b"\n" for name in objects)
    answers = git(("cat-file", "--batch-check"), git_dir=git_dir, stdin=asked).splitlines() if objects else []
    return frozenset(answer.removesuffix(b" missing") for answer in answers if answer.endswith(b" missing"))
