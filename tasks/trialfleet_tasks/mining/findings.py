"""What came out of a candidate: a task, or the reason why it is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from trialfleet_ledger.records.base import Frozen
from trialfleet_tasks.validate.judge import NO_PYTEST
from trialfleet_tasks.validate.record import Problem, ProblemKind


class RejectionReason(StrEnum):
    """Why a commit gives no task. The first group is decided by names and numbers alone, the second by running."""

    NO_SOURCE = "no_source"
    NO_TESTS = "no_tests"
    TOO_LARGE = "too_large"
    UNUSUAL_PATHS = "unusual_paths"
    OTHER_PATHS = "other_paths"
    OTHER_MESSAGE = "other_message"
    NO_TOOLCHAIN = "no_toolchain"
    UNDONE = "undone"
    DUPLICATE = "duplicate"

    UNREADABLE = "unreadable"
    CHANGES_ONLY_TESTS = "changes_only_tests"
    TELLS_THE_FIX = "tells_the_fix"
    NO_ISSUE = "no_issue"
    ENVIRONMENT_FAILED = "environment_failed"
    TOOLCHAIN_TOO_OLD = "toolchain_too_old"
    TOOLCHAIN_TOO_NEW = "toolchain_too_new"
    PRIVATE_PACKAGES = "private_packages"
    ALREADY_GREEN = "already_green"
    CANNOT_RUN_BEFORE = "cannot_run_before"
    CANNOT_RUN_AT_FIX = "cannot_run_at_fix"
    FAILS_AT_FIX = "fails_at_fix"
    TESTS_LEFT_OUT = "tests_left_out"
    FLAKY = "flaky"
    TOO_SLOW = "too_slow"
    TOO_BIG = "too_big"
    NEEDS_NETWORK = "needs_network"
    NAMES_WHAT_ONLY_THE_FIX_ADDS = "names_what_only_the_fix_adds"
    HOLDS_THE_FIX = "holds_the_fix"


_REASONS = tuple(RejectionReason)
EXAMINED = _REASONS[_REASONS.index(RejectionReason.UNREADABLE) :]
"""Reasons that an examination gives."""

MEANING: Mapping[RejectionReason, str] = {
    RejectionReason.NO_SOURCE: "changes no source file that people wrote here",
    RejectionReason.NO_TESTS: "changes no test file",
    RejectionReason.TOO_LARGE: "changes more source than the limits allow",
    RejectionReason.UNUSUAL_PATHS: "has paths that are not printable UTF-8",
    RejectionReason.OTHER_PATHS: "changes nothing below --paths",
    RejectionReason.OTHER_MESSAGE: "its message does not match --grep",
    RejectionReason.NO_TOOLCHAIN: "needs tools of its language that this machine lacks",
    RejectionReason.UNDONE: "was reverted, or reverts another",
    RejectionReason.DUPLICATE: "is the same change as a newer commit",
    RejectionReason.UNREADABLE: "its trees cannot be read",
    RejectionReason.CHANGES_ONLY_TESTS: "changes nothing that an agent could change",
    RejectionReason.TELLS_THE_FIX: "its text holds lines of the fix",
    RejectionReason.NO_ISSUE: "closes no issue that has a text for the prompt",
    RejectionReason.ENVIRONMENT_FAILED: "its environment could not be built",
    RejectionReason.TOOLCHAIN_TOO_OLD: "needs a newer version of its language's tools than this machine has",
    RejectionReason.TOOLCHAIN_TOO_NEW: "needs an older version of its language's tools than this machine has",
    RejectionReason.PRIVATE_PACKAGES: "needs packages that nobody gets without credentials",
    RejectionReason.ALREADY_GREEN: "its tests pass before the fix",
    RejectionReason.CANNOT_RUN_BEFORE: "its tests cannot run before the fix",
    RejectionReason.CANNOT_RUN_AT_FIX: "its tests cannot run at the fix either",
    RejectionReason.FAILS_AT_FIX: "its tests fail at the fix",
    RejectionReason.TESTS_LEFT_OUT: "not all tests run that its runner collects",
    RejectionReason.FLAKY: "its tests give different results in repeated runs",
    RejectionReason.TOO_SLOW: "its tests take longer than a time limit",
    RejectionReason.TOO_BIG: "its tests need more memory or disk than the limit",
    RejectionReason.NEEDS_NETWORK: "its tests need a network, a database or Docker",
    RejectionReason.NAMES_WHAT_ONLY_THE_FIX_ADDS: "its tests use a name that only the fix adds",
    RejectionReason.HOLDS_THE_FIX: "what its tests need holds the fix, for an agent to copy",
}


class MiningFinding(Frozen):
    """One examined commit. `language`: of the candidate; None where it is none. `log`: file with the output that
    shows why, relative to the folder of the state. `temporary`: the reason lies outside of the commit and may be
    gone next time, such as a network that was down."""

    commit: str
    language: str | None = None
    outcome: Literal["kept"] | RejectionReason
    detail: str = ""
    hint: str | None = None
    log: str | None = None
    environment: str | None = None  # digest: it was built
    seconds: float = 0.0
    temporary: bool = False

    @property
    def kept(self) -> bool:
        return self.outcome == "kept"


_NAMES = re.compile(r"[\w.-]*[/\d][\w./-]*")  # what differs where the same happens: paths, versions, digests


def cause_of(finding: MiningFinding) -> tuple[str, str]:
    """Equal for findings of the same cause.

    >>> first, second = (f"No module named 'shop': tests/test_{n}.py at 3.1{n}" for n in (1, 2))
    >>> reason = RejectionReason.CANNOT_RUN_AT_FIX
    >>> len({cause_of(MiningFinding(commit="a", outcome=reason, detail=detail)) for detail in (first, second)})
    1
    """
    return str(finding.outcome), _NAMES.sub("…", finding.detail)


_BY_HAND = "read its log; a task by hand can name the command, the variables and the packages that its tests need"
_OTHERS = "choose other commits with --paths or --since"
REMEDIES: Mapping[RejectionReason, str] = {
    RejectionReason.UNREADABLE: "get the files of the clone: git fetch --refetch --no-filter",
    RejectionReason.NO_ISSUE: "give --issues more issues, or take another --prompt",
    RejectionReason.TELLS_THE_FIX: "take another --prompt",
    RejectionReason.TOO_SLOW: "give them more time with --timeout",
    RejectionReason.TOO_BIG: "mine where more memory and disk are free, or other commits with --paths",
    RejectionReason.CANNOT_RUN_AT_FIX: _BY_HAND,
    RejectionReason.FAILS_AT_FIX: _BY_HAND,
    RejectionReason.NEEDS_NETWORK: _OTHERS,
    RejectionReason.FLAKY: _OTHERS,
    RejectionReason.HOLDS_THE_FIX: _OTHERS,
}
"""What helps where a finding has no hint of its own."""


_BY_KIND: Mapping[ProblemKind, RejectionReason] = {
    ProblemKind.SOURCE: RejectionReason.UNREADABLE,
    ProblemKind.FACTS: RejectionReason.UNREADABLE,
    ProblemKind.WRONG_PATH: RejectionReason.UNREADABLE,
    ProblemKind.TEST_FILE_IS_DIRECTORY: RejectionReason.UNREADABLE,
    ProblemKind.ENVIRONMENT: RejectionReason.ENVIRONMENT_FAILED,
    ProblemKind.MISSING_INTERPRETER: RejectionReason.ENVIRONMENT_FAILED,
    ProblemKind.NOT_EXECUTABLE: RejectionReason.ENVIRONMENT_FAILED,
    ProblemKind.OUTSIDE_WORKSPACE: RejectionReason.ENVIRONMENT_FAILED,
    ProblemKind.ALREADY_PASSES: RejectionReason.ALREADY_GREEN,
    ProblemKind.ALL_SKIPPED: RejectionReason.CANNOT_RUN_AT_FIX,
    ProblemKind.FAILS_AT_FIX: RejectionReason.FAILS_AT_FIX,
    ProblemKind.TESTS_LEFT_OUT: RejectionReason.TESTS_LEFT_OUT,
    ProblemKind.SWAPPED: RejectionReason.FAILS_AT_FIX,
    ProblemKind.EXIT_CODE: RejectionReason.FAILS_AT_FIX,
    ProblemKind.NEEDS_NETWORK: RejectionReason.NEEDS_NETWORK,
    ProblemKind.FLAKY: RejectionReason.FLAKY,
    ProblemKind.NAMES_WHAT_ONLY_THE_FIX_ADDS: RejectionReason.NAMES_WHAT_ONLY_THE_FIX_ADDS,
    ProblemKind.OWN_RELEASE: RejectionReason.HOLDS_THE_FIX,
    ProblemKind.COPIED_LINES: RejectionReason.HOLDS_THE_FIX,
    ProblemKind.MISSING_TEST: RejectionReason.FLAKY,
    ProblemKind.NOT_AS_TEST: RejectionReason.CANNOT_RUN_BEFORE,
    ProblemKind.NO_FAIL_TO_PASS: RejectionReason.CANNOT_RUN_BEFORE,
    ProblemKind.TIMEOUT: RejectionReason.TOO_SLOW,
    ProblemKind.RESOURCES: RejectionReason.TOO_BIG,
    ProblemKind.CHANGES_ONLY_TESTS: RejectionReason.CHANGES_ONLY_TESTS,
    ProblemKind.FIX_IN_TEST_SIDE: RejectionReason.CHANGES_ONLY_TESTS,
}


# Of a validation: its hints tell the author of a task which tests to choose.
_NO_AUTHOR = frozenset(
    {
        *(RejectionReason.ALREADY_GREEN, RejectionReason.CANNOT_RUN_BEFORE, RejectionReason.CANNOT_RUN_AT_FIX),
        *(RejectionReason.FAILS_AT_FIX, RejectionReason.FLAKY, RejectionReason.TOO_BIG),
        RejectionReason.HOLDS_THE_FIX,
    }
)


_IN_PACKAGES = re.compile(r"ImportError: cannot import name .*site-packages")
_LACKS_A_NAME = (
    "a package of its environment lacks a name that is imported: without --build, versions that have no wheel are "
    "left out, and an older one may have been chosen"
)


def hint_of(problem: Problem, reason: RejectionReason) -> str | None:
    """Of the problem, where it tells the owner of a mined repository what to do.

    >>> said = "ImportError: cannot import name 'Markup' from 'flask' (/cache/lib/site-packages/flask/__init__.py)"
    >>> problem = Problem(kind=ProblemKind.NO_JUNIT, message=said)
    >>> str(hint_of(problem, RejectionReason.CANNOT_RUN_AT_FIX))[:46]
    'a package of its environment lacks a name that'
    """
    if reason is RejectionReason.CANNOT_RUN_AT_FIX and _IN_PACKAGES.search(problem.message):
        return _LACKS_A_NAME
    if reason in _NO_AUTHOR and problem.kind is not ProblemKind.EXIT_CODE:
        return REMEDIES.get(reason)
    return problem.hint


def reason_of(problems: Iterable[Problem]) -> RejectionReason:
    """The reason that a validation's first problem stands for."""
    first = next(iter(problems))
    if first.kind is ProblemKind.NO_JUNIT and NO_PYTEST in first.message:
        return RejectionReason.ENVIRONMENT_FAILED
    known = _BY_KIND.get(first.kind)
    if known is not None:
        return known
    return RejectionReason.CANNOT_RUN_AT_FIX if first.tree == "fixed" else RejectionReason.CANNOT_RUN_BEFORE
