"""Expands patterns of file names, without walking a whole disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from trialfleet_ledger.errors import OperatorError

MOST_ENTRIES = 100_000
MOST_PARTS = 100


def is_pattern(text: str) -> bool:
    return any(character in text for character in "*?[")


def matching_files(folder: Path, pattern: str, *, where: str) -> list[Path]:
    """Files that match, sorted. `pattern` starts from `folder` if it is relative; `**` stands for any number of
    folders, without links to folders. Raises `OperatorError`, which names `where`, for `**` inside a name, and
    once more than `MOST_ENTRIES` files and folders had to be looked at."""
    parts = Path(pattern).parts
    if len(parts) > MOST_PARTS:
        raise OperatorError(
            f"the pattern has {len(parts):,} parts between slashes",
            where=where,
            hint=f"write {MOST_PARTS} at most",
        )
    if any("**" in part and part != "**" for part in parts):
        raise OperatorError(
            f"{pattern}: ** stands alone between slashes, for any number of folders",
            where=where,
            hint="write **/*.yaml, or *.yaml for the files of one folder",
        )
    walk = _PatternWalk(pattern, where)
    start = Path(parts[0]) if Path(pattern).is_absolute() else folder
    return sorted(set(walk.matches(start, parts[1:] if Path(pattern).is_absolute() else parts)))


class _PatternWalk:
    def __init__(self, pattern: str, where: str) -> None:
        self._pattern, self._where, self._seen = pattern, where, 0

    def matches(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
        if not parts:
            return
        first, rest = parts[0], parts[1:]
        if first == "**":
            yield from self.matches(folder, rest or ("*",))
            for entry in self._entries(folder):
                if entry.is_dir(follow_symlinks=False):
                    yield from self.matches(Path(entry), parts)
            return
        names = [entry.name for entry in self._entries(folder)] if is_pattern(first) else [first]
        for path in (folder / name for name in names if name == first or fnmatchcase(name, first)):
            if rest:
                yield from self.matches(path, rest)
            elif path.is_file():
                yield path

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (OSError, ValueError):  # not a folder, or not ours to read
            return []
        self._seen += len(listed)
        if self._seen > MOST_ENTRIES:
            raise OperatorError(
                f"{self._pattern}: more than {MOST_ENTRIES:,} files and folders would have to be looked at",
                where=self._where,
                hint="begin the pattern with the folder of the files",
            )
        return listed
