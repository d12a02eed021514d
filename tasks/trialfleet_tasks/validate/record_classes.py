"""The classes of a task's files, by the look-ups of one more run where they can be recorded."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.patch import applied
from trialfleet_tasks.validate.inputs import Prepared
from trialfleet_tasks.validate.judge import not_a_run
from trialfleet_tasks.validate.lookups import LookupsUnknown, refuse_tracing
from trialfleet_tasks.validate.product_classes import TooManyLookups, find_classes
from trialfleet_tasks.validate.runs import TaskRunner


@dataclass(frozen=True)
class RecordedClasses:
    """`warnings`: why the rule of names holds, if it does."""

    classes: PatchClasses
    warnings: tuple[str, ...] = ()


def record_classes(prepared: Prepared, runner: TaskRunner, tests: tuple[str, ...]) -> RecordedClasses:
    """`tests`: pass at the fixed tree."""
    variants, roots = prepared.variants, prepared.environment.pythonpath
    try:
        refuse_tracing(runner.sandbox.capabilities)
        tree = applied(variants.pristine, variants.fix)
        run, lookups = runner.run_traced(tests, tree)
        problem = not_a_run(run, "fixed")
        if problem is not None:
            raise LookupsUnknown(f"under strace, {problem.message}")
        failed = next((result.id for result in run.results(tests) if result.outcome != "passed"), None)
        if failed is not None:
            raise LookupsUnknown(f"under strace, {failed} does not pass")
        return RecordedClasses(find_classes(variants, roots, lookups))
    except (LookupsUnknown, TooManyLookups) as error:
        return RecordedClasses(
            find_classes(variants, roots, None), (f"look-ups of the tests are not recorded: {error}",)
        )
