"""A task as the plan gives it to runners, with what was predicted for it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trialfleet_ledger.records.base import Count, Frozen, Name, Number, Record, Sha256
from trialfleet_ledger.records.environment import EnvironmentRef

ClassRule = Literal["lookups", "names"]
ResultFormat = Name  # how the results of a test command are read: registered with a language


class PatchClasses(Record):
    """An object of the plan: which changes of an agent are the product's own, so that a pass may rest on them,
    found when the task was validated. All paths are of the scored tree, without a slash at their end; "." is its
    root.

    `rule`: how the other changes are told apart, by the paths that the tests looked up or by names alone.
    `production`: files of the product. `packages`: folders whose new files are the product's, too, and what is in
    new folders below them; each existing folder is listed itself. `used`: other files that the tests read.
    `missed`: paths that the tests looked for and did not find, apart from new source in packages.
    """

    rule: ClassRule
    production: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


class MustFailTest(Record):
    """An object of the plan: copies of a fail-to-pass test with calls that must fail. What makes every test pass
    makes these pass, too. `path`: where the file is put in the scored tree; `ids`: of its tests that must fail, as
    results name them, without parameters. `exit_code`: of a run in which no other test failed, and nothing outside
    of tests; None: no exit code tells that, so these tests need a run apart from the one that is judged."""

    path: str
    text: str
    ids: Annotated[tuple[str, ...], Field(min_length=1)]
    exit_code: Count | None = None


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
    travelling_tests: tuple[
        str, ...
    ] = ()  # test and vendored paths that the fix changes: the patch may touch them
    classes: Sha256 | None = None  # `PatchClasses`; None: all that travels is the product's
    must_fail: Sha256 | None = None  # `MustFailTest`; None: none can be made
    fix_bytes: Count | None = None  # memory that the tests took with the fix at validation; None: not measured
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
    score: Number
    parts: tuple[tuple[str, Number], ...] = ()
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
    confidence: Number | None = None
    why: str = ""
    hit: bool | None = None
