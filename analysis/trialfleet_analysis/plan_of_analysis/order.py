"""Whether time was a cause of its own: of passes, of losses, of who ran when."""

from __future__ import annotations

import math

from trialfleet_analysis.drift import DriftTrial, autocorrelation, balance, loss_drift, order_effect
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme
from trialfleet_analysis.plan_of_analysis.contrast import plain_test
from trialfleet_analysis.plan_of_analysis.measures import BUDGET
from trialfleet_analysis.report.document.outlook import DriftCheck

SHUFFLES = 1_999
QUESTIONS = (
    "Did the second half pass more, or less, than the first?",
    "Did conditions run at different hours?",
    "Were more trials lost in the second half, or fewer?",
    "Is a rep more like the rep before it than like others of its cell?",
)


def drift_checks(scheme: Scheme, columns: Columns) -> tuple[DriftCheck, ...]:
    """All but `balance` are blinded: conditions are strata in them, and no condition's rate is shown."""
    trials = _drift_trials(scheme, columns)
    effect, balanced, lost = order_effect(trials), balance(trials), loss_drift(trials)
    shuffles = max(199, min(SHUFFLES, BUDGET // (4 * max(1, len(trials))) - 1))
    correlated = autocorrelation(trials, resamples=shuffles, seed=scheme.seed_of("autocorrelation"))
    p = correlated.p_value
    error = None if p is None else math.sqrt(p * (1 - p) / (shuffles + 1))
    return (
        DriftCheck("order_effect", QUESTIONS[0], True, plain_test(effect), effect.difference, ()),
        DriftCheck("balance", QUESTIONS[1], False, plain_test(balanced), None, balanced.contiguous),
        DriftCheck("loss_drift", QUESTIONS[2], True, plain_test(lost), lost.difference, ()),
        DriftCheck("autocorrelation", QUESTIONS[3], True, plain_test(correlated), None, (), error),
    )


def _drift_trials(scheme: Scheme, columns: Columns) -> list[DriftTrial]:
    rows = zip(
        columns.task.tolist(),
        columns.condition.tolist(),
        columns.block.tolist(),
        columns.position.tolist(),
        columns.started_s.tolist(),
        columns.valid.tolist(),
        columns.passed.tolist(),
        columns.first_missing.tolist(),
        strict=True,
    )
    return [
        DriftTrial(
            scheme.tasks[int(task)],
            scheme.conditions[int(condition)],
            block,
            position,
            started if started == started else None,
            passed if valid else None,
            lost,
        )
        for task, condition, block, position, started, valid, passed, lost in rows
    ]
