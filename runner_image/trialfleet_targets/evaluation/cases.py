"""Which of a repository's commits are asked for, and what the right answers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from trialfleet_targets.evaluation import messages
from trialfleet_targets.history import history
from trialfleet_targets.repository import GitError, Repository
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.source_files import LANGUAGES
from trialfleet_targets.testfiles import is_test

MOST_FILES, MOST_LINES, FEWEST_WORDS = 5, 200, 5
ALL_COMMITS = 1_000_000
FAMILIES = {
    suffix: "typescript" if language.value in ("javascript", "typescript") else language.value
    for suffix, language in LANGUAGES.items()
}
"""Suffix -> language; JavaScript and TypeScript, which import each other, are one."""


@dataclass(frozen=True, slots=True)
class Case:
    """`prompt`: the cleaned message of `commit`, to be answered from its `parent` alone. `truth`: the files that
    it modified."""

    repository: str
    language: str
    commit: str
    parent: str
    prompt: str
    truth: tuple[str, ...]

    @property
    def names_a_file(self) -> bool:
        """Whether the message gives one of the files away."""
        return messages.names_a_file(self.prompt, self.truth)


def family(path: str) -> str | None:
    """The language of a source file."""
    return FAMILIES.get(PurePosixPath(path).suffix)


def main_language(paths: Iterable[str]) -> str | None:
    """The language of most files that are no tests; the first by name when they are as many."""
    counts = Counter(found for path in paths if (found := family(path)) and not is_test(path))
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None


def truth(commit: PastCommit, language: str) -> tuple[str, ...] | None:
    """The files that a commit modified, when it may be asked for: 1 to 5 existing source files of the language,
    none added or deleted, by a message of at least 5 words that names no path. Lines are not known here."""
    message = messages.clean(f"{commit.subject}\n{commit.body}")
    source = tuple(path for path in commit.changed if family(path) == language and not is_test(path))
    arrived_or_gone = {*commit.added, *commit.deleted}
    if commit.merge or not 1 <= len(source) <= MOST_FILES or arrived_or_gone.intersection(source):
        return None
    if messages.words(message) < FEWEST_WORDS or messages.names_a_path(message):
        return None
    return source


def cases(repository: Repository, name: str, most: int, *, language: str | None = None) -> list[Case]:
    """The newest commits that may be asked for, newest first. `language`: default is the repository's main one.

    Raises `TargetsError` for a repository without commits.
    """
    head = repository.resolve()
    chosen = language or main_language(entry.path for entry in repository.tree(head))
    if chosen is None:
        return []
    found: list[Case] = []
    for case in _candidates(repository, name, chosen, history(repository, head, max_commits=ALL_COMMITS)):
        if len(found) >= most:
            break
        if _lines(repository, case) <= MOST_LINES:
            found.append(case)
    return found


def _candidates(repository: Repository, name: str, language: str, commits: Sequence[PastCommit]) -> Iterator[Case]:
    for one in commits:
        source = truth(one, language)
        if source is None:
            continue
        try:
            parent = repository.git("rev-parse", "--verify", "--quiet", f"{one.sha}^").decode().strip()
        except GitError:  # the first commit, or where a shallow clone ends
            continue
        yield Case(name, language, one.sha, parent, messages.clean(f"{one.subject}\n{one.body}"), source)


def _lines(repository: Repository, case: Case) -> int:
    """Added and deleted in the true files; more than may be when git cannot count them."""
    try:
        said = repository.git(
            "diff", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "-z", case.parent, case.commit,
            "--", *case.truth,
        )  # fmt: skip
    except GitError:
        return MOST_LINES + 1
    counts = [count for row in said.decode("utf-8", "replace").split("\0") if row for count in row.split("\t")[:2]]
    return sum(int(count) if count.isdigit() else MOST_LINES + 1 for count in counts)
