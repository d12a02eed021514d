"""Selects the commits of a repository that serve as evaluation cases, and their true files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from trialfleet_targets.history import history
from trialfleet_targets.repository import Repository, RepositoryError
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.syntax_facts import LANGUAGES
from trialfleet_targets.testfiles import is_test

MAX_FILES, MAX_LINES, MIN_WORDS = 5, 200, 5
ALL_COMMITS = 1_000_000
FAMILIES = {
    suffix: "typescript" if language.value in ("javascript", "typescript") else language.value
    for suffix, language in LANGUAGES.items()
}
"""Suffix -> language; JavaScript and TypeScript, which import each other, are one."""

_TRAILER = re.compile(
    r"^\s*(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|change-id|cc|fixes|closes|resolves|refs?|see"
    r"|pr|backport|bug|issue)\b[^\n]{0,12}[:#].*$|^\(cherry picked from.*$|^git-svn-id.*$",
    re.I | re.M,
)
_ADDRESS = re.compile(r"https?://\S+|\S+@\S+\.\S+")
_NUMBER = re.compile(r"\(?(?:GH-?|PR ?|[\w.-]+/[\w.-]+)?#\d+\)?")
_COMMIT = re.compile(r"\b[0-9a-f]{7,64}\b")
_PATH = re.compile(
    r"\w\.(?:pyi?|tsx?|jsx?|mjs|cjs|mts|cts|go|rs|java)\b|\b[\w.-]+/[\w.-]+/[\w.-]+|\b[\w-]+/[\w-]+\.\w+"
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class EvaluationCase:
    """`prompt`: the cleaned message of `commit`, to be answered from its `parent` alone. `truth`: the files that
    it modified."""

    repository: str
    language: str
    commit: str
    parent: str
    prompt: str
    truth: tuple[str, ...]


def family(path: str) -> str | None:
    """The language of a source file."""
    return FAMILIES.get(PurePosixPath(path).suffix)


def main_language(paths: Iterable[str]) -> str | None:
    """The language of most files that are no tests; the first by name when they are as many."""
    counts = Counter(found for path in paths if (found := family(path)) and not is_test(path))
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None


def truth(commit: PastCommit, language: str) -> tuple[str, ...] | None:
    """The files that a commit modified, when it qualifies: 1 to 5 existing source files of the language, none
    added or deleted, and a message of at least 5 words that names no path. Changed lines are checked elsewhere."""
    message = clean(f"{commit.subject}\n{commit.body}")
    source = tuple(path for path in commit.changed if family(path) == language and not is_test(path))
    arrived_or_gone = {*commit.added, *commit.deleted}
    if commit.merge or not 1 <= len(source) <= MAX_FILES or arrived_or_gone.intersection(source):
        return None
    if len(_WORD.findall(message)) < MIN_WORDS or names_a_path(message):
        return None
    return source


def cases(repository: Repository, name: str, most: int, *, language: str | None = None) -> list[EvaluationCase]:
    """The newest commits that qualify, newest first. `language`: default is the repository's main one.

    Raises `TargetsError` for a repository without commits.
    """
    head = repository.resolve()
    chosen = language or main_language(entry.path for entry in repository.tree(head))
    if chosen is None:
        return []
    found: list[EvaluationCase] = []
    for case in _candidates(repository, name, chosen, history(repository, head, max_commits=ALL_COMMITS)):
        if len(found) >= most:
            break
        if _lines(repository, case) <= MAX_LINES:
            found.append(case)
    return found


def _candidates(
    repository: Repository, name: str, language: str, commits: Sequence[PastCommit]
) -> Iterator[EvaluationCase]:
    for one in commits:
        source = truth(one, language)
        if source is None:
            continue
        try:
            parent = repository.git("rev-parse", "--verify", "--quiet", f"{one.sha}^").decode().strip()
        except RepositoryError:  # the first commit, or where a shallow clone ends
            continue
        yield EvaluationCase(name, language, one.sha, parent, clean(f"{one.subject}\n{one.body}"), source)


def _lines(repository: Repository, case: EvaluationCase) -> int:
    """Added and deleted in the true files; more than may be when git cannot count them."""
    try:
        output = repository.git(
            "diff", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "-z", case.parent, case.commit,
            "--", *case.truth,
        )  # fmt: skip
    except RepositoryError:
        return MAX_LINES + 1
    counts = [
        count for row in output.decode("utf-8", "replace").split("\0") if row for count in row.split("\t")[:2]
    ]
    return sum(int(count) if count.isdigit() else MAX_LINES + 1 for count in counts)


def clean(message: str) -> str:
    """Without trailers, addresses, numbers of issues and names of commits.

    >>> clean("fix: keep the cookie (#12)\\n\\nFixes: #9\\nSigned-off-by: A <a@b.c>")
    'fix: keep the cookie'
    """
    text = _TRAILER.sub(" ", message)
    for what in (_ADDRESS, _NUMBER, _COMMIT):
        text = what.sub(" ", text)
    return re.sub(r"[ \t]+", " ", re.sub(r"\s*\n\s*", "\n", text)).strip()


def names_a_path(message: str) -> bool:
    """
    >>> names_a_path("fix src/app.py"), names_a_path("Fix the router and/or the cookie")
    (True, False)
    """
    return _PATH.search(message) is not None
