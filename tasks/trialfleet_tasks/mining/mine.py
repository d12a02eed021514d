"""Mines a repository: candidates from its history, each examined by running, until there are enough tasks."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_repository.git import git
from trialfleet_repository.languages import PYTHON, Language
from trialfleet_tasks.mining.examine import Miner
from trialfleet_tasks.mining.findings import MiningFinding, RejectionReason, cause_of
from trialfleet_tasks.mining.history import CandidateCommit, CandidateRules, HistoryCommit, judge, spread, undone
from trialfleet_tasks.mining.state import MiningState


@dataclass(frozen=True)
class CandidateCommits:
    """`chosen`: in the order in which they are examined. `rejected`: the other commits, which are not run."""

    commits: int
    chosen: tuple[CandidateCommit, ...]
    rejected: tuple[MiningFinding, ...]


_NOT_IN_THESE = (RejectionReason.NO_SOURCE, RejectionReason.NO_TESTS)


def candidates(
    commits: Sequence[HistoryCommit],
    languages: Collection[Language],
    rules: CandidateRules,
    git_dir: Path,
    *,
    lacking: Collection[Language] = (),
) -> CandidateCommits:
    """By names and numbers of lines, without those that were undone or stand twice in the history. `lacking`:
    languages whose tests this machine cannot run."""
    gone = undone(commits)
    found: list[CandidateCommit] = []
    rejected: list[MiningFinding] = []
    for commit in commits:
        judged = RejectionReason.UNDONE if commit.sha in gone else judge(commit, languages, rules)
        if isinstance(judged, RejectionReason):
            rejected.append(_rejection(commit, judged, lacking, rules))
        else:
            found.append(judged)
    chosen: list[CandidateCommit] = []
    seen: set[str] = set()
    for candidate in found:
        patch = _patch_id(git_dir, candidate.commit)
        if patch in seen:
            rejected.append(MiningFinding(commit=candidate.commit.sha, outcome=RejectionReason.DUPLICATE))
        else:
            seen.add(patch)
            chosen.append(candidate)
    return CandidateCommits(len(commits), tuple(spread(chosen)), tuple(rejected))


def _rejection(
    commit: HistoryCommit, reason: RejectionReason, lacking: Collection[Language], rules: CandidateRules
) -> MiningFinding:
    """With the language, where only its tools are lacking."""
    verdict = judge(commit, lacking, rules) if reason in _NOT_IN_THESE else reason
    if isinstance(verdict, CandidateCommit):
        name = verdict.language.name
        return MiningFinding(commit=commit.sha, language=name, outcome=RejectionReason.NO_TOOLCHAIN)
    return MiningFinding(commit=commit.sha, outcome=reason)


def _patch_id(git_dir: Path, commit: HistoryCommit) -> str:
    """git's digest of the change without its place."""
    diff = git(("diff-tree", "-p", "--no-color", "--no-ext-diff", commit.parent, commit.sha), git_dir=git_dir)
    return git(("patch-id", "--stable"), git_dir=git_dir, stdin=diff).decode().partition(" ")[0] or commit.sha


@dataclass(frozen=True)
class MiningLimits:
    """When mining stops, and what it examines once more. `minutes` None: no limit. `again`: commits that were
    rejected for these reasons."""

    want: int
    jobs: int
    minutes: float | None
    again: frozenset[RejectionReason] = frozenset()


LATEST = 1.25  # times the time that mining may take, until commits under examination are given up
IN_A_ROW = 8
_OF_ALL = frozenset(
    {
        *(RejectionReason.ENVIRONMENT_FAILED, RejectionReason.CANNOT_RUN_AT_FIX, RejectionReason.NO_TOOLCHAIN),
        *(RejectionReason.TOOLCHAIN_TOO_OLD, RejectionReason.TOOLCHAIN_TOO_NEW, RejectionReason.PRIVATE_PACKAGES),
        *(RejectionReason.NEEDS_NETWORK, RejectionReason.TESTS_LEFT_OUT),
    }
)
MiningProgress = Callable[[dict[str, str]], None]  # commit -> what is done with it now


def open_candidates(
    chosen: Sequence[CandidateCommit], state: MiningState, again: Collection[RejectionReason]
) -> list[CandidateCommit]:
    """What is to be examined: what never was, then what failed for a reason outside of the commit or for one of
    `again`."""
    findings = [(candidate, state.finding(candidate.commit.sha)) for candidate in chosen]
    once_more = [one for one, finding in findings if finding and (finding.temporary or finding.outcome in again)]
    return [one for one, finding in findings if finding is None] + once_more


@dataclass(frozen=True)
class MiningEnd:
    """`given_up`: commits under examination when the time was over; their threads still run. `repeated`: by
    language, the finding of so many commits in a row that no more were begun."""

    given_up: int
    repeated: Mapping[str, MiningFinding]


@dataclass
class _Streaks:
    """Findings of one cause in a row, by language."""

    last: dict[str, tuple[tuple[str, str], int]] = field(default_factory=dict[str, tuple[tuple[str, str], int]])
    repeated: dict[str, MiningFinding] = field(default_factory=dict[str, MiningFinding])

    def add(self, finding: MiningFinding) -> None:
        language, cause = finding.language or PYTHON.name, cause_of(finding)
        before, count = self.last.get(language, (cause, 0))
        self.last[language] = (cause, count + 1 if before == cause else 1)
        if finding.outcome in _OF_ALL and self.last[language][1] >= IN_A_ROW:
            self.repeated[language] = finding


class _Examination:
    """The commits that are being examined. Its threads share it."""

    def __init__(self, miner: Miner, state: MiningState, jobs: int, progress: MiningProgress) -> None:
        self.miner, self.state, self.progress = miner, state, progress
        self.pool = ThreadPoolExecutor(jobs, thread_name_prefix="mine")
        self.running: set[Future[MiningFinding]] = set()
        self._doing: dict[str, str] = {}
        self._turn = threading.Lock()

    def begin(self, candidate: CandidateCommit) -> None:
        self.running.add(self.pool.submit(self._examine, candidate))

    def ended(self, until: float | None) -> list[MiningFinding]:
        """The next findings; none if that time comes first."""
        timeout = None if until is None else max(0.0, until - time.monotonic())
        done, self.running = wait(self.running, timeout, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def _examine(self, candidate: CandidateCommit) -> MiningFinding:
        commit = candidate.commit.sha
        before = self.state.finding(commit)

        def say(step: str | None) -> None:
            with self._turn:
                self._doing.pop(commit, None)
                self._doing |= {commit: step} if step else {}
                self.progress(dict(self._doing))

        finding, task = self.miner.examine(candidate, say)
        if before is not None and finding.outcome == before.outcome == RejectionReason.TOO_SLOW:
            finding = finding.model_copy(update={"temporary": False})  # it always waits
        self.state.add(finding, task)
        say(None)
        return finding


def run(
    mine: Miner,
    chosen: Sequence[CandidateCommit],
    state: MiningState,
    limits: MiningLimits,
    progress: MiningProgress,
    interrupted: Callable[[int], None],
) -> MiningEnd:
    """Examine candidates until `limits.want` of them are kept, the time is over, none is left or the user
    interrupts it: `interrupted` is called with the number that are being examined. Each finding is in `state` as
    soon as it is known; candidates that are being examined at the end are finished, but for `LATEST` of the time
    at most. A language is left after `IN_A_ROW` findings of one cause that all its commits may have."""
    started, minutes = time.monotonic(), limits.minutes
    until = math.inf if minutes is None else started + minutes * 60
    latest = None if minutes is None else started + LATEST * minutes * 60
    todo = open_candidates(chosen, state, limits.again)
    order = [candidate.commit.sha for candidate in chosen]
    examination, streaks = _Examination(mine, state, limits.jobs, progress), _Streaks()
    while True:
        todo = [candidate for candidate in todo if candidate.language.name not in streaks.repeated]
        enough = sum(finding.kept for finding in state.findings(order)) >= limits.want
        while todo and not enough and len(examination.running) < limits.jobs and time.monotonic() < until:
            examination.begin(todo.pop(0))
        if not examination.running:
            break
        try:
            findings = examination.ended(latest)
        except KeyboardInterrupt:
            todo = []
            interrupted(len(examination.running))
            continue
        for finding in findings:
            streaks.add(finding)
        if not findings:
            break
    examination.pool.shutdown(wait=not examination.running, cancel_futures=True)
    return MiningEnd(len(examination.running), streaks.repeated)
