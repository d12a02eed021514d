"""How large the packages of a Python lock are, before any of them is fetched. Pure, but for the index that it is
given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==((?:.*\\\n)*.*)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_AT_ONCE = 8  # pages of an index


def count_download_bytes(lock: str, python: str, sizes_of: Callable[[str], Mapping[str, tuple[str, int]]]) -> int:
    """At least: of the wheels that this machine's Python of that version gets. What the index says no size of
    counts as nothing. `sizes_of`: SHA-256 of each file of a project -> its name and bytes."""
    wanted = {match[1]: _HASH.findall(match[2]) for match in _PINNED.finditer(lock)}
    tags = _tags_of(python)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        offered = dict(zip(wanted, pool.map(sizes_of, wanted), strict=True))
    return sum(
        _best_size((offered[name][each] for each in hashes if each in offered[name]), tags)
        for name, hashes in wanted.items()
    )


def _tags_of(python: str) -> Mapping[Tag, int]:
    """Tag -> its rank, the preferred one first."""
    major, _, minor = python.partition(".")
    version = (int(major), int(minor))
    tags = (*cpython_tags(version), *compatible_tags(version, interpreter=f"cp{major}{minor}"))
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def _best_size(files: Iterator[tuple[str, int]], tags: Mapping[Tag, int]) -> int:
    """Bytes of the wheel that is installed; 0 where none fits."""
    ranked = [(rank, size) for name, size in files if (rank := _rank(name, tags)) is not None]
    return min(ranked, default=(0, 0))[1]


def _rank(name: str, tags: Mapping[Tag, int]) -> int | None:
    try:
        _, _, _, offered = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return None
    return min((tags[tag] for tag in offered if tag in tags), default=None)
