"""Does a task hold? Its fail-to-pass tests fail as tests before the fix, and all its tests pass after it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath

from trialfleet_runner.attempt.scratch import locked, scratch_root
from trialfleet_runner.cache import Cache, write_whole
from trialfleet_runner.canonical import canonical_json, digest, sha256
from trialfleet_runner.context.anchor import anchor_for
from trialfleet_runner.contexts import context_tree, coverage
from trialfleet_runner.contract import EnvironmentRef
from trialfleet_runner.environment import build, environment_ref
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.interpreters import find_interpreter
from trialfleet_runner.junit import function_id, outcomes
from trialfleet_runner.objects import Objects
from trialfleet_runner.sandbox.protocol import Sandbox
from trialfleet_runner.sources.materialise import materialise
from trialfleet_runner.strip import leftovers, unused
from trialfleet_runner.task import Status
from trialfleet_runner.taskfile import LoadedTask
from trialfleet_runner.testrun import Suite, TestRun, selection
from trialfleet_runner.trees import pack
from trialfleet_runner.validate.judge import Found, Outcomes, check, discover, not_a_run, steady
from trialfleet_runner.validate.output import normalised, tail
from trialfleet_runner.validate.record import NodeCoverage, Problem, ProblemKind, Validation
from trialfleet_runner.validate.runs import Bench
from trialfleet_runner.variants import Variants, variants
from trialfleet_runner.workspace import build_template, template_of

METHOD = 1  # of validation itself: raise it when older results say less
TIMEOUT_S = 300.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A task's trees, environment and pristine tree's tar, and the digest of all that decides its validation."""

    variants: Variants
    commit_message: str | None
    environment: EnvironmentRef
    lock: bytes
    pristine: bytes
    digest: str


def prepare_inputs(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path], sandbox: Sandbox) -> Prepared:
    """Trees and environment by the task's facts; nothing is run. Raises `OperatorError`."""
    trees = materialise(task, cache=cache, mirrors=mirrors)
    found = variants(task, trees)
    lock = task.lock_path.read_bytes()
    python = find_interpreter(task.environment.python, for_other_uid=sandbox.name == "uid")
    ref = environment_ref(task.environment, lock, python)
    pristine = pack(found.pristine)
    facts = {
        "method": METHOD,
        "harness": _version(),
        "task": task.spec.model_dump(mode="json", exclude={"status", "contexts", "environment"}),
        "command": task.environment.test_command,
        "pythonpath": task.environment.pythonpath,
        "import_name": task.environment.import_name,
        "environment": ref.digest,
        "pristine": sha256(pristine),
        "fix": [[path, sha256(entry.data) if entry else None] for path, entry in sorted(found.fix.items())],
        "isolation": sandbox.name,
    }
    return Prepared(found, trees.commit_message, ref, lock, pristine, digest(facts))


def validate_task(
    task: LoadedTask,
    *,
    repeats: int,
    sandbox: Sandbox,
    cache: Cache,
    objects: Objects,
    mirrors: Mapping[str, Path],
    timeout_s: float = TIMEOUT_S,
    fresh: bool = False,
    say: Say = lambda _: None,
) -> Validation:
    """The task's validation, from the cache when one with as many repeats is there (`fresh`: never).

    What the task itself is to blame for is a problem of the result; only what concerns the machine as a whole
    (sandbox, store) raises.
    """
    started = time.time()
    try:
        prepared = prepare_inputs(task, cache=cache, mirrors=mirrors, sandbox=sandbox)
    except OperatorError as error:
        return _failed(task, error, repeats, sandbox, started)
    kept = None if fresh else load(prepared.digest, repeats, cache=cache, objects=objects)
    if kept is not None:
        return _with_contexts(kept, task, objects)
    say("environment")
    try:
        environment = build(prepared.environment, prepared.lock, cache=cache, for_other_uid=sandbox.name == "uid")
    except OperatorError as error:
        return _failed(task, error, repeats, sandbox, started, kind=ProblemKind.ENVIRONMENT)
    template = build_template(
        template_of(sha256(prepared.pristine), None, cache=cache), prepared.variants.pristine
    )
    suite = Suite(environment, task.environment.test_command, task.environment.pythonpath, timeout_s)
    with locked(scratch_root(), f"validate-{os.getpid()}-{prepared.digest[:12]}") as scratch:
        bench = Bench(suite, template, prepared.variants.fix, sandbox, scratch.root / "bench")
        bench.scratch.mkdir(mode=0o755)
        result = _Validator(task, prepared, bench, repeats, objects, say).validation(started)
    save(result, cache=cache)
    return _with_contexts(result, task, objects)


def load(key: str, repeats: int, *, cache: Cache, objects: Objects) -> Validation | None:
    """The kept validation, when it was repeated often enough and its output is still to be had."""
    path = cache.validations / f"{key}.json"
    if not path.exists():
        return None
    try:
        kept = Validation.model_validate_json(path.read_bytes())
    except ValueError:
        return None
    enough = kept.repeats >= repeats and (kept.output is None or objects.has(kept.output))
    return kept if enough else None


def save(validation: Validation, *, cache: Cache) -> None:
    """Keep it. A problem that time may mend (an index, a mirror) never gets here."""
    write_whole(cache.validations / f"{validation.digest}.json", canonical_json(validation))


def _version() -> str:
    try:
        return version("trialfleet")
    except PackageNotFoundError:
        return "source"


def _failed(
    task: LoadedTask,
    error: OperatorError,
    repeats: int,
    sandbox: Sandbox,
    started: float,
    kind: ProblemKind = ProblemKind.SOURCE,
) -> Validation:
    if "is a directory" in error.message:
        kind = ProblemKind.TEST_FILE_IS_DIRECTORY
    elif error.where is not None and error.where.endswith("test_file"):
        kind = ProblemKind.WRONG_PATH
    where = f"{error.where}: " if error.where else ""
    return Validation(
        task=task.id,
        digest="0" * 64,
        status=Status.UNVALIDATED,
        problems=(Problem(kind=kind, message=f"{where}{error.message}", hint=error.hint),),
        repeats=repeats,
        isolation=sandbox.name,
        at=started,
        seconds=time.time() - started,
    )


def _with_contexts(validation: Validation, task: LoadedTask, objects: Objects) -> Validation:
    """Coverage by the task's contexts as they are now: they are no part of what is cached."""
    anchor = (validation.anchor,) if validation.anchor else ()
    paths = sorted({*validation.targets, *anchor})
    rows = tuple(
        NodeCoverage(context=name, path=path, node=node)
        for name in sorted(task.contexts)
        for path, node in coverage(context_tree(task, name, objects=objects), paths).items()
    )
    return validation.model_copy(update={"coverage": rows})


@dataclass(frozen=True)
class _Validator:
    """The steps for one task, on one bench."""

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
        output = self._output(found) if not problems and self._shown and found.fail_to_pass else None
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
            *(f"{path}: a context file is left in the workspace" for path in left),
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
        found = discover(*seen)
        if found.problems:
            return self._without_oracle(found)
        before, after, problem = self._repeated(found, range(1, max(2, self.repeats)))
        if problem is not None:
            return replace(found, problems=(problem,))
        return steady(found, before, after)

    def _without_oracle(self, found: Found) -> Found:
        """A task that never claimed a failing test may lack one; then it is only not counted."""
        if self._shown:
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

    def _output(self, found: Found) -> str:
        """Of the fail-to-pass tests alone: what an agent would see when it runs them."""
        self.say("capturing the failure")
        tests = tuple(dict.fromkeys(map(function_id, found.fail_to_pass)))
        run = self.bench.run(tests, fixed=False)
        return tail(normalised(run.output, self.bench.places()))

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
