"""Manifests and configuration that a fix changes: scored as they were before it, unless the fix needs them."""

from __future__ import annotations

from collections.abc import Callable

from trialfleet_tasks.validate.inputs import Prepared
from trialfleet_tasks.validate.record import Problem, ProblemKind, Validation

# What other manifests or another configuration may change. What was too slow, flaky or without a network stays so.
_BY_SETTINGS = {
    ProblemKind.FAILS_AT_FIX,
    ProblemKind.NO_FAIL_TO_PASS,
    ProblemKind.NOT_AS_TEST,
    ProblemKind.MISSING_TEST,
    ProblemKind.COLLECTION_ERROR,
    ProblemKind.NO_TESTS_COLLECTED,
    ProblemKind.USAGE_ERROR,
    ProblemKind.INTERNAL_ERROR,
    ProblemKind.NO_JUNIT,
    ProblemKind.EXIT_CODE,
    ProblemKind.OUTSIDE_WORKSPACE,
}


def validate_with_settings(prepared: Prepared, validate: Callable[[Prepared], Validation]) -> Validation:
    """Validate the task, and if it does not hold, with the fix's manifests and configuration in the scored tree:
    then they belong to the tests' side, which no agent's patch changes. A task whose tests pass with them alone is
    refused: no patch could hold its fix. `validate`: validates the task with these inputs."""
    first, settings = validate(prepared), tuple(prepared.variants.settings)
    if not settings or _BY_SETTINGS.isdisjoint(problem.kind for problem in first.problems):
        return first
    second = validate(prepared.with_test_side(settings))
    if not second.problems:
        return second.model_copy(update={"test_side": (*settings, *second.test_side)})
    if any(problem.kind is ProblemKind.ALREADY_PASSES for problem in second.problems):
        return first.model_copy(update={"problems": (_in_test_side(settings),)})
    return first


def _in_test_side(settings: tuple[str, ...]) -> Problem:
    return Problem(
        kind=ProblemKind.FIX_IN_TEST_SIDE,
        message=f"the tests pass with the fix's changes of {', '.join(settings)} alone, which no patch may hold",
        hint="choose another task: manifests and the runner's configuration do not travel",
    )
