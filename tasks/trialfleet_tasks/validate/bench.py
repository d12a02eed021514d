"""Where a task's tests run: a built environment, the two trees, a scratch folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.environment import metadata_of
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import build
from trialfleet_repository.environments.provided import provided
from trialfleet_repository.testrun import Suite
from trialfleet_repository.workspace import build_template, template_of
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_sandbox.scratch import claim_scratch, locked
from trialfleet_tasks.presets.packages import in_package
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.inputs import Prepared, prepare_inputs
from trialfleet_tasks.validate.judge import not_a_run, words
from trialfleet_tasks.validate.record import TreeName
from trialfleet_tasks.validate.runs import TaskRunner

# Of one run of tests: more is no test of a task that many run at once.
_MEMORY_BYTES = 8 * 2**30
_DISK_BYTES = 8 * 2**30
GO_ON = "--continue-on-collection-errors"  # of pytest: what cannot be collected keeps no other from running


@contextmanager
def bench(
    prepared: Prepared, environment: Path, *, cache: Cache, sandbox: Sandbox, timeout_s: float
) -> Generator[tuple[Prepared, TaskRunner]]:
    """The runner of the task's tests, and the task's inputs as they are in its environment."""
    variants, planned = prepared.variants, prepared.environment
    template = build_template(template_of(sha256(prepared.pristine), None, cache=cache), variants.pristine)
    paths = planned.pythonpath
    prepared = replace(prepared, variants=variants.in_environment(paths, lambda: provided(environment)))
    suite = Suite(
        environment,
        planned.test_command,
        paths,
        timeout_s,
        memory_bytes=_MEMORY_BYTES,
        disk_bytes=_DISK_BYTES,
        results=planned.results,
        env=planned.env,
        directory=planned.directory,
        metadata=metadata_of(planned.ref),
    )
    name = f"validate-{os.getpid()}-{threading.get_ident()}-{prepared.digest[:12]}"
    with locked(claim_scratch(), name) as scratch:
        runner = TaskRunner(suite, template, prepared.variants.fix, sandbox, scratch.runner / "bench")
        runner.scratch.mkdir(mode=0o755)
        yield prepared, runner


def passing_tests(
    task: LoadedTask,
    tests: Sequence[str],
    *,
    cache: Cache,
    mirrors: Mapping[str, Path],
    sandbox: Sandbox,
    timeout_s: float,
    say: Callable[[str], None],
    trees: Sequence[TreeName] = ("fixed", "pre_fix"),
) -> tuple[str, ...]:
    """Ids of tests, in these files, that pass in one run at each of the trees. Nothing where a run gave no
    results. Raises `OperatorError` as `prepare_inputs` and `build` do."""
    prepared = prepare_inputs(task, cache=cache, mirrors=mirrors, sandbox=sandbox)
    planned = prepared.environment
    environment = build(planned.ref, planned.source, cache=cache, for_other_uid=sandbox.capabilities.other_uid)
    given = [path for path in tests if path in prepared.variants.pristine]
    given = list(in_package(planned.ref.kind, prepared.variants.pristine, given, planned.directory))
    extra = (GO_ON,) if planned.results == "pytest" else ()
    found: list[set[str]] = []
    with bench(prepared, environment, cache=cache, sandbox=sandbox, timeout_s=timeout_s) as (_, runner):
        for tree in trees if given else ():
            say(f"the packages' tests, {words(tree)}")
            run = runner.run(given, fixed=tree == "fixed", extra=extra)
            outcomes = run.outcomes(given)
            if not outcomes and not_a_run(run, tree):
                return ()
            found.append({test for test, outcome in outcomes.items() if outcome == "passed"})
        places = runner.own_paths()
    both = found[0] & found[-1] if found else set[str]()
    return tuple(sorted(test for test in both if not any(place in test for place in places)))
