"""Commits of a repository, read with git, and the rule that makes some of them candidates for tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path, PurePosixPath

from trialfleet_agents.context_files import is_context_file
from trialfleet_git.view import GitRepository, source_folder
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.git import GitError, git, locate_repository
from trialfleet_repository.languages import Language, is_test_path
from trialfleet_tasks.mining.findings import RejectionReason
from trialfleet_tasks.mining.incomplete_history import find_readable_changes
from trialfleet_tasks.sources.commit_date import parse_commit_date

_HEAD = "\x01"  # no row of numbers begins with it
_FORMAT = "%x01%H%x01%P%x01%ct%x01%cd"  # the raw date ends with the zone; beyond 64 bits its seconds are 0
_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{7,64})", re.MULTILINE)
_BESIDE = re.compile(
    r"(?:^|/)(?:examples?|docs?|demos?|samples?|benchmarks?)/|^(?:noxfile|setup|tasks|fabfile|conf)\.py$",
    re.IGNORECASE,
)
_LINES_OF_BINARY = 10**6  # a changed binary file is never a small change


@dataclass(frozen=True)
class FileChange:
    """One file of a commit: the numbers of its added and removed lines."""

    path: str
    added: int
    removed: int = 0

    @property
    def lines(self) -> int:
        return self.added + self.removed


@dataclass(frozen=True)
class HistoryCommit:
    """A commit with one parent. `committed`: the day where it was committed; None where it has no date that can be
    read. `whole`: the clone has the files that it changes; of others, `changes` has no numbers of lines."""

    sha: str
    parent: str
    committed: date | None
    message: str
    changes: tuple[FileChange, ...]
    whole: bool = True

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]

    @property
    def is_revert(self) -> bool:
        """Whether the commit as a whole reverts another, as git words it."""
        return self.subject.startswith('Revert "') and _REVERTS.search(self.message) is not None


@dataclass(frozen=True)
class CandidateRules:
    """Which commits may become tasks. `paths`: folders or files, one of which a source file must be or lie in."""

    source_files: int = 5
    source_lines: int = 200
    paths: tuple[str, ...] = ()
    grep: str | None = None


@dataclass(frozen=True)
class CandidateCommit:
    """A commit that changes source and tests of one language. `source`: what it changes most first, and what is
    `is_beside` last. `support`: further files of the tests, such as data."""

    commit: HistoryCommit
    language: Language
    source: tuple[str, ...]
    tests: tuple[str, ...]
    support: tuple[str, ...]

    @property
    def area(self) -> str:
        """The folder of its first source file, at most three levels deep.

        >>> from trialfleet_repository.languages import PYTHON
        >>> change = FileChange("src/shop/cart/total.py", 3)
        >>> commit = HistoryCommit("a", "b", date(2025, 1, 1), "", (change,))
        >>> CandidateCommit(commit, PYTHON, (change.path,), (), ()).area
        'src/shop/cart'
        """
        return "/".join(PurePosixPath(self.source[0]).parts[:-1][:3]) or "."


def is_beside(path: str) -> bool:
    """Whether a source file shows how code is used, or serves its development, and is none of the product.

    >>> [is_beside(path) for path in ("examples/shop/a.py", "noxfile.py", "src/docs.py", "src/noxfile.py")]
    [True, True, False, False]
    """
    return _BESIDE.search(path) is not None


def open_repository(folder: Path) -> GitRepository:
    """The repository of a work tree, or a bare clone. Raises `OperatorError` where there is no whole history."""
    try:
        repository = locate_repository(folder)
    except GitError as error:
        raise OperatorError(
            f"this is not a git repository: {error}", where=str(folder), hint="name a clone of the repository"
        ) from None
    if repository.shallow:
        raise OperatorError(
            "this is a shallow clone: most of its history is missing",
            where=str(folder),
            hint=f"deepen it: git -C {folder} fetch --unshallow",
        )
    return repository


def resolve(git_dir: Path, name: str) -> str:
    """The commit of a branch, tag or `HEAD`. Raises `OperatorError` when there is none."""
    try:
        wanted = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return git(wanted, git_dir=git_dir).decode().split()[-1]
    except GitError:
        raise OperatorError(
            f"there is no commit {name!r}",
            where=str(source_folder(git_dir)),
            hint="commit something first, or name a branch, a tag or a commit",
        ) from None


def read_commits(
    git_dir: Path, *, head: str = "HEAD", since: str | None = None, until: str | None = None, limit: int = 3000
) -> tuple[HistoryCommit, ...]:
    """The newest commits, merges left out, newest first. `since`, `until`: dates as git reads them. A clone may
    lack files on purpose (`git clone --filter`): commits that change these are not `whole`.

    Raises `OperatorError` when there is no such commit, or the history cannot be read.
    """
    resolve(git_dir, head)
    args = ["log", "--no-merges", "--no-renames", "-z", f"--max-count={limit}"]
    args += [f"--{name}={value}" for name, value in (("since", since), ("until", until)) if value]
    end = ("--end-of-options", head, "--")
    dated = ("--date=raw", f"--format={_FORMAT}")
    try:
        messages = git((*args, "--format=%H %B", *end), git_dir=git_dir)
        texts = dict(row.split(" ", 1) for row in _rows(messages) if " " in row)
        try:
            return tuple(_commits(_rows(git((*args, "--numstat", *dated, *end), git_dir=git_dir)), texts))
        except GitError:
            return _read_incomplete(git_dir, _rows(git((*args, *dated, *end), git_dir=git_dir)), texts)
    except GitError as error:
        raise OperatorError(
            f"the history cannot be read: {error}",
            where=f"{source_folder(git_dir)}: {head}",
            hint="use a full clone, or read fewer commits (--commits)",
        ) from None


def _read_incomplete(git_dir: Path, rows: Sequence[str], texts: Mapping[str, str]) -> tuple[HistoryCommit, ...]:
    """`rows`: of all commits, without their changes."""
    commits = tuple(_commits(rows, texts))
    readable = find_readable_changes(git_dir, [commit.sha for commit in commits])
    how = ("log", "--no-walk=unsorted", "--stdin", "--no-renames", "-z", "--numstat", "--date=raw")
    asked = "".join(f"{sha}\n" for sha in readable.whole).encode()
    facts = git((*how, f"--format={_FORMAT}"), git_dir=git_dir, stdin=asked) if asked else b""
    whole = {commit.sha: commit for commit in _commits(_rows(facts), texts)}
    return tuple(
        whole.get(each.sha) or _without_numbers(each, readable.paths.get(each.sha, ())) for each in commits
    )


def _without_numbers(commit: HistoryCommit, paths: Iterable[str]) -> HistoryCommit:
    changes = tuple(FileChange(path, _LINES_OF_BINARY, _LINES_OF_BINARY) for path in paths)
    return replace(commit, changes=changes, whole=False)


def _rows(output: bytes) -> list[str]:
    """What git separates by NUL, which neither a message nor a path can hold."""
    return output.decode("utf-8", "surrogateescape").split("\0")


def _commits(rows: Iterable[str], texts: Mapping[str, str]) -> Iterator[HistoryCommit]:
    found: list[tuple[list[str], list[FileChange]]] = []
    for row in rows:
        if row.startswith(_HEAD):
            found.append((row.removeprefix(_HEAD).split(_HEAD), []))
            continue
        added, _, rest = row.removeprefix("\n").partition("\t")
        removed, tab, path = rest.partition("\t")
        if tab and found:
            counts = (
                (int(added), int(removed)) if added.isdigit() and removed.isdigit() else (_LINES_OF_BINARY,) * 2
            )
            found[-1][1].append(FileChange(path, *counts))
    for (sha, parents, seconds, stamp), changes in found:
        if parents and " " not in parents:
            committed = parse_commit_date(seconds, stamp.rpartition(" ")[2])
            yield HistoryCommit(sha, parents, committed, texts.get(sha, "").strip(), tuple(changes))


@dataclass(frozen=True)
class _LanguageChanges:
    """What a commit changes of one language."""

    language: Language
    source: tuple[FileChange, ...]
    tests: tuple[str, ...]

    @property
    def lines(self) -> int:
        return sum(change.lines for change in self.source)


def judge(
    commit: HistoryCommit, languages: Iterable[Language], rules: CandidateRules
) -> CandidateCommit | RejectionReason:
    """The candidate that the commit is, or why it is none. Pure: by names and numbers of lines. If it changes
    source and tests of several languages, the one with the most changed lines of source counts."""
    if not commit.whole:
        return RejectionReason.UNREADABLE
    changes = [found for one in languages if (found := _changes(commit, one)).source]
    if not changes:
        return RejectionReason.NO_SOURCE
    tested = [found for found in changes if found.tests]
    if not tested:
        return RejectionReason.NO_TESTS
    if any("\ufffd" in path or not path.isprintable() for path in (c.path for c in commit.changes)):
        return RejectionReason.UNUSUAL_PATHS
    chosen = max(tested, key=lambda found: found.lines)
    excluded = _excluded(commit, chosen, rules)
    if excluded is not None:
        return excluded
    largest = sorted(chosen.source, key=lambda change: (is_beside(change.path), -change.lines))
    support = _support(commit, chosen.language, chosen.tests)
    return CandidateCommit(commit, chosen.language, tuple(c.path for c in largest), chosen.tests, support)


def _excluded(commit: HistoryCommit, changes: _LanguageChanges, rules: CandidateRules) -> RejectionReason | None:
    """The rule that the commit breaks."""
    if len(changes.source) > rules.source_files or changes.lines > rules.source_lines:
        return RejectionReason.TOO_LARGE
    if rules.paths and not any(_below(change.path, rules.paths) for change in changes.source):
        return RejectionReason.OTHER_PATHS
    if rules.grep and not re.search(rules.grep, commit.message, re.IGNORECASE):
        return RejectionReason.OTHER_MESSAGE
    return None


def _changes(commit: HistoryCommit, language: Language) -> _LanguageChanges:
    changes = _in_workspaces(commit)
    source = tuple(change for change in changes if language.is_source(change.path))
    return _LanguageChanges(language, source, language.test_modules(change.path for change in changes))


def _in_workspaces(commit: HistoryCommit) -> tuple[FileChange, ...]:
    """Without what every workspace lacks: agents' instructions, and the scripts and tests of their skills."""
    return tuple(change for change in commit.changes if not is_context_file(change.path))


def _support(commit: HistoryCommit, language: Language, tests: tuple[str, ...]) -> tuple[str, ...]:
    """Files that only tests use and that are no modules of tests themselves."""
    paths = (change.path for change in _in_workspaces(commit))
    return tuple(p for p in paths if is_test_path(p) and p not in tests and not language.is_foreign(p))


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def undone(commits: Iterable[HistoryCommit]) -> frozenset[str]:
    """Commits that a later one reverts, and those that revert one. A message alone does not decide: one that only
    quotes a revert, as the body of a squashed commit does, must have the opposite changes."""
    gone: set[str] = set()
    known = {commit.sha: commit for commit in commits}
    for commit in known.values():
        for short in _REVERTS.findall(commit.message):
            earlier = [known[sha] for sha in known if sha.startswith(short)]
            undoes = [other for other in earlier if _undoes(commit, other)]
            gone |= {other.sha for other in undoes}
            if commit.is_revert or any(_paths(commit) <= _paths(other) for other in undoes):
                gone.add(commit.sha)
    return frozenset(gone)


def _undoes(commit: HistoryCommit, earlier: HistoryCommit) -> bool:
    """Whether each file has the opposite change; of a plain revert, whose conflicts may have been resolved by
    hand, whether it changes most of the files."""
    shared = len(_paths(commit) & _paths(earlier))
    if commit.is_revert:
        return 2 * shared > len(earlier.changes)
    opposite = {(change.path, change.removed, change.added) for change in commit.changes}
    return shared > 0 and {(change.path, change.added, change.removed) for change in earlier.changes} <= opposite


def _paths(commit: HistoryCommit) -> frozenset[str]:
    return frozenset(change.path for change in commit.changes)


def spread(candidates: Iterable[CandidateCommit]) -> list[CandidateCommit]:
    """The candidates in the order in which they are examined: the newest of each area, then the next of each."""
    areas: dict[str, list[CandidateCommit]] = {}
    for candidate in candidates:
        areas.setdefault(candidate.area, []).append(candidate)
    rows = [(place, number, c) for number, area in enumerate(areas.values()) for place, c in enumerate(area)]
    return [candidate for _, _, candidate in sorted(rows, key=lambda row: row[:2])]
