"""Mines a repository: candidates from its history, each examined by running, until there are enough tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trialfleet_repository.git import git
from trialfleet_repository.languages import Language
from trialfleet_tasks.mining.examine import Miner
from trialfleet_tasks.mining.findings import MiningFinding, RejectionReason
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


MiningProgress = Callable[[dict[str, str]], None]  # commit -> what is done with it now


def open_candidates(
    chosen: Sequence[CandidateCommit], state: MiningState, again: Collection[RejectionReason]
) -> list[CandidateCommit]:
    """What is to be examined: what never was, then what failed for a reason outside of the commit or for one of
    `again`."""
    findings = [(candidate, state.finding(candidate.commit.sha)) for candidate in chosen]
    once_more = [one for one, finding in findings if finding and (finding.temporary or finding.outcome in again)]
    return [one for one, finding in findings if finding is None] + once_more


def run(
    mine: Miner,
    chosen: Sequence[CandidateCommit],
    state: MiningState,
    limits: MiningLimits,
    progress: MiningProgress,
    interrupted: Callable[[int], None],
) -> None:
    """Examine candidates until `limits.want` of them are kept, the time is over, none is left or the user
    interrupts it: `interrupted` is called with the number that are being examined. Each finding is in `state` as
    soon as it is known; candidates that are being examined at the end are finished."""
    until = None if limits.minutes is None else time.monotonic() + limits.minutes * 60
    todo = iter(open_candidates(chosen, state, limits.again))
    order = [candidate.commit.sha for candidate in chosen]
    doing: dict[str, str] = {}
    turn = threading.Lock()

    @contextmanager
    def shown(commit: str) -> Generator[Callable[[str], None]]:
        def say(step: str) -> None:
            with turn:
                doing[commit] = step
                progress(dict(doing))

        yield say
        with turn:
            doing.pop(commit, None)
            progress(dict(doing))

    def examine(candidate: CandidateCommit) -> None:
        commit = candidate.commit.sha
        before = state.finding(commit)
        with shown(commit) as say:
            finding, task = mine.examine(candidate, say)
            if before is not None and finding.outcome == before.outcome == RejectionReason.TOO_SLOW:
                finding = finding.model_copy(update={"temporary": False})  # it always waits
            state.add(finding, task)

    def enough() -> bool:
        return sum(finding.kept for finding in state.findings(order)) >= limits.want

    with ThreadPoolExecutor(limits.jobs, thread_name_prefix="mine") as pool:
        running: set[Future[None]] = set()
        late = False
        while True:
            late = late or (until is not None and time.monotonic() >= until)
            while not late and len(running) < limits.jobs and not enough():
                candidate = next(todo, None)
                if candidate is None:
                    break
                running.add(pool.submit(examine, candidate))
            if not running:
                return
            try:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                late = True
                interrupted(len(running))
                continue
            for future in ended:
                future.result()
