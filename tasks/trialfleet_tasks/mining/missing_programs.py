"""Candidates whose packages are installed, or built, by a program that this machine lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.environments.tool_environment import BrokenTool, find_tool
from trialfleet_repository.git import git
from trialfleet_repository.languages.manifest_files import file_in, folders_above
from trialfleet_tasks.mining.findings import MiningFinding, RejectionReason
from trialfleet_tasks.mining.history import CandidateCommit
from trialfleet_tasks.mining.mine import CandidateCommits


def is_program_here(name: str) -> bool:
    """Whether this machine has it, working or not."""
    try:
        find_tool(name)
    except BrokenTool:
        return True
    except OperatorError:
        return False
    return True


def drop_missing_programs(
    found: CandidateCommits, git_dir: Path, is_here: Callable[[str], bool] = is_program_here
) -> CandidateCommits:
    """The candidates whose programs are here; the others are rejected, each with the program that it lacks."""
    missing = dict(_missing(found.chosen, git_dir, is_here))
    chosen = tuple(candidate for candidate in found.chosen if candidate.commit.sha not in missing)
    lacking = [candidate for candidate in found.chosen if candidate.commit.sha in missing]
    rejected = (_rejection(candidate, missing[candidate.commit.sha]) for candidate in lacking)
    return replace(found, chosen=chosen, rejected=(*found.rejected, *rejected))


def _rejection(candidate: CandidateCommit, program: str) -> MiningFinding:
    language = candidate.language
    return MiningFinding(
        commit=candidate.commit.sha,
        language=language.name,
        outcome=RejectionReason.NO_TOOLCHAIN,
        detail=f"there is no program {program} on this machine",
        hint=language.installs.get(program, f"install {program} and put it on PATH"),
    )


def _missing(
    candidates: Sequence[CandidateCommit], git_dir: Path, is_here: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """(Commit, program) where no file at or above the tests is for a program that is here."""
    wanted = {candidate.commit.sha: tuple(_files(candidate)) for candidate in candidates}
    names = [(sha, file) for sha, files in wanted.items() for file in files]
    parents = {candidate.commit.sha: candidate.commit.parent for candidate in candidates}
    asked = "".join(f"{parents[sha]}:{file}\n" for sha, file in names)
    answers = (
        git(("cat-file", "--batch-check"), git_dir=git_dir, stdin=asked.encode()).splitlines() if names else []
    )
    there = {name for name, answer in zip(names, answers, strict=True) if b" blob " in answer}
    here: dict[str, bool] = {}
    for candidate in candidates:
        sha = candidate.commit.sha
        programs = [_program_of(candidate, file) for file in wanted[sha] if (sha, file) in there]
        for program in programs:
            here.setdefault(program, is_here(program))
        if programs and not any(here[program] for program in programs):
            yield sha, programs[0]


def _files(candidate: CandidateCommit) -> Iterator[str]:
    """Where files may be that name programs, the nearest to its tests first."""
    for folder in folders_above(candidate.tests[0].rpartition("/")[0] or "."):
        yield from (file_in(folder, name) for name in candidate.language.program_of)


def _program_of(candidate: CandidateCommit, file: str) -> str:
    return candidate.language.program_of[file.rpartition("/")[2]]


def count_missing(found: CandidateCommits) -> Mapping[MiningFinding, int]:
    """The first rejection for each program that is lacking, and how many commits it costs."""
    lacking = [row for row in found.rejected if row.outcome is RejectionReason.NO_TOOLCHAIN and row.detail]
    first = {(row.language, row.detail): row for row in reversed(lacking)}
    return {row: sum((each.language, each.detail) == key for each in lacking) for key, row in first.items()}
