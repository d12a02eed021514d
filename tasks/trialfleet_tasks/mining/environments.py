"""What mining asks of a language: the environment in which a commit's tests run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import Environment, ToolEnvironment
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.languages import Language
from trialfleet_repository.trees import ROOT, Tree
from trialfleet_tasks.mining.node_lock import NodeLocks
from trialfleet_tasks.presets.packages import package_of_most
from trialfleet_tasks.presets.preset import preset


class MinedEnvironments(Protocol):
    """Environments of one repository's commits in one language. Threads may share it."""

    def of(self, tree: Tree, committed: date, version: str, tests: Sequence[str]) -> Environment:
        """The environment for a tree of that time, and for these test files. Raises `OperatorError` if there is
        none.

        `tree`: all paths, with the content of those for which the language's `is_manifest` holds; the others are
        empty. `version`: of the newest tag before the commit, "0.0.0" if there is none."""
        ...

    def find_versions(self) -> Mapping[str, str]:
        """Of the machine's tools that decide what becomes of a commit, by their names."""
        ...


def month_after(day: date) -> date:
    """The first day of the next month, so that the commits of a month share their versions.

    >>> month_after(date(2025, 12, 30))
    datetime.date(2026, 1, 1)
    """
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True)
class ToolEnvironments:
    """Of a language whose kind of environment follows from the repository's own files. `install_scripts`: packages
    may run scripts of theirs. `locks`: of repositories that have none."""

    language: Language
    install_scripts: bool = False
    locks: NodeLocks | None = None

    def find_obstacle(self) -> OperatorError | None:
        """Why this machine cannot run the tests; None where it can."""
        try:
            find_tool(self.language.programs[0])
        except OperatorError as error:
            return error
        return None

    def find_versions(self) -> Mapping[str, str]:
        """Those that are there and work."""
        versions: dict[str, str] = {}
        for name in dict.fromkeys((*self.language.programs, *self.language.managers)):
            with contextlib.suppress(OperatorError):
                versions[name] = find_tool(name)[1]
        return versions

    def of(self, tree: Tree, committed: date, version: str, tests: Sequence[str]) -> Environment:
        """Every commit of a package has the same, except for locks; what is fetched for it depends on its tree."""
        package = package_of_most(self.language.kind, tree, tests)
        environment = ToolEnvironment(
            kind=self.language.kind,
            install_scripts=self.install_scripts,
            directory=None if package == ROOT else package,
        )
        if self.locks is not None and self.language.lock and self.language.lock.is_lacking(tree, package):
            made = self.locks.of(tree, package, month_after(committed))
            return environment.model_copy(update={"lock": made.path, "fetch": made.fetch})
        for name in preset(environment, tree).tools:
            find_tool(name)
        return environment
