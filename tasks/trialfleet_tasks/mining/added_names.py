"""Tests that use a name that only the fix adds: no prompt could tell an agent that name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trialfleet_repository.languages import PYTHON, Language
from trialfleet_repository.languages.code_names import strip_comments
from trialfleet_repository.trees import Tree, TreeEntry
from trialfleet_tasks.mining.bound_names import without_bound
from trialfleet_tasks.mining.code_language import names_of_code
from trialfleet_tasks.mining.declared_tests import DeclaredTests
from trialfleet_tasks.mining.history import is_beside
from trialfleet_tasks.mining.imported_names import own_packages, without_imported

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_PROSE = (".md", ".rst", ".adoc", ".txt")


def added_names(before: Tree, fix: Mapping[str, TreeEntry | None]) -> frozenset[str]:
    """Names that the fix's code holds, outside of comments, and no file of the tree before it does. What its code
    imports from other packages is not the fix's, nor are the words of examples beside other code.

    >>> before = {"a.py": TreeEntry(b"def total(): ...")}
    >>> sorted(added_names(before, {"a.py": TreeEntry(b"def total(rounded): ..."), "a.md": TreeEntry(b"cents")}))
    ['rounded']
    """
    own = own_packages({**before, **{path: entry for path, entry in fix.items() if entry}})
    changed = {path: entry.data for path, entry in fix.items() if entry and not path.endswith(_PROSE)}
    changed = {path: data for path, data in changed.items() if not is_beside(path)} or changed
    after = names(without_imported(path, names_of_code(path).code(data), own) for path, data in changed.items())
    return frozenset(after - names(entry.data for entry in before.values())) if after else frozenset()


def names(files: Iterable[bytes]) -> set[str]:
    """All identifiers of some files, in any language."""
    return {name for data in files for name in _NAME.findall(data.decode(errors="replace"))}


def using_tests(
    added: frozenset[str],
    tests: Iterable[str],
    *,
    before: Tree,
    fixed: Tree,
    language: Language = PYTHON,
    files: Sequence[str] = (),
) -> dict[str, str]:
    """Test id -> the first name among `added` in the test's own text, without its variables. Strings are included:
    a test may patch or get something by its name. `files`: the test files that the fix changes.

    Of a Python test whose function is not found nothing is known, and it is left out. For a test of another
    language that is not found, all lines count that the fix adds to its file.
    """
    texts = language.names.test_texts
    find = _TestTexts(before, fixed, language, files).code_of if texts is None else texts(fixed)
    used = {test: added & set(_NAME.findall(find(test))) for test in tests}
    return {test: min(names) for test, names in used.items() if names}


@dataclass(frozen=True)
class _TestTexts:
    """Texts of tests with ids `UNIT::NAME`, which are searched in the files that may be the unit's."""

    before: Tree
    fixed: Tree
    language: Language
    files: Sequence[str]
    _units: dict[str, tuple[list[DeclaredTests], str]] = field(
        default_factory=dict[str, "tuple[list[DeclaredTests], str]"]
    )

    def of(self, test: str) -> str:
        unit, _, name = test.partition("::")
        if unit not in self._units:
            self._units[unit] = self._unit(unit)
        declared, added = self._units[unit]
        return next((text for file in declared if (text := file.find(name)) is not None), added)

    def code_of(self, test: str) -> str:
        """Without comments and its own variables."""
        return without_bound(strip_comments(self.of(test).encode()).decode())

    def _unit(self, unit: str) -> tuple[list[DeclaredTests], str]:
        """Its files, the changed ones first, and what the fix adds to the changed ones."""
        changed = self._fitting(unit, self.files) or [path for path in self.files if path in self.fixed]
        code = (path for path in self.fixed if path.endswith(self.language.suffixes) and path not in self.files)
        read = [
            DeclaredTests(_text(self.fixed, path), self.language.name)
            for path in (*changed, *self._fitting(unit, code))
        ]
        return read, "\n".join(line for path in changed for line in self._added_lines(path))

    def _fitting(self, unit: str, paths: Iterable[str]) -> list[str]:
        ranked = [(rank, path) for path in paths if path in self.fixed and (rank := _rank(unit, path))]
        best = max((rank for rank, _ in ranked), default=0)
        return [path for rank, path in ranked if rank == best]

    def _added_lines(self, path: str) -> list[str]:
        known = set(_text(self.before, path).splitlines()) if path in self.before else set[str]()
        return [line for line in _text(self.fixed, path).splitlines() if line not in known]


def _rank(unit: str, path: str) -> int:
    """How well a file fits a unit; 0: not at all."""
    return names_of_code(path).rank(unit, path)


def _text(tree: Tree, path: str) -> str:
    return tree[path].data.decode(errors="replace")
