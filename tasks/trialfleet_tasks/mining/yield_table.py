"""The yield table: from commits to tasks, and what became of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.table import Table
from rich.text import Text

from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.task import TaskSpec
from trialfleet_tasks.mining.findings import MEANING, REMEDIES, MiningFinding, RejectionReason, cause_of
from trialfleet_tasks.mining.mine import CandidateCommits

# Where a candidate stopped: everything that comes later had been reached.
_STAGES: tuple[tuple[str, frozenset[RejectionReason]], ...] = (
    (
        "text for the prompt",
        frozenset({RejectionReason.TELLS_THE_FIX, RejectionReason.NO_ISSUE, RejectionReason.UNREADABLE}),
    ),
    (
        "environment built",
        frozenset(
            {
                RejectionReason.ENVIRONMENT_FAILED,
                RejectionReason.NO_TOOLCHAIN,
                RejectionReason.TOOLCHAIN_TOO_OLD,
                RejectionReason.TOOLCHAIN_TOO_NEW,
                RejectionReason.PRIVATE_PACKAGES,
            }
        ),
    ),
    (
        "passes at the fix",
        frozenset(
            {
                RejectionReason.CANNOT_RUN_AT_FIX,
                RejectionReason.FAILS_AT_FIX,
                RejectionReason.TESTS_LEFT_OUT,
                RejectionReason.NEEDS_NETWORK,
                RejectionReason.TOO_SLOW,
                RejectionReason.TOO_BIG,
                RejectionReason.CHANGES_ONLY_TESTS,
            }
        ),
    ),
    ("fails as a test before", frozenset({RejectionReason.ALREADY_GREEN, RejectionReason.CANNOT_RUN_BEFORE})),
    ("names nothing that only the fix adds", frozenset({RejectionReason.NAMES_WHAT_ONLY_THE_FIX_ADDS})),
    ("same in every run", frozenset({RejectionReason.FLAKY})),
    ("nothing that its tests need holds the fix", frozenset({RejectionReason.HOLDS_THE_FIX})),
    ("kept", frozenset()),
)


def stages(found: CandidateCommits, examined: Sequence[MiningFinding]) -> list[tuple[str, int]]:
    """(Stage, commits that reached it), from all commits to the tasks that were kept."""
    rows = [("commits", found.commits), ("candidates", len(found.chosen)), ("examined", len(examined))]
    left = list(examined)
    for name, stops in _STAGES:
        left = [finding for finding in left if finding.outcome not in stops]
        rows.append((name, len(left)))
    return rows


def reasons(findings: Sequence[MiningFinding]) -> list[tuple[RejectionReason, int, MiningFinding]]:
    """(Reason, how often, the first finding with it), the most frequent first."""
    rejected = [(finding.outcome, finding) for finding in findings if isinstance(finding.outcome, RejectionReason)]
    counts = Counter(reason for reason, _ in rejected)
    first = dict(reversed(rejected))
    return [(reason, number, first[reason]) for reason, number in counts.most_common()]


def describe_lost_tests(tasks: Sequence[TaskSpec]) -> Table:
    """Why tests of the kept tasks' files do not count, how many, and of how many tasks."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("tests of kept tasks that do not count", "tests", "tasks"):
        table.add_column(title, justify="left" if " " in title else "right", overflow="fold")
    tests, named = Counter[str](), Counter[str]()
    for task in tasks:
        tests.update(task.left_out)
        named.update(task.left_out.keys())
    for reason, number in tests.most_common():
        table.add_row(Text(one_line(reason)), str(number), str(named[reason]))
    return table


def find_shared_causes(findings: Sequence[MiningFinding], most: int = 5) -> list[tuple[int, MiningFinding]]:
    """(How often, the first finding), of the causes that two commits or more have and something helps against, the
    most frequent first."""
    rejected = [finding for finding in findings if not finding.kept]
    counts = Counter(map(cause_of, rejected))
    first = {cause_of(finding): finding for finding in reversed(rejected)}
    shared = [(count, first[cause]) for cause, count in counts.most_common() if count > 1]
    return [(count, finding) for count, finding in shared if remedy_of(finding)][:most]


def remedy_of(finding: MiningFinding) -> str | None:
    """The one thing to do about it."""
    usual = REMEDIES.get(finding.outcome) if isinstance(finding.outcome, RejectionReason) else None
    return finding.hint or usual


def summarise_causes(findings: Sequence[MiningFinding]) -> list[str]:
    """Lines that say what most commits failed by, and what helps.

    >>> row = MiningFinding(commit="a", outcome=RejectionReason.TOO_SLOW, detail="it took 61 s")
    >>> summarise_causes([row, row.model_copy(update={"commit": "b", "detail": "it took 62 s"})])
    ['2 commits: too_slow: it took 61 s; fix: give them more time with --timeout']
    """
    return [
        f"{plural(count, 'commit')}: {finding.outcome}: {one_line(finding.detail, 160)}; fix: {remedy_of(finding)}"
        for count, finding in find_shared_causes(findings)
    ]


def by_cutoff(tasks: Sequence[TaskSpec], cutoff: date | None) -> dict[str, int] | None:
    """How many tasks' fixes are older than `cutoff`, when a model's training data ends, and how many are not."""
    if cutoff is None:
        return None
    days = [task.committed for task in tasks if task.committed is not None]
    before = sum(day < cutoff for day in days)
    return {"before": before, "since": len(days) - before}


def age(tasks: Sequence[TaskSpec], cutoff: date | None) -> str | None:
    """When the tasks' fixes were committed, as a sentence; None without a task."""
    days = sorted(task.committed for task in tasks if task.committed is not None)
    if not days:
        return None
    span = f"their fixes were committed from {days[0]} to {days[-1]}"
    split = by_cutoff(tasks, cutoff)
    if split is None:
        return span
    if not split["since"]:
        return f"{span}: all before {cutoff}, so a model with that cut-off may have seen each of them"
    return f"{span}: {split['before']} before {cutoff}, {split['since']} since"


def tables(found: CandidateCommits, examined: Sequence[MiningFinding], logs: Path) -> tuple[Table, Table]:
    """Both as a terminal shows them."""
    funnel = Table(box=None, header_style="bold", pad_edge=False)
    funnel.add_column("yield")
    funnel.add_column("commits", justify="right")
    for name, number in stages(found, examined):
        funnel.add_row(name, str(number))
    why = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("rejected because", "commits", "for example"):
        why.add_column(title, justify="right" if title == "commits" else "left", overflow="fold")
    for reason, number, finding in reasons((*examined, *found.rejected)):
        example = str(logs / finding.log) if finding.log else finding.commit[:12]
        why.add_row(f"{reason.value}: {MEANING[reason]}", str(number), Text(one_line(example)))
    return funnel, why
