"""Locks of JavaScript packages whose repository has none, as npm resolves them for the commit's time."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import build
from trialfleet_repository.environments.tool_environment import KEPT
from trialfleet_repository.languages.ecmascript.preset import CI_OF_LOCK, lock_place
from trialfleet_repository.trees import Tree
from trialfleet_tasks.task_environment import planned_tools

# Without addresses of a registry: the lock is used with that of the machine.
_NPM = (
    *("npm", "install", "--package-lock", "--package-lock-only", "--omit-lockfile-registry-resolved"),
    *("--ignore-scripts", "--no-audit", "--no-fund"),
)
_MANIFESTS = ("package.json", ".npmrc")
_LEGACY = "--legacy-peer-deps"
_CONTRADICTS = re.compile(r"\bERESOLVE\b", re.IGNORECASE)  # what peers ask for, which npm installs since version 7
_NONE_THEN = re.compile(r"\b(?:ETARGET|ENOVERSIONS)\b")  # mirrors of a registry may date versions anew


@dataclass(frozen=True)
class NodeLock:
    """`path`: of the lock, from the folder of the task file. `fetch`: commands if not the usual one."""

    path: str
    fetch: tuple[tuple[str, ...], ...] | None = None


@dataclass
class NodeLocks:
    """Locks of one repository's commits, written to `folder`, which lies beside the task file: one for all commits
    whose manifests are the same in the same month. npm runs in the sandbox, and no code of a package. Threads may
    share it."""

    folder: Path
    cache: Cache
    _made: dict[str, str | OperatorError] = field(default_factory=dict[str, "str | OperatorError"])
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, tree: Tree, package: str, before: date) -> NodeLock:
        """`tree`: all paths, with the content of manifests. With versions from before that day; if there are none,
        with the newest that the manifests permit. Raises `OperatorError` when npm finds no set of versions."""
        manifests = {path: entry for path, entry in tree.items() if path.rpartition("/")[2] in _MANIFESTS}
        refusals: list[OperatorError] = []
        for options in _attempts(before, refusals):
            made = self._locked(manifests, lock_place(tree, package), options)
            if isinstance(made, str):
                return NodeLock(made, ((*CI_OF_LOCK, _LEGACY),) if _LEGACY in options else None)
            refusals.append(made)
        raise refusals[0]

    def _locked(self, manifests: Tree, place: str, options: tuple[str, ...]) -> str | OperatorError:
        planned = planned_tools(_resolving(place.rpartition("/")[0], options), manifests)
        lock = self.folder / f"{planned.ref.digest[:12]}.json"
        with self._turn:
            if lock.name not in self._made:
                self._made[lock.name] = f"{self.folder.name}/{lock.name}"
                try:
                    built = build(planned.ref, planned.source, cache=self.cache)
                    write_whole(lock, (built / KEPT / place).read_bytes(), mode=0o644)
                except OperatorError as error:
                    self._made[lock.name] = OperatorError(
                        f"npm finds no versions: {error.message}", hint=error.hint
                    )
            return self._made[lock.name]


def _resolving(folder: str, options: tuple[str, ...]) -> ToolEnvironment:
    """What writes a lock there, and keeps nothing else."""
    return ToolEnvironment(
        kind="commands",
        tools={"node": "", "npm": ""},
        inputs=_MANIFESTS,
        fetch=((*_NPM, *options),),
        keep=("package-lock.json",),
        test_command=("true",),
        results="junit",
        directory=folder or None,
    )


def _attempts(before: date, refusals: list[OperatorError]) -> Iterator[tuple[str, ...]]:
    """Options of npm; what follows depends on why the last ones were refused."""
    dated: tuple[str, ...] = (f"--before={before}",)
    yield dated
    if _NONE_THEN.search(refusals[-1].message):
        dated = ()
        yield dated
    if _CONTRADICTS.search(refusals[-1].message):
        yield (*dated, _LEGACY)
