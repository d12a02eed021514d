"""Task files as read from disk: defaults of the repository resolved into each task, every refusal located."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import (
    Environment,
    GitSource,
    PythonEnvironment,
    Repo,
    SdistSource,
    Source,
    TaskFile,
    TaskSpec,
    ToolEnvironment,
)
from trialfleet_repository.languages import LANGUAGES, all_formats, language_of_kind
from trialfleet_tasks import yamlfile
from trialfleet_tasks.file_patterns import is_pattern, matching_files


@dataclass(frozen=True)
class LoadedTask:
    """One task with everything resolved. `contexts`: the repository's, then the task's own."""

    spec: TaskSpec
    repo: Repo
    source: Source
    environment: Environment
    contexts: dict[str, str]
    file: Path
    index: int  # position in the file's `tasks`

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def folder(self) -> Path:
        """What relative paths of the task start from."""
        return self.file.parent

    @property
    def where(self) -> str:
        return f"{self.file}: {self.spec.id}"

    @property
    def lock_path(self) -> Path | None:
        """The lock that lies beside the task file; None where the repository's own is used."""
        return None if self.environment.lock is None else self.folder / self.environment.lock

    @property
    def files(self) -> tuple[Path, ...]:
        """The task file, and the lock that it names."""
        return (self.file,) if self.lock_path is None else (self.file, self.lock_path)

    @property
    def repository(self) -> str | None:
        """By which repositories are told apart: a digest, since addresses may hold credentials or folders' names.
        None where the file does not say it: a `path` source without a `repo.url`."""
        url = self.repo.url or (self.source.url if isinstance(self.source, GitSource) else None)
        if url is not None:
            return _name_repository(url, self.folder)
        if isinstance(self.source, SdistSource):
            return _digest(f"project {re.sub(r'[-_.]+', '-', self.source.fixed.partition('==')[0]).lower()}")
        return None

    @property
    def pythonpath(self) -> tuple[str, ...]:
        """Folders of the repository that are put on PYTHONPATH."""
        return self.environment.pythonpath if isinstance(self.environment, PythonEnvironment) else ()

    @property
    def test_files(self) -> tuple[str, ...]:
        """`test_file`, then `test_files`, each once."""
        first = (self.spec.test_file,) if self.spec.test_file else ()
        return tuple(dict.fromkeys((*first, *self.spec.test_files)))


@dataclass(frozen=True)
class LoadedFile:
    """A task file, its SHA-256, and its tasks."""

    path: Path
    value: TaskFile
    sha256: str
    tasks: tuple[LoadedTask, ...]


def load_task_file(path: Path) -> LoadedFile:
    """Read, check and resolve one file. Raises `OperatorError` naming file, line and field."""
    loaded = yamlfile.read(path, TaskFile)
    tasks = tuple(_resolve(loaded, index) for index in range(len(loaded.value.tasks)))
    first: dict[str, int] = {}
    for task in tasks:
        if task.id in first:
            raise OperatorError(
                f"the task id {task.id!r} is used twice",
                where=loaded.where("tasks", task.index, "id"),
                hint=f"it is also tasks[{first[task.id]}]: rename one",
            )
        first[task.id] = task.index
    return LoadedFile(path, loaded.value, loaded.sha256, tasks)


def load_all(paths: Iterable[Path]) -> tuple[LoadedFile, ...]:
    """Several files. A task id that stands in two of them is refused."""
    files: list[LoadedFile] = []
    owners: dict[str, Path] = {}
    for path in dict.fromkeys(path.resolve() for path in paths):
        file = load_task_file(path)
        for task in file.tasks:
            if task.id in owners:
                raise OperatorError(
                    f"the task id {task.id!r} is already used in {owners[task.id]}",
                    where=f"{path}: tasks[{task.index}].id",
                    hint="rename one of the two",
                )
            owners[task.id] = path
        files.append(file)
    return tuple(files)


def task_files(loaded: yamlfile.Loaded[CampaignSpec]) -> tuple[Path, ...]:
    """The files of a campaign's `tasks`: globs expanded, each file once. Raises `OperatorError`."""
    found: dict[Path, None] = {}
    for place, pattern in enumerate(loaded.value.tasks):
        for path in _matches(loaded, place, pattern):
            found.setdefault(path)
    return tuple(found)


def _matches(loaded: yamlfile.Loaded[CampaignSpec], place: int, pattern: str) -> list[Path]:
    folder, wanted = loaded.path.parent, Path(pattern)
    if is_pattern(pattern) and not (folder / wanted).is_file():
        matches = matching_files(folder, pattern, where=loaded.where("tasks", place))
    else:
        matches = [path for path in (folder / wanted,) if path.is_file()]
    if matches:
        return matches
    is_folder = (folder / wanted).is_dir()
    exists = (folder / wanted).exists()
    raise OperatorError(
        "is a directory" if is_folder else "is not a regular file" if exists else "no such file",
        where=f"{loaded.where('tasks', place)}: {pattern}",
        hint=f"to take all of its files: {pattern.rstrip('/')}/*.yaml"
        if is_folder
        else "paths are relative to the campaign file",
    )


def chosen(tasks: Iterable[LoadedTask], only: Iterable[str], *, where: str) -> tuple[LoadedTask, ...]:
    """The tasks with these ids, in their own order; all of them when no id is given. Raises `OperatorError` for
    an id that no task has."""
    known, wanted = {task.id: task for task in tasks}, set(only)
    for name in sorted(wanted - set(known)):
        raise OperatorError(
            f"no task {name!r} in these files", where=where, hint=f"use one of: {', '.join(sorted(known))}"
        )
    return tuple(task for task in known.values() if not wanted or task.id in wanted)


def _name_repository(url: str, folder: Path) -> str:
    """The same for https, ssh and scp-like addresses of a repository, with and without credentials and `.git`."""
    remote = re.fullmatch(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^/:@]+\.[^/:@]+|localhost)(?::\d+)?[:/](.+)", url)
    if remote is None or url.startswith(("file:", ".", "/")):
        return _digest(f"folder {(folder / url.removeprefix('file://')).resolve()}")
    return _digest(f"{remote[1].lower()}/{remote[2].strip('/').removesuffix('.git')}")


def _digest(text: str) -> str:
    return sha256(text.encode())[:16]


def campaign_tasks(loaded: yamlfile.Loaded[CampaignSpec]) -> tuple[LoadedTask, ...]:
    """The tasks of a campaign file: those of its `tasks`, or the ones among them that `only` names."""
    return chosen(tasks_of(load_all(task_files(loaded))), loaded.value.only, where=loaded.where("only"))


def tasks_of(files: Iterable[LoadedFile]) -> tuple[LoadedTask, ...]:
    """Every task of every file, in order."""
    return tuple(task for file in files for task in file.tasks)


def _resolve(loaded: yamlfile.Loaded[TaskFile], index: int) -> LoadedTask:
    repo, spec = loaded.value.repo, loaded.value.tasks[index]
    environment = spec.environment or repo.environment
    if environment is None:
        raise OperatorError(
            "the task has no environment",
            where=loaded.where("tasks", index),
            hint="add `environment:` with a `lock:` to the task or to `repo:`",
        )
    owner = ("tasks", index, "environment") if spec.environment else ("repo", "environment")
    _check_registered(environment, loaded, *owner)
    if environment.lock is not None and not (loaded.path.parent / environment.lock).is_file():
        language = language_of_kind(environment.kind)
        made_by = language.lock.made_by if language and language.lock else "uv pip compile --generate-hashes"
        raise OperatorError(
            f"no such file: {loaded.path.parent / environment.lock}",
            where=loaded.where(*owner, "lock"),
            hint=f"create it with `{made_by}`",
        )
    if spec.test_pattern and isinstance(environment, ToolEnvironment):
        raise OperatorError(
            "test_pattern is an option of pytest's",
            where=loaded.where("tasks", index, "test_pattern"),
            hint="leave it out, and name the tests in fail_to_pass and pass_to_pass",
        )
    return LoadedTask(
        spec=spec,
        repo=repo,
        source=_source(loaded, index),
        environment=environment,
        contexts={**repo.contexts, **spec.contexts},
        file=loaded.path,
        index=index,
    )


def _check_registered(environment: Environment, loaded: yamlfile.Loaded[TaskFile], *owner: str | int) -> None:
    """Raises `OperatorError` for a kind or a format of results that no language has, and a lock that its kind has
    not."""
    if not isinstance(environment, ToolEnvironment):
        return
    kinds = (*filter(None, (language.kind for language in LANGUAGES.values())), "commands")
    if environment.kind not in kinds:
        raise _unknown("kind of environment", environment.kind, kinds, loaded.where(*owner, "kind"))
    language = language_of_kind(environment.kind)
    if environment.lock is not None and (language is None or language.lock is None):
        raise OperatorError(
            f"kind {environment.kind} takes no lock file from the task's folder",
            where=loaded.where(*owner, "lock"),
            hint="remove it: the repository's own is used",
        )
    formats = tuple(all_formats())
    if environment.results is not None and environment.results not in formats:
        raise _unknown("format of results", environment.results, formats, loaded.where(*owner, "results"))


def _unknown(name: str, given: str, known: tuple[str, ...], where: str) -> OperatorError:
    return OperatorError(f"there is no {name} {given!r}", where=where, hint=f"choose from {', '.join(known)}")


def _source(loaded: yamlfile.Loaded[TaskFile], index: int) -> Source:
    spec = loaded.value.tasks[index]
    if isinstance(spec.source, GitSource):
        return spec.source.model_copy(update={"url": _absolute(spec.source.url, loaded.path.parent)})
    if spec.source is not None:
        return spec.source
    if loaded.value.repo.url is None:
        raise OperatorError(
            "pre_fix_commit and fix_commit need the repository's url",
            where=loaded.where("tasks", index, "pre_fix_commit"),
            hint="add `url:` to `repo:`",
        )
    assert spec.pre_fix_commit is not None
    assert spec.fix_commit is not None
    url = _absolute(loaded.value.repo.url, loaded.path.parent)
    return GitSource(url=url, pre_fix_commit=spec.pre_fix_commit, fix_commit=spec.fix_commit)


def _absolute(url: str, folder: Path) -> str:
    """A relative path, which must begin with a dot, is relative to the task file."""
    relative = url.startswith(("./", "../")) or url in (".", "..")
    return str((folder / url).resolve()) if relative else url
