"""What mining asks of a language: the environment in which a commit's tests run."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from trialfleet_runner.task import Environment
from trialfleet_runner.trees import Tree


class MinedEnvironments(Protocol):
    """Environments of one repository's commits in one language. Threads may share it."""

    def of(self, tree: Tree, committed: datetime, version: str) -> Environment:
        """The environment for a tree of that time. Raises `OperatorError` if there is none.

        `tree`: all paths, with the content of those for which the language's `is_manifest` holds; the others are
        empty. `version`: of the newest tag before the commit, "0.0.0" if there is none."""
        ...
