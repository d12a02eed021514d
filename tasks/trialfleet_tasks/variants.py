"""The trees of one task: what the agent gets, what is scored, and the fix as it would travel."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from trialfleet_agents.context_files import is_context_file, strip
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.environments.provided import Provided
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.languages import PYTHON, is_harness, is_test_path, is_vendored
from trialfleet_repository.patch import applied
from trialfleet_repository.trees import Tree, TreeEntry, TreeError, changed, is_folder
from trialfleet_tasks.sources.materialise import Trees
from trialfleet_tasks.taskfile import LoadedTask


class NothingToFix(OperatorError):
    """No change of the fix would travel with an agent's patch."""


@dataclass(frozen=True)
class Variants:
    """`pristine`: the stripped pre-fix tree with the fix's test files: what is scored, and what the agent gets
    where the failing test is shown. `workspace`: what the agent gets. `fix`: the changes that the oracle makes,
    without tests, context and harness files. `targets`: the source files among them. `settings`: the fix's changes
    of manifests and of the test runner's and the build's configuration, which no patch holds."""

    pristine: Tree
    workspace: Tree
    fix: dict[str, TreeEntry | None]
    test_files: tuple[str, ...]
    targets: tuple[str, ...]
    stripped: tuple[str, ...]
    left_out: tuple[str, ...]  # changes of the fix that do not travel, its test files apart
    settings: dict[str, TreeEntry | None] = field(default_factory=dict[str, TreeEntry | None])

    def in_environment(self, pythonpath: tuple[str, ...], provided: Callable[[], Provided]) -> Variants:
        """With the fix as it travels when it is scored in an environment."""
        stays = Exclusions(
            self.pristine,
            self.test_files,
            pythonpath,
            self.travelling_tests,
            provided,
            is_context=is_context_file,
        )
        fix = {path: entry for path, entry in self.fix.items() if not stays.excludes(path)}
        hidden = tuple(path for path in self.fix if path not in fix)
        return replace(self, fix=fix, left_out=(*self.left_out, *hidden))

    def with_test_side(self, paths: Collection[str]) -> Variants:
        """With these changes of the fix in the scored tree, like its test files: no agent may make them. What the
        agent gets stays the same."""
        changes = {**self.settings, **self.fix}
        side = {path: entry for path, entry in changes.items() if path in paths}
        return replace(
            self,
            pristine=applied(self.pristine, side),
            fix={path: entry for path, entry in self.fix.items() if path not in side},
            test_files=(*self.test_files, *side),
            left_out=tuple(path for path in self.left_out if path not in side),
        )

    @property
    def travelling_tests(self) -> tuple[str, ...]:
        """Paths that look like tests or vendored packages and belong to the fix: only there may an agent change
        such a path. What supports the tests alone belongs into the task's `test_files`, which the scoring tree
        has already."""
        return tuple(path for path in self.fix if is_test_path(path) or is_vendored(path))


def variants(task: LoadedTask, trees: Trees) -> Variants:
    """Pure: the trees by the task's facts. Raises `OperatorError` for a test file that is a folder or missing,
    a fix that changes nothing, and `strip_extra` that leaves the repository."""
    try:
        pre_fix, removed = strip(trees.pre_fix, task.repo.strip_extra)
        fixed, _ = strip(trees.fixed, task.repo.strip_extra)
    except TreeError as error:
        raise OperatorError(str(error), where=f"{task.file}: repo.strip_extra") from None
    tests = task.test_files or _changed_tests(pre_fix, fixed)
    for path in tests:
        _check_test_file(task, fixed, path)
    pristine = without(pre_fix, tests) | {path: fixed[path] for path in tests}
    differing = [path for path in changed(pre_fix, fixed) if path not in tests]
    travels = Exclusions(pristine, tests, task.pythonpath, differing, is_context=is_context_file)
    fix = {path: fixed.get(path) for path in differing if not travels.excludes(path)}
    if not fix:
        raise NothingToFix(
            "the fix changes nothing but tests and harness files", where=task.where, hint="choose another task"
        )
    return Variants(
        pristine=pristine,
        workspace=pristine if task.spec.prompt_source == "failing_test" else pre_fix,
        fix=fix,
        test_files=tests,
        targets=_targets(fix),
        stripped=removed,
        left_out=tuple(path for path in differing if path not in fix),
        settings={path: fixed.get(path) for path in differing if is_harness(path)},
    )


def without(tree: Tree, paths: tuple[str, ...]) -> dict[str, TreeEntry]:
    """The tree without some files."""
    gone = set(paths)
    return {path: entry for path, entry in tree.items() if path not in gone}


def _changed_tests(pre_fix: Tree, fixed: Tree) -> tuple[str, ...]:
    return tuple(path for path in changed(pre_fix, fixed) if path in fixed and PYTHON.is_test_module(path))


def _check_test_file(task: LoadedTask, fixed: Tree, path: str) -> None:
    where = f"{task.where}: test_file"
    if path in fixed:
        return
    if is_folder(fixed, path):
        raise OperatorError(f"{path!r} is a directory", where=where, hint="name one file")
    raise OperatorError(f"{path!r} is not in the fixed tree", where=where, hint="check the path")


def _targets(fix: dict[str, TreeEntry | None]) -> tuple[str, ...]:
    source = tuple(path for path in fix if path.endswith(".py") and not is_test_path(path))
    return source or tuple(path for path in fix if not is_test_path(path))
