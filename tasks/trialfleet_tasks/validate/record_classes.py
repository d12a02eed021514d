"""The classes of a task's files, by the look-ups of one more run at each tree where they can be recorded."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.patch import applied
from trialfleet_repository.testrun import TestRun
from trialfleet_tasks.validate.inputs import Prepared
from trialfleet_tasks.validate.judge import not_a_run
from trialfleet_tasks.validate.lookups import LookupsUnknown, refuse_tracing
from trialfleet_tasks.validate.product_classes import PathLookups, TooManyLookups, find_classes
from trialfleet_tasks.validate.runs import TaskRunner


@dataclass(frozen=True)
class RecordedClasses:
    """`warnings`: why the rule of names holds, if it does."""

    classes: PatchClasses
    warnings: tuple[str, ...] = ()


def record_classes(prepared: Prepared, runner: TaskRunner, tests: tuple[str, ...]) -> RecordedClasses:
    """`tests`: pass at the fixed tree. Those that fail at the other one look up what describes failures, too."""
    variants, roots = prepared.variants, prepared.environment.pythonpath
    try:
        refuse_tracing(runner.sandbox.capabilities)
        fixed, passing = runner.run_traced(tests, applied(variants.pristine, variants.fix), fixed=True)
        _check_passing(fixed, tests)
        _, failing = runner.run_traced(tests, variants.pristine, fixed=False)
        lookups = PathLookups(passing.hits | failing.hits, passing.misses | failing.misses)
        return RecordedClasses(find_classes(variants, roots, lookups))
    except (LookupsUnknown, TooManyLookups) as error:
        return RecordedClasses(
            find_classes(variants, roots, None), (f"look-ups of the tests are not recorded: {error}",)
        )


def _check_passing(run: TestRun, tests: tuple[str, ...]) -> None:
    problem = not_a_run(run, "fixed")
    if problem is not None:
        raise LookupsUnknown(f"under strace, {problem.message}")
    failed = next((result.id for result in run.results(tests) if result.outcome != "passed"), None)
    if failed is not None:
        raise LookupsUnknown(f"under strace, {failed} does not pass")
