"""The steps of a validation: run, judge, import, capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_runner.context.anchor import anchor_for
from trialfleet_runner.context_files import leftovers, unused
from trialfleet_runner.task import Status
from trialfleet_runner.testrun import TestRun
from trialfleet_tasks.presets.packages import in_package
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.inputs import Prepared
from trialfleet_tasks.validate.judge import (
    DiscoveredTests,
    Outcomes,
    check,
    discover,
    needs_network,
    not_a_run,
    steady,
    words,
)
from trialfleet_tasks.validate.output import normalised, tail
from trialfleet_tasks.validate.record import OUTPUT_CHARS, Problem, ProblemKind, TreeName, Validation
from trialfleet_tasks.validate.runs import TaskRunner
from trialfleet_tasks.variants import is_test_module

Say = Callable[[str], None]
_JAVASCRIPT = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_SUFFIXES: Mapping[ResultFormat, tuple[str, ...]] = {  # of test files that a runner can be given
    "go": ("_test.go",),
    "libtest": (".rs",),
    "surefire": (".java", ".kt"),
    "gradle": (".java", ".kt"),
    "junit": ("",),
}
_TREES: tuple[TreeName, TreeName] = ("fixed", "pre_fix")


@dataclass(frozen=True)
class ValidationSteps:
    """The steps for one task, on one bench. `say` is called with the name of each."""

    task: LoadedTask
    prepared: Prepared
    bench: TaskRunner
    repeats: int
    objects: Objects
    say: Say

    def validation(self, started: float) -> Validation:
        found = self._tests()
        problems = list(found.problems)
        imported, outside = self._imported() if not problems else (None, None)
        if outside is not None:
            problems.append(outside)
        output: str | None = None
        if not problems and self._shown and found.fail_to_pass:
            output, uncaptured = self._output(found)
            problems += uncaptured
        anchor = anchor_for(
            "traceback",
            prompt_source=self.task.spec.prompt_source,
            paths=self.prepared.variants.pristine,
            failure_output=output,
            directory=self.prepared.environment.directory,
        )
        return Validation(
            task=self.task.id,
            digest=self.prepared.digest,
            status=self._status(found, problems),
            problems=tuple(problems),
            warnings=(*self._warnings(), *found.warnings),
            repeats=self.repeats,
            fail_to_pass=found.fail_to_pass,
            pass_to_pass=found.pass_to_pass,
            output=self.objects.put(output.encode()) if output is not None else None,
            anchor=anchor,
            targets=self.prepared.variants.targets,
            test_files=self.prepared.variants.test_files,
            imported=imported,
            environment=self.prepared.environment.ref,
            isolation=self.bench.sandbox.name,
            at=started,
            seconds=round(time.time() - started, 3),
        )

    @property
    def _shown(self) -> bool:
        return self.task.spec.prompt_source == "failing_test"

    def _status(self, found: DiscoveredTests, problems: Sequence[Problem]) -> Status:
        if problems:
            return Status.UNVALIDATED
        return Status.VALIDATED if found.fail_to_pass else Status.NO_ORACLE

    def _warnings(self) -> tuple[str, ...]:
        variants = self.prepared.variants
        left = leftovers(variants.workspace)
        return (
            *(f"strip_extra {entry!r} removes nothing" for entry in self._unused_strip()),
            *(
                f"{path}: stays in the workspace, and an agent may read it as instructions; strip_extra removes it"
                for path in left
            ),
            *(f"{path}: changed by the fix, but excluded from patches" for path in variants.left_out),
        )

    def _unused_strip(self) -> tuple[str, ...]:
        return unused(self.prepared.variants.stripped, self.task.repo.strip_extra)

    def _tests(self) -> DiscoveredTests:
        spec = self.task.spec
        if spec.fail_to_pass:
            found = DiscoveredTests(spec.fail_to_pass, spec.pass_to_pass)
            before, after, problem = self._repeated(found, range(self.repeats))
            if problem is not None:
                return replace(found, problems=(problem,))
            return replace(found, problems=check(found.fail_to_pass, found.pass_to_pass, before, after))
        if not self.prepared.variants.test_files:
            return DiscoveredTests((), (), ("no test file: the task has no fail-to-pass oracle",))
        return self._discovered()

    def _discovered(self) -> DiscoveredTests:
        files = self.prepared.variants.test_files
        modules = self._modules(files)
        pattern = self.task.spec.test_pattern
        extra = ("-k", pattern) if pattern else ()
        runs: dict[TreeName, TestRun] = {}
        for tree in _TREES:  # the fixed tree first: what cannot run there is not the bug's doing
            self.say(f"discovering tests, {words(tree)}")
            runs[tree] = self.bench.run(modules, fixed=tree == "fixed", extra=extra)
            problem = not_a_run(runs[tree], tree)
            if problem is not None:
                return self._without_oracle(DiscoveredTests((), (), problems=(problem,)))
        before, after = (runs[tree].outcomes(modules) for tree in reversed(_TREES))
        found = _explained(discover(before, after, places=self.bench.own_paths()), runs["fixed"])
        if (found.problems and self._shown) or not (found.fail_to_pass or found.pass_to_pass):
            return self._without_oracle(found)
        unfixed, fixed, problem = self._repeated(found, range(1, max(2, self.repeats)))
        if problem is not None:
            return replace(found, problems=(problem,))
        return self._without_oracle(steady(found, unfixed, fixed))

    def _modules(self, files: Sequence[str]) -> tuple[str, ...]:
        """The test files that a runner can be given."""
        present = tuple(file for file in files if file in self.prepared.variants.pristine)
        results = self.prepared.environment.results
        if results != "pytest":
            given = tuple(path for path in present if path.endswith(_SUFFIXES.get(results, _JAVASCRIPT)))
            planned = self.prepared.environment
            return in_package(planned.ref.kind, self.prepared.variants.pristine, given, planned.directory)
        python = tuple(file for file in present if file.endswith(".py"))
        return tuple(filter(is_test_module, python)) or python  # no conftest.py beside them

    def _without_oracle(self, found: DiscoveredTests) -> DiscoveredTests:
        """A task that never claimed a failing test may lack one; then it is only not counted."""
        if self._shown or not found.problems:
            return found
        words = tuple(problem.message for problem in found.problems)
        return DiscoveredTests((), found.pass_to_pass, (*found.warnings, *words, "no fail-to-pass oracle"))

    def _repeated(
        self, found: DiscoveredTests, seeds: range
    ) -> tuple[list[Outcomes], list[Outcomes], Problem | None]:
        before: list[Outcomes] = []
        after: list[Outcomes] = []
        ids = (*found.fail_to_pass, *found.pass_to_pass)
        for seed in seeds:
            for tree, kept in zip(_TREES, (after, before), strict=True):
                self.say(f"run {seed + 1}, {words(tree)}")
                run = self.bench.run(ids, fixed=tree == "fixed", seed=seed)
                problem = not_a_run(run, tree)
                if problem is not None:
                    return before, after, problem
                kept.append(_outcomes(run, ids))
        return before, after, None

    def _output(self, found: DiscoveredTests) -> tuple[str | None, tuple[Problem, ...]]:
        """Of the fail-to-pass tests alone: what an agent would see when it runs them. Every prompt of the task
        shows it, so this run is judged like the others: it may fail by something else than the bug."""
        self.say("capturing the failure")
        ids = found.fail_to_pass
        run = self.bench.run(ids, fixed=False)
        broken = not_a_run(run, "pre_fix")
        before = dict.fromkeys(ids, "failed")
        problems = (broken,) if broken else check(ids, (), [before, _outcomes(run, ids)], ())
        return None if problems else tail(normalised(run.output, self.bench.places())), problems

    def _imported(self) -> tuple[str | None, Problem | None]:
        environment = self.prepared.environment
        name = environment.import_name or _module_of(self.prepared.variants.targets, environment.pythonpath)
        if name is None:
            return None, None
        self.say(f"importing {name}")
        path = self.bench.import_path(name)
        if path is not None and not path.startswith("!"):
            return path, None
        said = f"cannot be imported: {path[1:]}" if path else "is imported from outside of the workspace"
        return None, Problem(
            kind=ProblemKind.OUTSIDE_WORKSPACE,
            message=f"module {name} {said}",
            hint="check environment.pythonpath and import_name, and that the lock does not install the project",
        )


def _explained(found: DiscoveredTests, fixed: TestRun) -> DiscoveredTests:
    """With the output of tests that fail at the fixed tree; with the network named where that is why."""
    explained: list[Problem] = []
    for problem in found.problems:
        if problem.kind is ProblemKind.FAILS_AT_FIX:
            change = {"tree": "fixed", "output": fixed.output[-OUTPUT_CHARS:]}
            if needs_network(fixed):
                hint = "tests run without a network, databases or Docker: choose others"
                change |= {"kind": ProblemKind.NEEDS_NETWORK, "hint": hint}
            problem = problem.model_copy(update=change)
        explained.append(problem)
    return replace(found, problems=tuple(explained))


def _outcomes(run: TestRun, ids: Sequence[str]) -> Outcomes:
    return {result.id: result.outcome for result in run.results(ids) if result.outcome != "missing"}


def _module_of(targets: Sequence[str], pythonpath: Sequence[str]) -> str | None:
    """Top-level module of the first target that an import root holds.

    >>> _module_of(("src/pdm/utils.py",), (".", "src"))
    'pdm'
    """
    roots = sorted((str(PurePosixPath(entry)) for entry in pythonpath), key=len, reverse=True)
    for target in targets:
        for root in roots:
            rest = target if root == "." else target.removeprefix(root + "/")
            if (root == "." or rest != target) and rest.endswith(".py"):
                return rest.partition("/")[0].removesuffix(".py")
    return None
