"""Writes mined tasks as a task file: facts alone, no code and no output of the repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import Environment, GitSource, TaskSpec
from trialfleet_repository.languages import PYTHON, language_of

_HEAD = """\
# Tasks mined from the history of the repository by `trialfleet tasks mine`, which rewrites this file.
# Each was run: its fail_to_pass tests fail before the fix and pass after it, in every repeated run.
"""


def refuse_foreign(file: Path) -> None:
    """Raises `OperatorError` for a task file that mining did not write: it would be overwritten."""
    if file.is_symlink() or (file.exists() and not file.read_bytes().startswith(_HEAD.splitlines()[0].encode())):
        raise OperatorError(
            "this file exists, and `trialfleet tasks mine` did not write it; it is not overwritten",
            where=str(file),
            hint="move it away, or give another folder with --out",
        )


def task_file(url: str, tasks: Sequence[TaskSpec], contexts: Mapping[str, str]) -> str:
    """The file's text. `contexts`: folder by name, relative to the file. The environment that most tasks have is
    the repository's, and the others name their own."""
    environments = [_environment(task.environment) for task in tasks if task.environment]
    common = _most_common(environments)
    repo: dict[str, Any] = {"url": url, **_language(tasks), "environment": common}
    if contexts:
        repo["contexts"] = dict(contexts)
    rows = [_row(task, common) for task in tasks]
    return _HEAD + yaml.safe_dump({"repo": repo, "tasks": rows}, sort_keys=False, allow_unicode=True, width=115)


def _language(tasks: Sequence[TaskSpec]) -> dict[str, str]:
    """Language of most tasks, as placebos name it; nothing for Python, which is the default."""
    languages = [found for task in tasks if task.test_file and (found := language_of(task.test_file))]
    language = Counter(languages).most_common(1)[0][0] if languages else PYTHON
    return {} if language is PYTHON else {"language": language.name}


def _most_common(environments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counted = Counter(yaml.safe_dump(environment) for environment in environments)
    chosen: dict[str, Any] = yaml.safe_load(counted.most_common(1)[0][0])
    return chosen


def _environment(environment: Environment) -> dict[str, Any]:
    return environment.model_dump(mode="json", exclude_defaults=True)


def _row(task: TaskSpec, common: dict[str, Any]) -> dict[str, Any]:
    facts = task.model_dump(mode="json", exclude_defaults=True, exclude={"source", "environment"})
    source = task.source
    assert isinstance(source, GitSource), "mined tasks come from git"
    row = {
        "id": facts.pop("id"),
        "pre_fix_commit": source.pre_fix_commit,
        "fix_commit": source.fix_commit,
        **facts,
    }
    own = _environment(task.environment) if task.environment else common
    return row if own == common else {**row, "environment": own}
