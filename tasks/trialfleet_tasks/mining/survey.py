"""What a repository is made of, as far as a campaign on it needs to know: read from one commit, nothing runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import cast

from trialfleet_agents.context_files import COPIES, leftovers
from trialfleet_agents.instruction_pages import find_pages
from trialfleet_agents.own_context import OwnContext
from trialfleet_git.view import source_folder
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.git import GitError
from trialfleet_repository.languages import LANGUAGES, is_foreign, is_test_path
from trialfleet_repository.languages.python import is_workflow
from trialfleet_repository.languages.python.distribution import is_setup_script
from trialfleet_repository.trees import Tree, follow_links
from trialfleet_tasks.foreign_yaml import parse_foreign_yaml
from trialfleet_tasks.mining.declared_call import DeclaredCall
from trialfleet_tasks.mining.declared_command import declared_command
from trialfleet_tasks.mining.history import CandidateCommit, CandidateRules, judge, read_commits
from trialfleet_tasks.sources.git import read_tree
from trialfleet_tasks.sources.own_context import read_commit_context

# Of languages whose tests are not run here
_OTHERS = {".c": "C", ".cpp": "C++", ".cs": "C#", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift"}
_TEST_COMMAND = re.compile(
    r"\b(?:make|just|task|hatch)(?: run)? (?:\S*tests?\b|check\b)|\}\} test\b"  # the last: the tool in a variable
    r"|(?:^|[\s/])(?:scripts?|bin|ci)/(?:run[-_])?tests?\b"
)
MANY = 200  # of anything that is listed


class RepositorySurvey(Frozen):
    """`languages`: files by language, most first. `call_given`, `call_lacks`: of the command by which a Python
    project calls its tests, what mining uses, and what it cannot use. `pages`: named as context files are, where
    no agent reads them. `leaving_links`: context files that are links out of the repository. `candidates`: commits
    that mining would examine, by language, most first. `first`, `last`: dates of the oldest and the newest commit
    that was read."""

    commit: str
    files: int
    languages: dict[str, int]
    packages: tuple[str, ...]
    locks: tuple[str, ...]
    test_runners: tuple[str, ...]
    ci_test_commands: tuple[str, ...]
    call_given: tuple[str, ...] = ()
    call_lacks: tuple[str, ...] = ()
    context_files: tuple[str, ...]
    other_instructions: tuple[str, ...]
    pages: tuple[str, ...] = ()
    leaving_links: tuple[str, ...] = ()
    commits: int
    candidates: dict[str, int]
    first: date | None
    last: date | None


def survey(git_dir: Path, commit: str, *, commits: int) -> tuple[RepositorySurvey, Tree]:
    """The survey, and the repository's context. `commits`: how far back the history is read.

    Raises `OperatorError` when the commit is incomplete.
    """
    whole = read_tree(git_dir, commit, where=str(source_folder(git_dir)))
    tree = {path: entry for path, entry in whole.items() if not path.startswith(COPIES)}
    history = read_commits(git_dir, head=commit, limit=commits)
    judged = [judge(each, LANGUAGES.values(), CandidateRules()) for each in history]
    candidates = Counter(found.language.name for found in judged if isinstance(found, CandidateCommit))
    dates = sorted(each.committed for each in history if each.committed is not None)
    pages = find_pages(tree)
    own = _read_context(git_dir, commit)
    context = follow_links(own.tree)
    languages = _count_languages(tree)
    call = (declared_command(tree) if "Python" in languages else None) or DeclaredCall("")
    survey = RepositorySurvey(
        commit=commit,
        files=len(tree),
        languages=dict(languages.most_common()),
        packages=tuple(path for path in _named(tree, _manifest_names()) if _is_manifest(tree, path)),
        locks=_named(tree, {name for language in LANGUAGES.values() for name in language.survey.locks}),
        test_runners=tuple(sorted(_test_runners(tree))),
        ci_test_commands=_ci_test_commands(tree),
        call_given=call.given[:MANY],
        call_lacks=call.refused[:MANY],
        context_files=tuple(sorted(context))[:MANY],
        other_instructions=tuple(path for path in leftovers(tree) if path not in context and path not in pages)[
            :MANY
        ],
        pages=tuple(sorted(pages))[:MANY],
        leaving_links=own.leaving[:MANY],
        commits=len(history),
        candidates=dict(candidates.most_common()),
        first=dates[0] if dates else None,
        last=dates[-1] if dates else None,
    )
    return survey, own.tree


def _read_context(git_dir: Path, commit: str) -> OwnContext:
    try:
        return read_commit_context(git_dir, commit)
    except GitError as error:
        raise OperatorError(
            f"the context files of commit {commit[:12]} cannot be read: {error}",
            where=str(source_folder(git_dir)),
            hint="use a full clone, whose files that agents read are no more than 16 MiB",
        ) from None


def _count_languages(tree: Tree) -> Counter[str]:
    """Files by language."""
    known = dict(_OTHERS)
    for language in LANGUAGES.values():
        known.update(language.survey.names)
    suffixes = (PurePosixPath(path).suffix for path in tree if not is_foreign(path))
    return Counter(known[suffix] for suffix in suffixes if suffix in known)


def _manifest_names() -> set[str]:
    return {name for language in LANGUAGES.values() for name in language.survey.manifests}


def _is_aside(path: str) -> bool:
    """Whether it is no part of the project itself: vendored, generated, or data of tests."""
    return is_foreign(path) or is_test_path(path)


def _named(tree: Tree, names: set[str]) -> tuple[str, ...]:
    paths = (path for path in tree if path.rpartition("/")[2] in names and not _is_aside(path))
    return tuple(sorted(paths, key=lambda path: (path.count("/"), path)))[:MANY]


def _is_manifest(tree: Tree, path: str) -> bool:
    return not path.endswith("setup.py") or is_setup_script(tree, path)


def _test_runners(tree: Tree) -> set[str]:
    found: set[str] = set()
    for path, entry in tree.items():
        name = path.rpartition("/")[2]
        if _is_aside(path) and name != "conftest.py":
            continue
        for language in LANGUAGES.values():
            found.update(language.survey.test_runners(name, entry.data))
    return found


def _ci_test_commands(tree: Tree) -> tuple[str, ...]:
    """Lines of CI's files that run tests, each once."""
    found: dict[str, None] = {}
    for path, entry in sorted(tree.items()):
        if is_workflow(path):
            lines = _commands(parse_foreign_yaml(entry.data))
            found |= dict.fromkeys(line for line in lines if _runs_tests(line))
    return tuple(found)[:MANY]


def _runs_tests(line: str) -> bool:
    patterns = (_TEST_COMMAND, *(language.survey.test_command for language in LANGUAGES.values()))
    return any(pattern.search(line) for pattern in patterns)


def _commands(root: object) -> list[str]:
    """Lines of every `run` and `script`. A part that aliases repeat is looked at once."""
    found: list[str] = []
    seen: set[int] = set()
    todo: list[object] = [root]
    while todo:
        node = todo.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        table = mapping(node)
        for value in (table.get("run"), table.get("script")):
            texts = [text for text in (value, *_items(value)) if isinstance(text, str)]
            found += [line.strip() for text in texts for line in text.splitlines() if line.strip()]
        todo += [child for child in (*table.values(), *_items(node)) if isinstance(child, dict | list)]
    return found


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()
