"""What a commit names but git does not hold: submodules, and files of Git LFS."""

from __future__ import annotations

import re
from pathlib import Path

from trialfleet_repository.git import GitError, git, read_blobs

_POINTER = b"version https://git-lfs.github.com/spec/v1"
_POINTER_BYTES = 200  # a pointer is no longer
_FILTER = re.compile(rb"(?:^|\s)filter=lfs(?:\s|$)", re.MULTILINE)


def not_in_the_tree(git_dir: Path, commit: str) -> str | None:
    """What the tests may miss, in words; None where the tree is whole. Such files are never fetched."""
    try:
        rows = [
            row.partition(b"\t")
            for row in git(("ls-tree", "-r", "-z", "-l", "--full-tree", commit), git_dir=git_dir).split(b"\0")[:-1]
        ]
        modules = [_shown(name) for facts, _, name in rows if facts.startswith(b"160000 ")]
        pointers = _pointers(git_dir, [(facts.split(), name) for facts, _, name in rows])
    except GitError:
        return None
    parts = [
        f"{what} {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}"
        for what, names in (("submodules are not read:", modules), ("files of Git LFS are pointers:", pointers))
        if names
    ]
    return "; ".join(parts) or None


def _pointers(git_dir: Path, rows: list[tuple[list[bytes], bytes]]) -> list[str]:
    attributes = {facts[2] for facts, name in rows if name.rpartition(b"/")[2] == b".gitattributes"}
    filters = read_blobs(git_dir, attributes, limit=2**24).values()
    if not any(_FILTER.search(content) for content in filters):
        return []
    small = {facts[2]: name for facts, name in rows if facts[1] == b"blob" and int(facts[3]) <= _POINTER_BYTES}
    content = read_blobs(git_dir, set(small), limit=2**26)
    return sorted(_shown(small[blob]) for blob, data in content.items() if data.startswith(_POINTER))


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")
