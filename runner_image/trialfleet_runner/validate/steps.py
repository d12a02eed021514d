"""The steps of a validation: run, judge, import, capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from trialfleet_runner.context.anchor import anchor_for
from trialfleet_runner.junit import function_id, outcomes
from trialfleet_runner.objects import Objects
from trialfleet_runner.strip import leftovers, unused
from trialfleet_runner.task import Status
from trialfleet_runner.taskfile import LoadedTask
from trialfleet_runner.testrun import TestRun, selection
from trialfleet_runner.validate.inputs import Prepared
from trialfleet_runner.validate.judge import Found, Outcomes, check, discover, not_a_run, steady
from trialfleet_runner.validate.output import normalised, tail
from trialfleet_runner.validate.record import Problem, ProblemKind, Validation
from trialfleet_runner.validate.runs import Bench

Say = Callable[[str], None]


@dataclass(frozen=True)
class Steps:
    """The steps for one task, on one bench. `say` hears the name of each."""

    task: LoadedTask
    prepared: Prepared
    bench: Bench
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
            environment=self.prepared.environment,
            isolation=self.bench.sandbox.name,
            at=started,
            seconds=round(time.time() - started, 3),
        )

    @property
    def _shown(self) -> bool:
        return self.task.spec.prompt_source == "failing_test"

    def _status(self, found: Found, problems: Sequence[Problem]) -> Status:
        if problems:
            return Status.UNVALIDATED
        return Status.VALIDATED if found.fail_to_pass else Status.NO_ORACLE

    def _warnings(self) -> tuple[str, ...]:
        variants = self.prepared.variants
        left = leftovers(variants.workspace)
        return (
            *(f"strip_extra {entry!r} removes nothing" for entry in self._unused_strip()),
            *(
                f"{path}: left in the workspace, and some agent may read it; strip_extra removes it"
                for path in left
            ),
            *(f"{path}: changed by the fix, but does not travel" for path in variants.left_out),
        )

    def _unused_strip(self) -> tuple[str, ...]:
        return unused(self.prepared.variants.stripped, self.task.repo.strip_extra)

    def _tests(self) -> Found:
        spec = self.task.spec
        if spec.fail_to_pass:
            found = Found(spec.fail_to_pass, spec.pass_to_pass)
            before, after, problem = self._repeated(found, range(self.repeats))
            if problem is not None:
                return replace(found, problems=(problem,))
            return replace(found, problems=check(found.fail_to_pass, found.pass_to_pass, before, after))
        if not self.prepared.variants.test_files:
            return Found((), (), ("no test file: the task has no fail-to-pass oracle",))
        return self._discovered()

    def _discovered(self) -> Found:
        files = self.prepared.variants.test_files
        modules = tuple(file for file in files if file.endswith(".py") and file in self.prepared.variants.pristine)
        pattern = self.task.spec.test_pattern
        extra = ("-k", pattern) if pattern else ()
        seen: list[Outcomes] = []
        for fixed, tree in ((False, "pre-fix tree"), (True, "fixed tree")):
            self.say(f"discovering tests, {tree}")
            run = self.bench.run(modules, fixed=fixed, extra=extra)
            problem = not_a_run(run, tree)
            if problem is not None:
                return self._without_oracle(Found((), (), problems=(problem,)))
            seen.append(outcomes(run.cases or (), modules))
        found = discover(*seen, places=self.bench.own_paths())
        if (found.problems and self._shown) or not (found.fail_to_pass or found.pass_to_pass):
            return self._without_oracle(found)
        before, after, problem = self._repeated(found, range(1, max(2, self.repeats)))
        if problem is not None:
            return replace(found, problems=(problem,))
        return self._without_oracle(steady(found, before, after))

    def _without_oracle(self, found: Found) -> Found:
        """A task that never claimed a failing test may lack one; then it is only not counted."""
        if self._shown or not found.problems:
            return found
        words = tuple(problem.message for problem in found.problems)
        return Found((), found.pass_to_pass, (*found.warnings, *words, "no fail-to-pass oracle"))

    def _repeated(self, found: Found, seeds: range) -> tuple[list[Outcomes], list[Outcomes], Problem | None]:
        before: list[Outcomes] = []
        after: list[Outcomes] = []
        ids = (*found.fail_to_pass, *found.pass_to_pass)
        for seed in seeds:
            for fixed, kept, tree in ((False, before, "pre-fix tree"), (True, after, "fixed tree")):
                self.say(f"run {seed + 1}, {tree}")
                run = self.bench.run(selection(ids), fixed=fixed, seed=seed)
                problem = not_a_run(run, tree)
                if problem is not None:
                    return before, after, problem
                kept.append(_outcomes(run, ids))
        return before, after, None

    def _output(self, found: Found) -> tuple[str | None, tuple[Problem, ...]]:
        """Of the fail-to-pass tests alone: what an agent would see when it runs them. Every prompt of the task
        shows it, so this run is judged like the others: it may fail by something else than the bug."""
        self.say("capturing the failure")
        ids = found.fail_to_pass
        run = self.bench.run(tuple(dict.fromkeys(map(function_id, ids))), fixed=False)
        broken = not_a_run(run, "pre-fix tree")
        before = dict.fromkeys(ids, "failed")
        problems = (broken,) if broken else check(ids, (), [before, _outcomes(run, ids)], ())
        return None if problems else tail(normalised(run.output, self.bench.places())), problems

    def _imported(self) -> tuple[str | None, Problem | None]:
        name = self.task.environment.import_name or _module_of(
            self.prepared.variants.targets, self.task.environment.pythonpath
        )
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
