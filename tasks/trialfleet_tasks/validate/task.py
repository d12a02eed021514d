"""Validates a task: its fail-to-pass tests fail as tests before the fix, and all its tests pass after it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trialfleet_deliveries.nodes import child_nodes
from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json, digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.task import Status
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import build
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_sandbox.scratch import scratch_root
from trialfleet_tasks.contexts import coverage, readable_context
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate import TIMEOUT_S
from trialfleet_tasks.validate.bench import bench
from trialfleet_tasks.validate.fix_settings import validate_with_settings
from trialfleet_tasks.validate.inputs import Prepared, prepare_inputs
from trialfleet_tasks.validate.product_classes import find_classes
from trialfleet_tasks.validate.record import NodeCoverage, Problem, ProblemKind, Validation
from trialfleet_tasks.validate.room import full_disk_named, refuse_full_disk
from trialfleet_tasks.validate.steps import Say, Untold, ValidationSteps
from trialfleet_tasks.variants import NothingToFix

_OF_ENVIRONMENT = re.compile(r"(?:^|: )environment\b")
# What a busy machine, or an environment as it was built, may be to blame for is asked again next time.
_NOT_KEPT = {
    ProblemKind.TIMEOUT,
    ProblemKind.RESOURCES,
    ProblemKind.SIGNAL,
    ProblemKind.INTERRUPTED,
    ProblemKind.COLLECTION_ERROR,
    ProblemKind.INTERNAL_ERROR,
    ProblemKind.MISSING_INTERPRETER,
    ProblemKind.NOT_EXECUTABLE,
}


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
    untold: Untold | None = None,
    prepared: Prepared | None = None,
) -> Validation:
    """The task's validation, from the cache when one with as many repeats is there (`fresh`: never). `untold`: as
    `ValidationSteps` has it; it depends on the task's trees alone. `prepared`: what `prepare_inputs` gave for it.

    What the task itself is to blame for is a problem of the result; only what concerns the machine as a whole
    (sandbox, store, a full disk) raises.
    """
    started, disks = time.time(), (cache.root, scratch_root())
    with full_disk_named(cache.root):
        try:
            prepared = prepared or prepare_inputs(task, cache=cache, mirrors=mirrors, sandbox=sandbox)
        except OperatorError as error:
            return _failed(task, error, repeats, sandbox, started)
        if untold is not None:
            prepared = replace(prepared, digest=digest([prepared.digest, "untold"]))
        kept = None if fresh else load(prepared.digest, repeats, cache=cache, objects=objects)
        if kept is not None:
            return _with_contexts(_classified(kept, prepared, cache=cache, objects=objects), task, objects)
        refuse_full_disk(*disks)
        say("environment")
        ref, source = prepared.environment.ref, prepared.environment.source
        try:
            environment = build(ref, source, cache=cache, for_other_uid=sandbox.capabilities.other_uid)
        except OperatorError as error:
            refuse_full_disk(*disks)
            return _failed(task, error, repeats, sandbox, started, kind=ProblemKind.ENVIRONMENT)

        def validate_trees(given: Prepared) -> Validation:
            with bench(given, environment, cache=cache, sandbox=sandbox, timeout_s=timeout_s) as (placed, runner):
                return ValidationSteps(task, placed, runner, repeats, objects, say, untold).validation(started)

        result = validate_with_settings(prepared, validate_trees)
    if result.problems:
        refuse_full_disk(*disks)
    if _NOT_KEPT.isdisjoint(problem.kind for problem in result.problems):
        save(result, cache=cache)
    return _with_contexts(result, task, objects)


def load(key: str, repeats: int, *, cache: Cache, objects: Objects) -> Validation | None:
    """The kept validation, if it was repeated often enough and its objects still exist."""
    path = cache.validations / f"{key}.json"
    if not path.exists():
        return None
    try:
        kept = Validation.model_validate_json(path.read_bytes())
    except ValueError:
        return None
    whole = all(objects.has(one) for one in (kept.output, kept.must_fail, kept.classes) if one is not None)
    return kept if whole and kept.repeats >= repeats else None


def _classified(kept: Validation, prepared: Prepared, *, cache: Cache, objects: Objects) -> Validation:
    """The kept validation with classes of files: by names, without a run, where it has none."""
    if not kept.holds or kept.classes is not None:
        return kept
    classes = find_classes(prepared.variants, prepared.environment.pythonpath, None)
    put = objects.put(canonical_json(classes))
    classified = kept.model_copy(update={"classes": put, "rule": classes.rule})
    save(classified, cache=cache)
    return classified


def save(validation: Validation, *, cache: Cache) -> None:
    """Keep the validation. Problems that may disappear (an index, a mirror, a busy machine) are never kept."""
    write_whole(cache.validations / f"{validation.digest}.json", canonical_json(validation))


def _kind(error: OperatorError) -> ProblemKind | None:
    """Problems that a more special error or its place names."""
    if isinstance(error, NothingToFix):
        return ProblemKind.CHANGES_ONLY_TESTS
    if "is a directory" in error.message:
        return ProblemKind.TEST_FILE_IS_DIRECTORY
    if error.where is not None and error.where.endswith("test_file"):
        return ProblemKind.WRONG_PATH
    if error.where is not None and error.where.endswith("anchor.path"):
        return ProblemKind.FACTS
    if error.where is not None and _OF_ENVIRONMENT.search(error.where):
        return ProblemKind.ENVIRONMENT
    return None


def _failed(
    task: LoadedTask,
    error: OperatorError,
    repeats: int,
    sandbox: Sandbox,
    started: float,
    kind: ProblemKind = ProblemKind.SOURCE,
) -> Validation:
    place = (error.where or "").removeprefix(task.where).removeprefix(": ")  # the task's is said of all problems
    where = f"{place}: " if place else ""
    return Validation(
        task=task.id,
        digest="0" * 64,
        status=Status.UNVALIDATED,
        problems=(Problem(kind=_kind(error) or kind, message=f"{where}{error.message}", hint=error.hint),),
        repeats=repeats,
        isolation=sandbox.name,
        at=started,
        seconds=time.time() - started,
    )


def _with_contexts(validation: Validation, task: LoadedTask, objects: Objects) -> Validation:
    """Coverage by the task's contexts as they are now: they are no part of what is cached."""
    anchor = (validation.anchor,) if validation.anchor else ()
    paths = sorted({*validation.targets, *anchor})
    rows: list[NodeCoverage] = []
    gaps: list[str] = []
    for name in sorted(task.contexts):
        tree = readable_context(task, name, objects=objects)
        if isinstance(tree, OperatorError):
            gaps.append(f"contexts.{name}: {tree.message}")
            continue
        found = coverage(tree, paths)
        rows += [NodeCoverage(context=name, path=path, node=node) for path, node in found.items()]
        if child_nodes(tree):  # of a single file at the root nobody expects it
            gaps += [
                f"{path}: changed by the fix, and no node of contexts.{name} below its root covers it"
                for path in validation.targets
                if found[path] is None
            ]
    return validation.model_copy(update={"coverage": tuple(rows), "warnings": (*validation.warnings, *gaps)})
