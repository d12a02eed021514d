"""A task as the plan gives it to runners, with what was predicted for it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trialfleet_ledger.records.base import Frozen, Name, Sha256
from trialfleet_ledger.records.environment import EnvironmentRef

ResultFormat = Name  # how the results of a test command are read: registered with a language


class TaskOrder(Frozen):
    """What the runner needs of one task. Objects are named by digest; `fix` only the oracle agent gets."""

    id: Name
    digest: Sha256
    environment: EnvironmentRef
    workspace: Sha256  # tree the agent gets, before the condition's files (strip and test injection done)
    pristine: Sha256  # tree that is scored: pre-fix tree with the fix's test files in place
    fix: Sha256  # unified diff pre-fix -> fixed, without the test files
    test_command: tuple[str, ...]  # argv; {junit} and {tests} are replaced
    results: ResultFormat = "pytest"
    directory: str = "."  # folder of the workspace that the command is called in
    pythonpath: tuple[str, ...] = ()  # folders of the workspace put on PYTHONPATH
    env: dict[str, str] = Field(default_factory=dict)  # variables of agent and tests
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    test_files: tuple[str, ...] = ()  # files of the workspace that the patch may not touch
    travelling_tests: tuple[str, ...] = ()  # test paths that the fix changes: those the patch may touch
    import_name: str | None = None
    prompt_source: Literal["failing_test", "issue", "commit_message"]
    prompt: Sha256  # object: the task's text, byte-equal over conditions and reps
    anchor: str | None = None  # path of the workspace that `nearest` starts from; None: no covering node
    language: str = "Python"
    test_framework: str = "pytest"
    targets: tuple[str, ...] = ()  # files the fix changes (metric: target hit); never shown to an agent


class PredictedTarget(Frozen):
    """A file that was predicted to need the edit. `parts`: what its score came from, largest first; `symbols`: the
    definitions that the task is likely about."""

    path: str
    score: float
    parts: tuple[tuple[str, float], ...] = ()
    symbols: tuple[str, ...] = ()


class Prediction(Frozen):
    """What was predicted for one task before anything ran, from the tree and the history before the fix.

    No targets with `abstained`, which says why. `index`: SHA-256 of what it was asked of, which no attempt sees.
    `history`: False where there was the tree alone. `hit`: a file that the fix changes is among the targets; None:
    nothing was predicted.
    """

    method: str
    commit: str | None = None
    index: Sha256
    history: bool
    targets: tuple[PredictedTarget, ...] = ()
    abstained: str | None = None
    confidence: float | None = None
    why: str = ""
    hit: bool | None = None
