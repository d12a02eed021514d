"""Member folders of the workspaces of a repository (npm, Yarn, pnpm, lerna)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from trialfleet_targets.resolve.configuration import at, json_table, rows, strings, yaml_table
from trialfleet_targets.resolve.names import folder_of

NOT_A_MEMBER = 10_000  # deeper than any path
# Hand-written workspaces stay far below these limits; beyond them a folder is not a member.
_MOST_PATTERNS, _LONGEST_PATTERN, _MOST_LOOKS = 200, 200, 20_000


@dataclass(frozen=True, slots=True)
class _Workspace:
    """`inside`, `outside`: patterns by their parts, relative to the folder."""

    folder: str
    inside: tuple[Sequence[str], ...]
    outside: tuple[Sequence[str], ...]

    @property
    def depth(self) -> int:
        return self.folder.count("/") + 1 if self.folder else 0

    def has(self, path: Sequence[str]) -> bool:
        return _any(self.inside, path) and not _any(self.outside, path)


class Workspaces:
    def __init__(self, others: Mapping[str, bytes], manifests: Mapping[str, Mapping[str, Any]]) -> None:
        """`manifests`: package.json by folder."""
        found = [_workspace(folder, patterns) for folder, patterns in _patterns(others, manifests)]
        self._all = sorted(found, key=lambda one: (one.depth, one.folder))
        self._comparisons_left = _MOST_LOOKS

    def depth(self, folder: str) -> int:
        """Of the outermost workspace that has the folder as a member; `NOT_A_MEMBER`: none has."""
        for one in self._all:
            if one.folder and not f"{folder}/".startswith(f"{one.folder}/"):
                continue
            self._comparisons_left -= len(one.inside) + len(one.outside)
            if self._comparisons_left < 0:
                break
            rest = folder[len(one.folder) :].strip("/")
            if one.has(rest.split("/") if rest else []):
                return one.depth
        return NOT_A_MEMBER


def _patterns(
    others: Mapping[str, bytes], manifests: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, list[str]]]:
    for folder, manifest in manifests.items():
        workspaces = manifest.get("workspaces")
        yield folder, strings(at(workspaces, "packages") or workspaces)
    for path, data in others.items():
        name = path.rpartition("/")[2]
        if name == "pnpm-workspace.yaml":
            yield folder_of(path), strings(rows(yaml_table(data).get("packages")))
        elif name == "lerna.json":
            yield folder_of(path), strings(json_table(data).get("packages"))


def _workspace(folder: str, patterns: Sequence[str]) -> _Workspace:
    usable = [one for one in patterns[:_MOST_PATTERNS] if len(one) <= _LONGEST_PATTERN]
    negative = [one[1:] for one in usable if one.startswith("!")]
    positive = [one for one in usable if not one.startswith("!")]
    return _Workspace(folder, tuple(_split(positive)), tuple(_split(negative)))


def _split(patterns: Collection[str]) -> Iterator[Sequence[str]]:
    """Without those that leave the folder."""
    for pattern in patterns:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if ".." not in parts and not pattern.startswith("/"):
            yield parts


def _any(patterns: Collection[Sequence[str]], path: Sequence[str]) -> bool:
    return any(_matches(pattern, path) for pattern in patterns)


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """`**` is any number of folders. Takes time proportional to the product of the lengths.

    >>> [_matches(["a", "**", "c*"], path.split("/")) for path in ("a/c", "a/b/b/cd", "a/b", "c")]
    [True, True, False, False]
    """
    reached = _past_stars(pattern, {0})
    for name in path:
        on = {place for place in reached if place < len(pattern)}
        stay = {place for place in on if pattern[place] == "**"}
        step = {place + 1 for place in on - stay if fnmatchcase(name, pattern[place])}
        reached = _past_stars(pattern, stay | step)
    return len(pattern) in reached


def _past_stars(pattern: Sequence[str], reached: set[int]) -> set[int]:
    for place in range(len(pattern)):
        if place in reached and pattern[place] == "**":
            reached.add(place + 1)
    return reached
