"""The ancestors of a commit, newest first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace

from trialfleet_targets.disk_cache import DiskCache, key_of
from trialfleet_targets.repository import Repository, RepositoryError
from trialfleet_targets.snapshot import PastCommit

MAX_COMMITS = 4000
MAX_SUBJECT, MAX_BODY = 500, 8000  # characters: logs that were pasted into a message say nothing about files
_LATEST = 253_402_300_799  # the last second of the year 9999
_FORMAT = "%x1e%H%x1f%P%x1f%ct%x1f%s%x1f%b"


def history(
    repository: Repository, commit: str, *, max_commits: int = MAX_COMMITS, cache: DiskCache | None = None
) -> tuple[PastCommit, ...]:
    """The newest `max_commits` ancestors of `commit`, itself first; only they decide the order.

    Where a shallow clone ends, a commit's own changes are not known: it has no `changed`. Commits in `cache`
    are not read again. Raises `RepositoryError` when an object is missing.
    """
    cache, ends = cache if cache is not None else DiskCache(), repository.shallow_ends
    walk = ("rev-list", f"--max-count={max_commits}", "--end-of-options", commit, "--")
    keys = {sha: _key(sha, sha in ends) for sha in repository.git(*walk).decode().split()}
    known = cache.get_many(keys.values())
    found = {sha: _decoded(known[key]) for sha, key in keys.items() if key in known}
    fresh = {
        one.sha: replace(one, changed=(), added=(), deleted=()) if one.sha in ends else one
        for one in _read(repository, [sha for sha in keys if sha not in found])
    }
    cache.put({keys[sha]: _encoded(one) for sha, one in fresh.items()})
    return tuple(found.get(sha) or fresh[sha] for sha in keys)


def _read(repository: Repository, commits: Sequence[str]) -> Iterator[PastCommit]:
    if not commits:
        return iter(())
    output = repository.git(
        "log", "-z", "--no-walk=unsorted", "--stdin", f"--format={_FORMAT}", "--encoding=UTF-8",
        "--raw", "--no-abbrev", "--no-renames", "--diff-merges=off", "--no-ext-diff", "--no-textconv",
        "--ignore-submodules=none", "--no-color", "--no-notes", "--no-mailmap", "--root",
        stdin="".join(f"{sha}\n" for sha in commits).encode(),
    )  # fmt: skip
    return _commits(output.split(b"\0"))


def _commits(tokens: list[bytes]) -> Iterator[PastCommit]:
    """Parses tokens in sequence, so no message or path can be mistaken for the start of a record."""
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
            raise RepositoryError("unexpected output of git log")
    if head is not None:
        yield _commit(head, changes)


def _commit(head: bytes, changes: list[tuple[str, str]]) -> PastCommit:
    sha, parents, time, subject, body = head.decode("utf-8", "replace").split("\x1f", 4)
    return PastCommit(
        sha=sha,
        time=_seconds(time),
        subject=subject[:MAX_SUBJECT],
        body=body.strip()[:MAX_BODY],
        changed=tuple(sorted(path for _, path in changes)),
        added=tuple(sorted(path for how, path in changes if how == "A")),
        deleted=tuple(sorted(path for how, path in changes if how == "D")),
        merge=" " in parents,
    )


def _seconds(text: str) -> int | None:
    """
    >>> _seconds("1700000000"), _seconds("1000000000000"), _seconds("")
    (1700000000, None, None)
    """
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) and int(text) <= _LATEST else None


def _key(sha: str, end: bool) -> bytes:
    """`end`: a shallow clone knows the commit without its changes."""
    return key_of("commit 2", sha, "end" if end else "")


def _encoded(one: PastCommit) -> bytes:
    return json.dumps(astuple(one), separators=(",", ":")).encode()


def _decoded(data: bytes) -> PastCommit:
    sha, time, subject, body, changed, added, deleted, merge = json.loads(data)
    return PastCommit(sha, time, subject, body, tuple(changed), tuple(added), tuple(deleted), merge)
