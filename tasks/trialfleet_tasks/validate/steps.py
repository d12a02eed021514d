"""The steps of a validation: run, judge, import, capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from trialfleet_agents.context_files import leftovers, unused
from trialfleet_deliveries.anchor import anchor_for
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.task import PythonEnvironment, Status
from trialfleet_repository.languages import PYTHON, format_named, is_harness, is_test_path
from trialfleet_repository.testrun import TestRun
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.presets.packages import in_package
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.copied_lines import CopiedLines, find_added_lines, find_copied_lines
from trialfleet_tasks.validate.inputs import Prepared
from trialfleet_tasks.validate.judge import (
    DiscoveredTests,
    Outcomes,
    check,
    describe_settings,
    discover,
    in_time,
    late_problems,
    needs_network,
    not_a_run,
    not_all_ran,
    out_of_time,
    steady,
    told,
    words,
)
from trialfleet_tasks.validate.left_out import count_left_out, describe_left_out, find_lacking_modules
from trialfleet_tasks.validate.must_fail import PassControl, make_control
from trialfleet_tasks.validate.output import normalised, tail
from trialfleet_tasks.validate.own_release import own_release
from trialfleet_tasks.validate.record import OUTPUT_CHARS, Problem, ProblemKind, TreeName, Validation
from trialfleet_tasks.validate.record_classes import RecordedClasses, record_classes
from trialfleet_tasks.validate.runs import TaskRunner

Say = Callable[[str], None]
Untold = Callable[[Sequence[str]], Mapping[str, str]]  # tests -> a name that one uses and no prompt tells
_TREES: tuple[TreeName, TreeName] = ("fixed", "pre_fix")


@dataclass(frozen=True)
class _RunBefore:
    """A run of these ids at the pre-fix tree."""

    ids: tuple[str, ...]
    run: TestRun


@dataclass
class _Repeated:
    """Outcomes of runs at both trees. `alone`: of the fail-to-pass tests without the others, at the pre-fix tree.
    `problem`: why one has none. `last`: the last at the pre-fix tree."""

    before: list[Outcomes] = field(default_factory=list[Outcomes])
    after: list[Outcomes] = field(default_factory=list[Outcomes])
    alone: list[Outcomes] = field(default_factory=list[Outcomes])
    problem: Problem | None = None
    last: _RunBefore | None = None


@dataclass(frozen=True)
class ValidationSteps:
    """The steps for one task, on one bench. `say` is called with the name of each. `untold`: given where tests are
    searched for a task to be, which must have fail-to-pass tests, and none of those that this names."""

    task: LoadedTask
    prepared: Prepared
    bench: TaskRunner
    repeats: int
    objects: Objects
    say: Say
    untold: Untold | None = None

    def validation(self, started: float) -> Validation:
        found, shown = self._tests()
        problems = list(found.problems)
        imported, outside = self._imported() if not problems else (None, None)
        problems += [
            one for one in (outside, None if outside or problems else self._own_release()) if one is not None
        ]
        output: str | None = None
        if not problems and self._shown and found.fail_to_pass:
            output, uncaptured = self._output(found.fail_to_pass, shown)
            problems += uncaptured
        copied = CopiedLines() if problems else self._copied_lines()
        if copied.places and self.untold is not None:
            problems.append(Problem(kind=ProblemKind.COPIED_LINES, message=copied.words or ""))
        side = () if problems else self._test_side(found)
        classes = None if problems else self._classes(found, side)
        left_out = self.task.spec.left_out if self.task.spec.fail_to_pass else count_left_out(found.left_out)
        control = PassControl(None, "none (the task is not valid)") if problems else self._control(found)
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
            warnings=(
                *self._warnings(),
                *found.warnings,
                *describe_left_out(left_out),
                *(classes.warnings if classes else ()),
                *((copied.words,) if copied.words and not problems else ()),
            ),
            repeats=self.repeats,
            fail_to_pass=found.fail_to_pass,
            pass_to_pass=found.pass_to_pass,
            left_out=left_out,
            output=self.objects.put(output.encode()) if output is not None else None,
            classes=classes and self.objects.put(canonical_json(classes.classes)),
            rule=classes and classes.classes.rule,
            anchor=anchor,
            must_fail=control.test and self.objects.put(canonical_json(control.test)),
            control=control.words,
            fix_bytes=self.bench.fix_bytes,
            targets=self.prepared.variants.targets,
            test_files=self.prepared.variants.test_files,
            test_side=side,
            imported=imported,
            environment=self.prepared.environment.ref,
            isolation=self.bench.sandbox.name,
            at=started,
            seconds=round(time.time() - started, 3),
        )

    def _control(self, found: DiscoveredTests) -> PassControl:
        """By one more run at the fixed tree."""

        def run(tests: Sequence[str], added: Mapping[str, TreeEntry]) -> TestRun:
            self.say("run with tests that must fail, fixed tree")
            return self.bench.run(tests, fixed=True, added=added)

        return make_control(found, self.prepared, run)

    @property
    def _shown(self) -> bool:
        return self.task.spec.prompt_source == "failing_test"

    @property
    def _needs_oracle(self) -> bool:
        return self._shown or self.untold is not None

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

    def _tests(self) -> tuple[DiscoveredTests, _RunBefore | None]:
        """And the last run of its tests before the fix."""
        spec = self.task.spec
        if spec.fail_to_pass:
            found = DiscoveredTests(spec.fail_to_pass, spec.pass_to_pass)
            runs = self._repeated(found, range(self.repeats))
            if runs.problem is not None:
                return replace(found, problems=(runs.problem,)), None
            before = (*runs.before, *runs.alone)
            problems = check(found.fail_to_pass, found.pass_to_pass, before, runs.after)
            if not problems and runs.last is not None:
                problems = late_problems(out_of_time(runs.last.run, found.fail_to_pass))
            return replace(found, problems=problems), runs.last
        if not self.prepared.variants.test_files:
            return DiscoveredTests((), (), ("no test file: the task has no fail-to-pass oracle",)), None
        found = self._discovered()
        if (found.problems and self._needs_oracle) or not (found.fail_to_pass or found.pass_to_pass):
            return self._without_oracle(found), None
        runs = self._repeated(found, range(1, max(2, self.repeats)))
        if runs.problem is not None:
            return replace(found, problems=(runs.problem,)), None
        return self._without_oracle(steady(found, runs.before, runs.after, runs.alone)), runs.last

    def _discovered(self) -> DiscoveredTests:
        """By one run of each tree."""
        files = self.prepared.variants.test_files
        modules = self._modules(files)
        pattern = self.task.spec.test_pattern
        extra = ("-k", pattern) if pattern else ()
        runs: dict[TreeName, TestRun] = {}
        for tree in _TREES:  # the fixed tree first: what cannot run there is not the bug's doing
            self.say(f"discovering tests, {words(tree)}")
            runs[tree] = self.bench.run(modules, fixed=tree == "fixed", extra=extra, listed=tree == "fixed")
            problem = not_a_run(runs[tree], tree) or (not_all_ran(runs[tree]) if tree == "fixed" else None)
            if problem is not None:
                return DiscoveredTests((), (), problems=(problem,))
        before, after = (runs[tree].outcomes(modules) for tree in reversed(_TREES))
        deselected = runs["fixed"].settings.deselected
        found = discover(before, after, places=self.bench.own_paths(), deselected=deselected)
        found = _explained(found, runs["fixed"])
        found = replace(found, left_out={**found.left_out, **find_lacking_modules(runs["fixed"], modules)})
        found = in_time(found, out_of_time(runs["pre_fix"], found.fail_to_pass))
        found = replace(found, warnings=(*found.warnings, *describe_settings(runs["fixed"])))
        return told(found, self.untold(found.fail_to_pass)) if self.untold else found

    def _modules(self, files: Sequence[str]) -> tuple[str, ...]:
        """The test files that a runner can be given."""
        present = tuple(file for file in files if file in self.prepared.variants.pristine and not is_harness(file))
        planned = self.prepared.environment
        if planned.ref.kind != PYTHON.kind:
            given = tuple(path for path in present if path.endswith(format_named(planned.results).suffixes))
            return in_package(planned.ref.kind, self.prepared.variants.pristine, given, planned.directory)
        python = tuple(file for file in present if file.endswith(".py"))
        return tuple(filter(PYTHON.is_test_module, python)) or python  # without conftest.py

    def _without_oracle(self, found: DiscoveredTests) -> DiscoveredTests:
        """A task that never claimed a failing test may lack one; then it is only not counted."""
        if self._needs_oracle or not found.problems:
            return found
        words = tuple(problem.message for problem in found.problems)
        warnings = (*found.warnings, *words, "no fail-to-pass oracle")
        return DiscoveredTests((), found.pass_to_pass, warnings, left_out=found.left_out)

    def _repeated(self, found: DiscoveredTests, seeds: range) -> _Repeated:
        """Both trees with each seed, until a run gives no results or no fail-to-pass test is stable. The last run
        at the pre-fix tree is of the fail-to-pass tests alone where prompts show what these print."""
        runs, ids = _Repeated(), (*found.fail_to_pass, *found.pass_to_pass)
        for seed in seeds:
            for tree in _TREES:
                alone = tree == "pre_fix" and seed > 0 and seed == seeds[-1] and self._told_apart(found, ids)
                tests = found.fail_to_pass if alone else ids
                self.say(f"run {seed + 1}, {words(tree)}{', the failing tests alone' if alone else ''}")
                run = self.bench.run(tests, fixed=tree == "fixed", seed=seed)
                runs.problem = not_a_run(run, tree)
                if runs.problem is not None:
                    return runs
                kept = runs.after if tree == "fixed" else runs.alone if alone else runs.before
                kept.append(_outcomes(run, tests))
                runs.last = _RunBefore(tests, run)  # of the pre-fix tree, which comes last
            if self._flaky(found, runs):
                break
        return runs

    def _told_apart(self, found: DiscoveredTests, ids: Sequence[str]) -> bool:
        """Whether prompts show what the fail-to-pass tests print alone, which a run of all ids does not."""
        return self._shown and bool(found.fail_to_pass) and not self.bench.calls_alike(found.fail_to_pass, ids)

    def _flaky(self, found: DiscoveredTests, runs: _Repeated) -> bool:
        """Whether no fail-to-pass test of a discovery is stable: more runs change nothing."""
        discovered = not self.task.spec.fail_to_pass and bool(found.fail_to_pass)
        return discovered and bool(steady(found, runs.before, runs.after, runs.alone).problems)

    def _output(self, ids: Sequence[str], last: _RunBefore | None) -> tuple[str | None, tuple[Problem, ...]]:
        """Of the fail-to-pass tests alone: what an agent would see when it runs them. Every prompt of the task
        shows it, so this run is judged like the others: it may fail by something else than the bug. It is the last
        run where that was called the same way, as where runners are given whole files or crates."""
        if last is not None and self.bench.calls_alike(ids, last.ids):
            run = last.run
        else:
            self.say("capturing the failure")
            run = self.bench.run(ids, fixed=False)
        today = datetime.now(UTC).date()
        broken = not_a_run(run, "pre_fix")
        before = dict.fromkeys(ids, "failed")
        problems = (broken,) if broken else check(ids, (), [before, _outcomes(run, ids)], ())
        return None if problems else tail(normalised(run.output, self.bench.places(), today)), problems

    def _test_side(self, found: DiscoveredTests) -> tuple[str, ...]:
        """The test paths that the fix changes, apart from the task's test files, if they do not fix the bug: with
        them alone, the fail-to-pass tests still fail, and the others pass."""
        fix = self.prepared.variants.fix
        side = tuple(path for path in fix if is_test_path(path))
        if not side or len(side) == len(fix):
            return ()
        self.say("run with the fix's test side alone")
        ids = (*found.fail_to_pass, *found.pass_to_pass)
        run = self.bench.run(ids, fixed=False, added={path: fix[path] for path in side})
        seen = [_outcomes(run, ids)]
        problems = (*check(found.fail_to_pass, (), seen, ()), *check((), found.pass_to_pass, (), seen))
        return side if not_a_run(run, "pre_fix") is None and not problems else ()

    def _classes(self, found: DiscoveredTests, side: tuple[str, ...]) -> RecordedClasses:
        ids = (*found.fail_to_pass, *found.pass_to_pass)
        self.say("recording look-ups")
        prepared = replace(self.prepared, variants=self.prepared.variants.with_test_side(side))
        return record_classes(prepared, self.bench, ids)

    def _own_release(self) -> Problem | None:
        stated = self.task.environment
        if not isinstance(stated, PythonEnvironment):
            return None
        return own_release(
            self.bench.suite.environment,
            module=stated.import_name or (self._module() if stated.distribution is None else None),
            distribution=stated.distribution,
            version=stated.version,
        )

    def _copied_lines(self) -> CopiedLines:
        """Lines of the fix that an agent finds elsewhere: a caution for the author of a task."""
        self.say("searching lines of the fix")
        trees = self.prepared.variants
        added = find_added_lines(trees.pristine, trees.fix)
        return find_copied_lines(added, self.bench.suite.environment, trees.workspace)

    def _module(self) -> str | None:
        environment = self.prepared.environment
        return environment.import_name or _module_of(self.prepared.variants.targets, environment.pythonpath)

    def _imported(self) -> tuple[str | None, Problem | None]:
        name = self._module()
        if name is None:
            return None, None
        self.say(f"finding {name}")
        path = self.bench.import_path(name)
        if path is not None and not path.startswith("!"):
            return path, None
        said = f"cannot be found: {path[1:]}" if path else "is imported from outside of the workspace"
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
