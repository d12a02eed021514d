"""Infers the environment of a Python commit: its requirements, locked as of its time. None of its code runs."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import interpreters
from trialfleet_ledger.task import PythonEnvironment
from trialfleet_repository.languages.python.unittest_runner import import_root
from trialfleet_repository.trees import Tree
from trialfleet_tasks.mining.declared_call import DeclaredCall
from trialfleet_tasks.mining.declared_command import declared_calls
from trialfleet_tasks.mining.declared_extras import declared_extras
from trialfleet_tasks.mining.declared_pythons import find_declared_pythons
from trialfleet_tasks.mining.environments import month_after
from trialfleet_tasks.mining.python_lock import WantedLock, compiled, without_wheels
from trialfleet_tasks.mining.python_project import PythonProject
from trialfleet_tasks.mining.python_workspace import project_of_tests

# First releases of CPython: packages offer wheels for a new one only after some months.
RELEASED = {
    "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5),
    "3.10": date(2021, 10, 4),
    "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2),
    "3.13": date(2024, 10, 7),
    "3.14": date(2025, 10, 7),
}
_WHEELS_AFTER = timedelta(days=270)
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)


@dataclass
class PythonEnvironments:
    """Environments of one repository's commits. `folder`: of the task file; their locks are written there,
    one for all commits whose requirements are the same in the same month. `build`: packages without a wheel may be
    built, which runs code of theirs. `preferred`: among the calls that commits declare. `odd_pins`: entries of
    commits' locks that were not used. Threads may share it."""

    folder: Path
    build: bool = False
    preferred: DeclaredCall | None = None
    odd_pins: set[str] = field(default_factory=set[str])
    _locks: dict[str, str | OperatorError] = field(default_factory=dict[str, "str | OperatorError"])
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, tree: Tree, committed: date, version: str, tests: Sequence[str]) -> PythonEnvironment:
        """The environment for a tree of that time. Raises `OperatorError` if no set of requirements can be locked.

        `tree`: all paths, with the content of `is_metadata` ones. `version`: of the project, for
        `importlib.metadata`."""
        return self._with_call(self.choose_call(tree), tree, committed, version, tests)

    def of_each_call(
        self, tree: Tree, committed: date, version: str, tests: Sequence[str]
    ) -> tuple[tuple[DeclaredCall, PythonEnvironment], ...]:
        """As `of`, for every call that the tree declares, if it has an effect."""
        found: dict[str, tuple[DeclaredCall, PythonEnvironment]] = {}
        for call in declared_calls(tree):
            one = self._with_call(call, tree, committed, version, tests)
            key = repr((one.test_command, sorted(one.env.items()), sorted(one.pythonpath)))
            found.setdefault(key, (call, one))
        return tuple(found.values())

    def choose_call(self, tree: Tree) -> DeclaredCall:
        """The preferred one, else one like it (of pytest, or not), else the first that is declared."""
        calls = [call for call in declared_calls(tree) if call.place or self.preferred]
        wanted = self.preferred or DeclaredCall("")
        alike = [call for call in calls if self.preferred and bool(call.runner) == bool(wanted.runner)]
        same = [call for call in alike if call.key == wanted.key]
        return next(iter((*same, *alike, *calls)), DeclaredCall(""))

    def _with_call(
        self, call: DeclaredCall, tree: Tree, committed: date, version: str, tests: Sequence[str]
    ) -> PythonEnvironment:
        project, sources = project_of_tests(tree, tests)
        self.odd_pins.update(project.odd_pins)
        python = _python(project, committed, find_declared_pythons(tree, tuple(RELEASED)))
        declared = declared_extras(tree, project.groups, project.extras)
        lock = self._locked(project, declared, python, month_after(committed))
        call = call.among(_LOCKED.findall((self.folder.parent / lock).read_text()))
        return PythonEnvironment(
            python=(python,),
            lock=lock,
            distribution=project.name,
            version=version if project.name else None,
            entry_points=project.entry_points if project.name else None,
            pythonpath=tuple(dict.fromkeys((*(call.pythonpath or ()), *sources, *_roots_of(call, tree, tests)))),
            test_command=_test_command(call),
            results="unittest" if call.runner else "pytest",
            env=dict(call.env),
            import_name=_import_name(project, tree, sources[0]),
        )

    def find_versions(self) -> Mapping[str, str]:
        """Of the interpreters, the first of each minor version."""
        first = {minor: next(interpreters((minor,)), None) for minor in RELEASED}
        return {minor: one.version for minor, one in first.items() if one is not None}

    def _locked(self, project: PythonProject, declared: Sequence[str], python: str, before: date) -> str:
        refusals: list[OperatorError] = []
        for requirements, pinned in _choices(project, declared):
            found = self._with_wheels(project, requirements, python, before, pinned=pinned)
            if isinstance(found, str):
                return found
            refusals.append(found)
        raise refusals[0]

    def _with_wheels(
        self, project: PythonProject, requirements: tuple[str, ...], python: str, before: date, *, pinned: bool
    ) -> str | OperatorError:
        """The lock, or the last refusal. If a package had no wheel then, a later version with a wheel is used, of
        this package only. A requirement that never had a wheel is left out unless the project itself depends on
        it: it is usually a developer's tool, and a test that imports it is refused when it runs. Each refusal adds
        to `later` or removes a requirement, so the loop ends."""
        own = canonicalize_name(project.name) if project.name else None
        later: frozenset[str] = frozenset()
        while True:
            pins = project.pins_without(later) if pinned else ()
            found = self._compiled(WantedLock(requirements, pins, python, before, later, own))
            if isinstance(found, str) or self.build:
                return found
            lacking = without_wheels(found)
            fewer = requirements if lacking - later else project.without(requirements, lacking)
            if lacking <= later and fewer == requirements:
                return found
            later, requirements = later | lacking, fewer

    def _compiled(self, wanted: WantedLock) -> str | OperatorError:
        with self._turn:
            if wanted.name not in self._locks:
                self._locks[wanted.name] = compiled(wanted, self.folder, build=self.build)
            return self._locks[wanted.name]


def _test_command(call: DeclaredCall) -> tuple[str, ...]:
    """The project's own runner, or the usual call of pytest with the project's own arguments in it."""
    if call.runner:
        return (*call.runner, "{tests}")
    usual: tuple[str, ...] = PythonEnvironment.model_fields["test_command"].default
    at = usual.index("--junit-xml={junit}")
    return (*usual[:at], *call.arguments, *usual[at:])


def _roots_of(call: DeclaredCall, tree: Tree, tests: Sequence[str]) -> tuple[str, ...]:
    """Folders from which a runner that is given names imports the tests."""
    if not call.runner:
        return ()

    def read(path: str) -> bytes | None:
        return b"" if path in tree else None

    return tuple(dict.fromkeys(import_root(path, read) or "." for path in tests))


def _choices(project: PythonProject, declared: Sequence[str]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """(Requirements, whether they are pinned), the one most like the developers' own environment first. What a
    command installs is needed sooner than the very versions of a lock."""
    pinned = (True, False) if project.pins else (False,)
    for pins in pinned if declared or project.for_tests else ():
        yield project.requirements(development=True, declared=declared, more=project.for_tests), pins
    for pins in pinned if declared and project.for_tests else ():
        yield project.requirements(development=True, declared=declared), pins
    for pins in pinned:
        for development in (True, False):
            yield project.requirements(development=development), pins


def in_use(day: date) -> tuple[str, ...]:
    """Python's releases in the order in which an environment of that day would have them.

    >>> in_use(date(2023, 8, 1))
    ('3.11', '3.10', '3.9', '3.8', '3.12', '3.13', '3.14')
    """
    old = [minor for minor, released in RELEASED.items() if released + _WHEELS_AFTER <= day]
    return (*reversed(old), *(minor for minor in RELEASED if minor not in old))


def _python(project: PythonProject, day: date, declared: Collection[str]) -> str:
    """The newest of that day that the project permits and, if it names any, of the `declared` ones. Another where
    the machine has none of these."""
    try:
        wanted = SpecifierSet(project.requires_python or "")
    except InvalidSpecifier:
        wanted = SpecifierSet("")
    fitting = tuple(minor for minor in in_use(day) if wanted.contains(f"{minor}.99"))
    chosen = tuple(minor for minor in fitting if minor in declared)
    found = next(interpreters((*chosen, *(minor for minor in fitting if minor not in chosen))), None)
    if found is None:
        raise OperatorError(
            f"the project needs Python {project.requires_python}, which this machine does not have",
            hint="install it and put it on PATH, for example with apt, pyenv or `uv python install`",
        )
    return found.minor


def _import_name(project: PythonProject, tree: Tree, source: str) -> str | None:
    name = (project.name or "").lower().replace("-", "_").replace(".", "_")
    prefix = "" if source == "." else f"{source}/"
    return name if name and f"{prefix}{name}/__init__.py" in tree else None
