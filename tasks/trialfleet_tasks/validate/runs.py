"""Runs of a task's tests at its two trees. Each run has a fresh copy of the tree; what the first run of a tree has
compiled is not compiled again for the next."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from trialfleet_ledger.removal import remove
from trialfleet_repository.environments.tool_environment import compiled, compiled_beside
from trialfleet_repository.testrun import Suite, TestRun, mounts_of, run_tests, variables
from trialfleet_repository.trees import Tree, write_changes
from trialfleet_repository.workspace import Template, clone
from trialfleet_repository.workspace_scan import Changes
from trialfleet_sandbox.protocol import Job, Sandbox, inside
from trialfleet_tasks.validate import lookups
from trialfleet_tasks.validate.product_classes import PathLookups

_MARK = "trialfleet-file:"
_NO_FILES: Changes = {}
_FIND = (
    "import importlib.util, os, sys\n"
    "spec = importlib.util.find_spec(sys.argv[1])\n"
    "if spec is None:\n"
    "    raise ModuleNotFoundError(f'No module named {sys.argv[1]!r}')\n"
    "found = spec.origin or next(iter(spec.submodule_search_locations or ()), '')\n"
    f"print('\\n{_MARK}' + os.path.realpath(found))\n"
)


@dataclass(frozen=True)
class TaskRunner:
    """Runs a task's tests. `scratch`: an empty folder of the runner. `started`: the time of the fix's files, for
    compilers that compare times would take those of a new copy for changed."""

    suite: Suite
    template: Template  # the pristine tree
    fix: Changes
    sandbox: Sandbox
    scratch: Path
    started: float = field(default_factory=time.time)
    _peaks: list[int] = field(default_factory=list[int])
    _beside: dict[bool, tuple[PurePosixPath, ...]] = field(default_factory=dict[bool, tuple[PurePosixPath, ...]])

    @property
    def workspace(self) -> Path:
        return self.scratch / "workspace"

    def place(self, *, fixed: bool) -> None:
        """A fresh copy of the pre-fix or fixed tree."""
        remove(self.workspace)
        clone(self.template, self.workspace)
        if fixed:
            write_changes(self.fix, self.workspace)
            for path in filter(Path.is_file, (self.workspace / path for path in self.fix)):
                os.utime(path, (self.started, self.started), follow_symlinks=False)

    def run(
        self,
        tests: Sequence[str],
        *,
        fixed: bool,
        extra: Sequence[str] = (),
        seed: int = 0,
        added: Changes = _NO_FILES,
        wrapper: Callable[[str], Sequence[str]] = lambda _: (),
        listed: bool = False,
    ) -> TestRun:
        """One run of the tests, from a fresh copy with the `added` changes. `listed`: as `Suite` has it."""
        self.place(fixed=fixed)
        write_changes(added, self.workspace)
        kept = self.scratch / ("compiled-fixed" if fixed else "compiled")
        beside = self.scratch / f"{kept.name}-beside"
        for path in self._beside.pop(fixed, ()):
            move_below(self.workspace, path, source=beside)
        ended = run_tests(
            replace(self.suite, listed=listed),
            workspace=self.workspace,
            scratch=self.scratch,
            tests=tests,
            sandbox=self.sandbox,
            extra=extra,
            seed=seed,
            kept=kept,
            wrapper=wrapper,
        )
        if fixed and not added and ended.exit.peak_bytes is not None:
            self._peaks.append(ended.exit.peak_bytes)
        home = self.scratch / "home"
        for place in compiled(self.suite.environment):
            if (home / place).is_dir() and (home / place).resolve() == home.resolve() / place:
                (kept / place).parent.mkdir(parents=True, exist_ok=True)
                (home / place).rename(kept / place)
        if ended.cases:  # else the compiler may have been ended at its work
            self._beside[fixed] = compiled_beside(self.suite.environment, self.workspace)
            for path in self._beside[fixed]:
                move_below(beside, path, source=self.workspace)
        return ended

    @property
    def fix_bytes(self) -> int | None:
        """Most memory that a run at the fixed tree took so far; None: not measured."""
        return max(self._peaks, default=None)

    def run_traced(self, tests: Sequence[str], tree: Tree, *, fixed: bool) -> tuple[TestRun, PathLookups]:
        """One run at a tree, which is given, and the paths that it looked up. Raises `LookupsUnknown`."""
        env = {**self.suite.env, **lookups.VARIABLES}
        suite = replace(self.suite, env=env, timeout_s=lookups.SLOWER * self.suite.timeout_s)
        ended = replace(self, suite=suite).run(tests, fixed=fixed, wrapper=lookups.traced)
        if ended.cases is None:
            last = ended.output.strip().rpartition("\n")[2][-300:]
            raise lookups.LookupsUnknown(f"the tests give no results under strace: {last}")
        seen = inside(
            self.workspace, mounts_of(suite.environment, self.workspace, self.scratch / "home", self.sandbox)
        )
        log = self.scratch / "home" / lookups.LOG
        return ended, lookups.read_lookups(log, workspace=seen, start=seen, tree=tree)

    def calls_alike(self, tests: Sequence[str], others: Sequence[str]) -> bool:
        """Whether a run of these tests, in the tree that is placed now, is also one of the others."""
        mine, theirs = (self.suite.call.selected(ids, self.workspace) for ids in (tests, others))
        return set(mine) == set(theirs)

    def own_paths(self) -> tuple[str, ...]:
        """Workspace and HOME as the tests see them: they depend on the sandbox."""
        named = ("/workspace", "/home/agent")
        return tuple(path for path, name in self.places().items() if name in named)

    def places(self) -> dict[str, str]:
        """Paths as the tests see them -> names that are the same everywhere."""
        home = self.scratch / "home"
        environment = self.suite.environment
        mounts = mounts_of(environment, self.workspace, home, self.sandbox)
        python = environment / "bin" / "python"
        library = {str(python.resolve().parent.parent / "lib"): "/python/lib"} if python.exists() else {}
        return {
            inside(self.workspace, mounts) + "/": "",
            inside(self.workspace, mounts): "/workspace",
            inside(home, mounts): "/home/agent",
            str(environment): "/environment",
            **library,
        }

    def import_path(self, module: str) -> str | None:
        """Where `module` is imported from, relative to the workspace; None when that is outside of it, and the
        words of the failure after "!" when it cannot be found. It is not executed: that is what tests do."""
        self.place(fixed=False)
        home = self.scratch / "home"
        mounts = mounts_of(self.suite.environment, self.workspace, home, self.sandbox)
        workspace = inside(self.workspace, mounts)
        record = self.scratch / "import"
        remove(record)
        record.mkdir()
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        ended = self.sandbox.run(
            Job(
                argv=(f"{inside(self.suite.environment, mounts)}/bin/python", "-c", _FIND, module),
                env=variables(
                    self.suite,
                    environment=inside(self.suite.environment, mounts),
                    home=inside(home, mounts),
                    workspace=workspace,
                ),
                cwd=workspace,
                mounts=mounts,
                stdout=record / "stdout",
                stderr=record / "stderr",
                timeout_s=self.suite.timeout_s,
            )
        )
        said = (record / "stdout").read_text(errors="replace") if (record / "stdout").exists() else ""
        lines = [line for line in said.split("\n") if line.startswith(_MARK)]
        if not lines:
            words = (record / "stderr").read_text(errors="replace").strip() if ended.code else "no answer"
            return "!" + words.rpartition("\n")[2][-300:]
        path = lines[-1].removeprefix(_MARK)
        return path.removeprefix(workspace + "/") if path.startswith(workspace + "/") else None


def move_below(folder: Path, path: PurePosixPath, *, source: Path) -> None:
    """Move `path` from below `source` to below `folder`, if it is free there and no link leads to it: what tests
    left must not reach a place that their repository's own link names."""
    target = folder / path
    if not os.path.lexists(target) and target.parent.resolve() == folder.resolve() / path.parent:
        target.parent.mkdir(parents=True, exist_ok=True)
        (source / path).rename(target)
