"""What a validation found: kept in the cache by content digest."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from trialfleet_ledger.records.base import Count, Frozen, Moment, Name, Ordinal, Record, Sha256
from trialfleet_ledger.records.environment import EnvironmentRef
from trialfleet_ledger.records.task_order import ClassRule
from trialfleet_ledger.task import Status


class ProblemKind(StrEnum):
    """Why a task is not valid. Each kind has a different fix."""

    FACTS = "facts"  # the task file names something that the trees do not have
    SOURCE = "source"  # the trees could not be fetched
    CHANGES_ONLY_TESTS = "changes_only_tests"  # nothing that an agent could change
    FIX_IN_TEST_SIDE = "fix_in_test_side"  # its manifests or configuration alone make the tests pass
    ENVIRONMENT = "environment"  # the environment could not be built
    TEST_FILE_IS_DIRECTORY = "test_file_is_directory"
    WRONG_PATH = "wrong_path"
    ALREADY_PASSES = "already_passes"
    ALL_SKIPPED = "all_skipped"
    FAILS_AT_FIX = "fails_at_fix"
    SWAPPED = "swapped"  # passes before and fails after
    NEEDS_NETWORK = "needs_network"
    FLAKY = "flaky"
    NAMES_WHAT_ONLY_THE_FIX_ADDS = "names_what_only_the_fix_adds"  # no prompt could tell it
    NOT_AS_TEST = "not_as_test"  # error in a fixture, skipped
    MISSING_TEST = "missing_test"
    COLLECTION_ERROR = "collection_error"
    NO_TESTS_COLLECTED = "no_tests_collected"
    USAGE_ERROR = "usage_error"
    INTERNAL_ERROR = "internal_error"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    RESOURCES = "resources"
    MISSING_INTERPRETER = "missing_interpreter"
    NOT_EXECUTABLE = "not_executable"
    SIGNAL = "signal"
    NO_JUNIT = "no_junit"
    TESTS_LEFT_OUT = "tests_left_out"  # collected, but not run: they would not count
    EXIT_CODE = "exit_code"  # it says something else than the results: no attempt could pass
    OUTSIDE_WORKSPACE = "outside_workspace"  # the imported module is not the workspace's
    COPIED_LINES = "copied_lines"  # of the fix, in the environment or in vendored folders
    OWN_RELEASE = "own_release"  # site-packages hold the project, perhaps with the fix
    NO_FAIL_TO_PASS = "no_fail_to_pass"  # noqa: S105 - not a password


TreeName = Literal["pre_fix", "fixed"]
OUTPUT_CHARS = 16_000


class Problem(Frozen):
    """One reason as text, with its fix. `tree`: whose tests showed it. `output`: the end of what they printed, at
    most `OUTPUT_CHARS` characters."""

    kind: ProblemKind
    message: str
    hint: str | None = None
    tree: TreeName | None = None
    output: str = ""


class NodeCoverage(Frozen):
    """The node of a context tree that covers a file of the fix; None: only the root's node does."""

    context: Name
    path: str
    node: str | None


class Validation(Record):
    """`validations/<digest>.json`. `output`: the frozen failure output, an object; `anchor`: the deepest frame of
    the repository outside its tests in it. `classes`: `PatchClasses`, an object, with this `rule`. `test_side`:
    paths that the fix changes and that support its tests alone, and its manifests and configuration if the task is
    only valid with them: scored as the fix has them. `left_out`: why tests of the task's files do not count, and
    how many. `must_fail`: a `MustFailTest`, an object; `control`: how many
    tests it has, or "none" with the reason. `fix_bytes`: most memory that a run at the fixed tree took; None: not
    measured."""

    task: Name
    digest: Sha256
    status: Status
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    repeats: Ordinal
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    left_out: dict[str, Count] = Field(default_factory=dict)
    output: Sha256 | None = None
    classes: Sha256 | None = None
    rule: ClassRule | None = None
    anchor: str | None = None
    must_fail: Sha256 | None = None
    control: str = "none (`trialfleet validate --fresh` makes it)"
    fix_bytes: Count | None = None
    targets: tuple[str, ...] = ()
    test_files: tuple[str, ...] = ()
    test_side: tuple[str, ...] = ()
    coverage: tuple[NodeCoverage, ...] = ()
    imported: str | None = None
    environment: EnvironmentRef | None = None
    isolation: str
    at: Moment
    seconds: Moment

    @property
    def holds(self) -> bool:
        """Whether the task may be run (a task without an oracle: apart from primary results)."""
        return not self.problems
