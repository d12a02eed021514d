"""A task's environment as it is planned: its reference, what it is built from, and how its tests are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import find_interpreter
from trialfleet_ledger.records.environment import EnvironmentRef, ToolEnvironmentRef
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.task import GitSource, ToolEnvironment
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import environment_ref, tool_environment_ref
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.languages import format_named, language_of_kind
from trialfleet_repository.languages.preset import Commands, ToolPreset
from trialfleet_repository.test_call import CalledTests, argv
from trialfleet_repository.trees import ROOT, Tree, TreeEntry, pack
from trialfleet_tasks.presets.packages import in_package
from trialfleet_tasks.presets.preset import inputs, preset
from trialfleet_tasks.sources.materialise import Trees, materialise
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.variants import Variants, variants


@dataclass(frozen=True)
class PlannedEnvironment:
    """`source`: the content of the object `ref.source`."""

    ref: EnvironmentRef
    source: bytes
    test_command: tuple[str, ...]
    results: ResultFormat
    env: Mapping[str, str]
    pythonpath: tuple[str, ...] = ()
    import_name: str | None = None
    directory: str = ROOT

    @property
    def test_framework(self) -> str:
        """As a placebo names it: by the format of its results, else the program that is called."""
        return format_named(self.results).framework or PurePosixPath(self.test_command[0]).name


def planned_environment(task: LoadedTask, tree: Tree, *, for_other_uid: bool = False) -> PlannedEnvironment:
    """On this machine. `tree`: `unfixed`. Raises `OperatorError` when this machine lacks an interpreter or a
    tool, or the repository what the kind needs."""
    environment = task.environment
    if isinstance(environment, ToolEnvironment):
        url = task.source.url if isinstance(task.source, GitSource) else None
        ids = (*task.spec.fail_to_pass, *task.spec.pass_to_pass)
        tests = tuple(dict.fromkeys((*task.test_files, *(test.partition("::")[0] for test in ids))))
        return planned_tools(environment, _locked(task, tree), tests=tests, url=url, where=task.where)
    assert task.lock_path is not None, "its schema requires it"
    lock = task.lock_path.read_bytes()
    python = find_interpreter(environment.python, for_other_uid=for_other_uid)
    return PlannedEnvironment(
        ref=environment_ref(environment, lock, python),
        source=lock,
        test_command=environment.test_command,
        results=environment.results,
        env=environment.env,
        pythonpath=environment.pythonpath,
        import_name=environment.import_name,
    )


def _locked(task: LoadedTask, tree: Tree) -> Tree:
    """The tree with the lock that lies beside the task file, if there is one."""
    if task.lock_path is None or not isinstance(task.environment, ToolEnvironment):
        return tree
    language = language_of_kind(task.environment.kind)
    assert language is not None, "its schema permits no lock"
    assert language.lock is not None, "its schema permits no lock"
    place = language.lock.place(tree, task.environment.directory or ROOT)
    return {**tree, place: TreeEntry(task.lock_path.read_bytes())}


def environment_of(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path]) -> PlannedEnvironment:
    """As `planned_environment`; the task's trees are read only if its environment depends on them."""
    if not isinstance(task.environment, ToolEnvironment):
        return planned_environment(task, {})
    trees = materialise(task, cache=cache, mirrors=mirrors)
    return planned_environment(task, unfixed(trees, variants(task, trees)))


def unfixed(trees: Trees, found: Variants) -> Tree:
    """The tree that an environment is built of: before the fix and without its tests, which may not compile; then
    nothing could be fetched by a run of tests."""
    return {path: entry for path, entry in trees.pre_fix.items() if path in found.pristine}


def planned_tools(
    environment: ToolEnvironment, tree: Tree, *, tests: Sequence[str] = (), url: str | None = None, where: str = ""
) -> PlannedEnvironment:
    """Of a tree on this machine. `tests`: files or units of ids that will run; those of other packages are
    left out. `url`: of the repository, whose environments share caches. Raises as `planned_environment`."""
    found = preset(environment, tree)
    directory = environment.directory or ROOT
    source = pack(tree)
    ref = ToolEnvironmentRef(
        kind=environment.kind,
        digest="0" * 64,
        tools={name: _version(name, wanted, where) for name, wanted in found.tools.items()},
        inputs=sha256(inputs(found.inputs, tree)),
        tree=sha256(source),
        repository=sha256(url.encode()) if url else None,
        directory=found.directory,
        alone=found.alone,
        fetch=found.fetch,
        warm=_warm(found, directory, in_package(environment.kind, tree, tests, directory), tree),
        keep=found.keep,
        drop=found.drop,
        variables=dict(found.variables),
        links=dict(found.links),
        place=found.place,
    )
    return PlannedEnvironment(
        ref=tool_environment_ref(ref),
        source=source,
        test_command=found.test_command,
        results=found.results,
        env=environment.env,
        directory=directory,
    )


def _warm(found: ToolPreset, directory: str, tests: Sequence[str], tree: Tree) -> Commands:
    """With `{tests}` as the tests' command gets it: for all tests, and for those of each file alone. Some tools
    compile dependencies in another way for several packages than for each of them."""
    call = CalledTests(found.test_command, found.results, directory)

    def read(path: str) -> bytes | None:
        entry = tree.get(path)
        return entry.data if entry else None

    each = (tests, *((test,) for test in tests))
    calls = tuple(dict.fromkeys(call.selection(some, read) for some in each))

    def filled(command: tuple[str, ...]) -> Commands:
        if "{tests}" not in command:
            return (command,)
        return tuple(argv(command, words, "", "{environment}", frozenset()) for words in calls)

    return tuple(words for command in found.warm for words in filled(command))


def _version(name: str, wanted: str, where: str) -> str:
    _, version = find_tool(name)
    if not f"{version}.".startswith(f"{wanted}." if wanted else ""):
        raise OperatorError(
            f"this machine has {name} {version}, not {wanted}",
            where=f"{where}: environment.tools",
            hint=f"install {name} {wanted} and put it first on PATH",
        )
    return version
