"""What happened up to a commit, and nothing after it."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_targets.repository import GitError, Repository
from trialfleet_targets.snapshot import PastCommit

MAX_COMMITS = 4000
MAX_SUBJECT, MAX_BODY = 500, 8000  # characters: logs that were pasted into a message say nothing about files
_FORMAT = "%x1e%H%x1f%P%x1f%ct%x1f%s%x1f%b"


def history(repository: Repository, commit: str, *, max_commits: int = MAX_COMMITS) -> tuple[PastCommit, ...]:
    """The newest `max_commits` ancestors of `commit`, itself first; only they decide the order.

    Where a shallow clone ends, a commit's own changes are not known: it has no `changed`.
    Raises `GitError` when an object is missing.
    """
    said = repository.git(
        "log", "-z", f"--max-count={max_commits}", f"--format={_FORMAT}", "--encoding=UTF-8",
        "--raw", "--no-abbrev", "--no-renames", "--diff-merges=off", "--no-ext-diff", "--no-textconv",
        "--ignore-submodules=none", "--no-color", "--no-notes", "--no-mailmap", "--root",
        "--end-of-options", commit, "--",
    )  # fmt: skip
    ends = repository.shallow_ends
    return tuple(_without_changes(one) if one.sha in ends else one for one in _commits(said.split(b"\0")))


def _commits(tokens: list[bytes]) -> Iterator[PastCommit]:
    """Tokens in turn, so that no message and no path can be taken for the start of a record."""
    head: bytes | None = None
    changes: list[tuple[str, str]] = []
    rest = iter(tokens)
    for token in rest:
        token = token.removeprefix(b"\n")
        if token.startswith(b":"):
            changes.append((token.rsplit(b" ", 1)[-1][:1].decode(), next(rest).decode("utf-8", "surrogateescape")))
        elif token.startswith(b"\x1e"):
            if head is not None:
                yield _commit(head, changes)
            head, changes = token[1:], []
        elif token:
            raise GitError("git log said what it should not")
    if head is not None:
        yield _commit(head, changes)


def _commit(head: bytes, changes: list[tuple[str, str]]) -> PastCommit:
    sha, parents, time, subject, body = head.decode("utf-8", "replace").split("\x1f", 4)
    return PastCommit(
        sha=sha,
        time=int(time),
        subject=subject[:MAX_SUBJECT],
        body=body.strip()[:MAX_BODY],
        changed=tuple(sorted(path for _, path in changes)),
        added=tuple(sorted(path for how, path in changes if how == "A")),
        deleted=tuple(sorted(path for how, path in changes if how == "D")),
        merge=" " in parents,
    )


def _without_changes(one: PastCommit) -> PastCommit:
    return PastCommit(one.sha, one.time, one.subject, one.body, merge=one.merge)
