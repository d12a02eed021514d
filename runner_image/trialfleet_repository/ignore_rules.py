"""Which new paths of a workspace git would ignore, by the rules of the workspace that was given to the agent."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from trialfleet_repository.git import git
from trialfleet_repository.trees import EntryKind
from trialfleet_repository.workspace import Template

_NAME = ".gitignore"
_PROBE = ".trialfleet-ignored"  # one path of every question: git fails if it ignores none
_LONGEST_S = 30.0  # a question; the patterns are the repository's


def _ignores(rule: bytes, path: str) -> bool:
    """A rule for what is in a folder says nothing of the folder, although git applies it to its path.

    >>> _ignores(b"data/*", "data/"), _ignores(b"data/*", "data/a"), _ignores(b"!data/a", "data/a")
    (False, True, False)
    """
    return not rule.startswith(b"!") and not (path.endswith("/") and rule.endswith((b"/*", b"/**")))


class IgnoreRules:
    """`folder`: of our own, where the rules are laid; it is made on the first question. An agent that changes
    ignore rules changes nothing here."""

    def __init__(self, template: Template, folder: Path) -> None:
        self._template, self._folder = template, folder

    def find_ignored(self, paths: Collection[str]) -> set[str]:
        """Those of `paths` that git ignores. A folder's path ends with a slash. Raises `GitError`; `OSError` if
        the machine has no room for the rules or for git."""
        if not paths:
            return set()
        rules, probe = self._laid
        asked = b"".join(b"./" + os.fsencode(path) + b"\0" for path in (*paths, _PROBE))  # ./: nothing is magic
        where = ("-C", str(rules), "-c", f"core.excludesFile={probe}", "--work-tree", str(rules))
        words = (*where, "check-ignore", "--no-index", "--verbose", "-z", "--stdin")
        fields = git(words, git_dir=self._template.git_dir, stdin=asked, timeout_s=_LONGEST_S).split(b"\0")
        found = zip(fields[2::4], fields[3::4], strict=False)  # each rule, and the path that it decides
        decided = {os.fsdecode(path.removeprefix(b"./")): rule for rule, path in found}
        return {path for path, rule in decided.items() if _ignores(rule, path)} - {_PROBE}

    @cached_property
    def _laid(self) -> tuple[Path, Path]:
        """A folder that holds the ignore files alone, and a file that ignores the probe."""
        rules, probe = self._folder / "rules", self._folder / "probe"
        rules.mkdir(parents=True, exist_ok=True)
        probe.write_text(f"/{_PROBE}\n")
        for path, (kind, _, _) in self._template.manifest.items():
            if path.rpartition("/")[2] == _NAME and kind != EntryKind.LINK:
                (rules / path).parent.mkdir(parents=True, exist_ok=True)
                (rules / path).write_bytes((self._template.tree / path).read_bytes())
        return rules, probe
