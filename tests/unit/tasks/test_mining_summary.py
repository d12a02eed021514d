"""What mining says at its end: causes that several commits share, what helps, and the next command."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path

from trialfleet_tasks.commands.mine import _next_commands
from trialfleet_tasks.mining.findings import (
    REMEDIES,
    MiningFinding,
    RejectionReason,
    cause_of,
    hint_of,
    reason_of,
)
from trialfleet_tasks.mining.yield_table import find_shared_causes, remedy_of, summarise_causes
from trialfleet_tasks.validate.record import Problem, ProblemKind


def finding(sha: str, reason: RejectionReason, detail: str = "", hint: str | None = None) -> MiningFinding:
    return MiningFinding(commit=sha, outcome=reason, detail=detail, hint=hint)


def test_causes_are_grouped_with_counts_and_one_remedy_each() -> None:
    cannot, failed = RejectionReason.CANNOT_RUN_AT_FIX, RejectionReason.ENVIRONMENT_FAILED
    findings = [
        *(finding(f"a{n}", cannot, f"No module named 'pkg_resources': tests/test_{n}.py") for n in range(20)),
        *(finding(f"b{n}", cannot, "No module named 'humanize._version'") for n in range(17)),
        *(finding(f"c{n}", failed, "a package has no wheel", "pass --build") for n in range(2)),
        *(finding(f"d{n}", RejectionReason.ALREADY_GREEN, "passes") for n in range(9)),
        finding("e", cannot, "something else"),
        MiningFinding(commit="k", outcome="kept"),
        MiningFinding(commit="l", outcome="kept"),
    ]
    lines = summarise_causes(findings)
    usual = REMEDIES[cannot]
    assert lines == [
        f"20 commits: cannot_run_at_fix: No module named 'pkg_resources': tests/test_0.py; fix: {usual}",
        f"17 commits: cannot_run_at_fix: No module named 'humanize._version'; fix: {usual}",
        "2 commits: environment_failed: a package has no wheel; fix: pass --build",
    ], "nothing helps against tests that pass already, and one commit is no group"
    assert summarise_causes([]) == []


def test_a_hint_for_the_author_of_a_task_is_none_for_the_owner_of_a_repository() -> None:
    """`already_green` has no remedy, so no group of it is shown, as above."""

    def hint(kind: ProblemKind) -> str | None:
        problem = Problem(kind=kind, message="", hint="choose the tests that show the bug", tree="fixed")
        return hint_of(problem, reason_of((problem,)))

    assert hint(ProblemKind.ALREADY_PASSES) is None
    assert hint(ProblemKind.FAILS_AT_FIX) == REMEDIES[RejectionReason.FAILS_AT_FIX]
    assert hint(ProblemKind.EXIT_CODE) == hint(ProblemKind.ENVIRONMENT) == "choose the tests that show the bug"


_ROWS = [
    finding(f"{reason}{detail}", reason, detail, hint)
    for reason in (RejectionReason.FLAKY, RejectionReason.ALREADY_GREEN)
    for detail in ("a", "b/1", "b/2")
    for hint in (None, "do it")
]


def test_groups_are_parts_of_all_and_the_largest_come_first() -> None:
    for findings in combinations_with_replacement(_ROWS, 4):
        shared = find_shared_causes(findings, most=1)
        counts = [count for count, _ in shared]
        assert counts in ([], [2], [3], [4])
        assert all(remedy_of(each) for _, each in shared)
        alike = [each for each in findings if shared and cause_of(each) == cause_of(shared[0][1])]
        assert len(alike) == sum(counts)


def test_the_next_command(tmp_path: Path) -> None:
    file = tmp_path / "trialfleet/tasks/mined.yaml"
    file.parent.mkdir(parents=True)
    again = "Next: the same command examines more of the 9 candidates that are left"
    assert list(_next_commands(file, 0, 30, 0)) == []
    assert list(_next_commands(file, 0, 30, 9)) == [again]
    assert [line.split(",")[0] for line in _next_commands(file, 3, 3, 9)] == ["Next: trialfleet init"]
    (tmp_path / "trialfleet/campaign.yaml").touch()
    first, second = _next_commands(file, 2, 3, 9)
    assert first == again
    assert second.startswith("Next: trialfleet power ")
    assert second.endswith("trialfleet/campaign.yaml")
