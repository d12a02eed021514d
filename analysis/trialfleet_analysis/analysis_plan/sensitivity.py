"""Whether losses could have made the result, judged on first agent-started attempts, regardless of retries; and
whether time did."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from trialfleet_analysis.analysis_plan.measures import BUDGET
from trialfleet_designs.comparison.columns import (
    CellCounts,
    Columns,
    FourCounts,
    Scheme,
    counted,
    per_cell,
    rates,
)
from trialfleet_designs.comparison.compared import compare_tasks
from trialfleet_designs.comparison.contrast import Contrast, pair_tasks, side
from trialfleet_designs.comparison.judge import GOES_ON, RunJudge
from trialfleet_designs.comparison.plain import plain_test
from trialfleet_designs.comparison.tasks_like_these import TasksClaim
from trialfleet_statistics.comparisons import StratifiedTest, paired_t_on_tasks, stratified_exact
from trialfleet_statistics.drift import DriftTrial, autocorrelation, balance, loss_drift, order_effect
from trialfleet_statistics.estimates import Bools, Estimand, Integers, Interval, Test
from trialfleet_statistics.intervals import stratified_miettinen_nurminen
from trialfleet_statistics.missing import FourCounts as Arms
from trialfleet_statistics.missing import loss_by_condition
from trialfleet_statistics.missing.scenarios import (
    FEW_CHOICES,
    SixCounts,
    assumed,
    exact,
    judged,
    tipping,
)

ScenarioName = Literal["as_measured", "complete_case", "lost_as_failed", "worst", "best"]


SensitivityName = Literal["own_memory_as_lost", "per_protocol"]


@dataclass(frozen=True)
class ScenarioFinding:
    """The primary contrast if what is missing had gone one way. `sign`: of the difference: 1, 0 or −1. `goes_on`:
    the look that was taken last would not have ended the campaign."""

    name: ScenarioName
    difference: float | None
    p_value: float | None
    rejects: bool
    sign: int
    goes_on: bool = False


@dataclass(frozen=True)
class RobustnessFinding:
    """The primary contrast as measured, and on first agent-started attempts under four assumptions. `missing`:
    trials whose first such attempt was lost, even if a retry was measured, and `forged` ones. `robust`: all lead
    to the same decision, sign included, and so does every adverse resolution of some of them that was tried.
    `tipping_point`: the fewest missing trials whose adverse resolution changes the complete case's decision; None:
    no number of them does. `tipping_exhaustive`: no smaller choice is left untried; else fewer might do."""

    treatment: str
    control: str
    estimand: Estimand
    missing_treatment: int
    missing_control: int
    forged: int
    scenarios: tuple[ScenarioFinding, ...]
    robust: bool
    tipping_point: int | None
    tipping_exhaustive: bool

    @property
    def same_without(self) -> bool:
        """Whether the complete case decides as the measured trials do: only then is the tipping point the
        answer's. Else it rests on trials that are missing there: on retries, or on forged ones that failed."""
        ways = {one.name: (one.goes_on, one.rejects and one.sign) for one in self.scenarios}
        return ways["as_measured"] == ways["complete_case"]


@dataclass(frozen=True)
class Sensitivity:
    """The primary contrast, on these tasks, on another set of trials. `excluded`: valid trials left out, by
    arm."""

    name: SensitivityName
    excluded_treatment: int
    excluded_control: int
    difference: Interval
    test: StratifiedTest


@dataclass(frozen=True)
class LossTestFinding:
    """Whether conditions lost first runs unequally often: a small p is a warning, a large one no comfort.
    `monte_carlo_se`: of a sampled p; None: exact. `trials`: with an outcome, by condition."""

    test: Test
    monte_carlo_se: float | None
    conditions: tuple[str, ...]
    lost: tuple[int, ...]
    trials: tuple[int, ...]


@dataclass(frozen=True)
class _Judge:
    """A test of the contrast. `test`: p, and the side that it points to; `decide`: what follows; `by_task`: counts
    of its strata as those of tasks, for the difference. `choices`: of lost runs, how many are tried one by one.
    `compare`: of all tasks' counts under an assumption, those of the tasks that the contrast would be made of.
    `exchangeable`: the order of the tasks does not matter."""

    test: Callable[[Arms[Integers]], tuple[float | None, int]]
    decide: Callable[[Arms[Integers]], int]
    by_task: Callable[[Arms[Integers]], Arms[Integers]] = lambda counts: counts
    choices: int = FEW_CHOICES
    compare: Callable[[Arms[Integers]], Arms[Integers]] = lambda counts: counts
    exchangeable: bool = False


def robust(
    contrast: Contrast, scheme: Scheme, columns: Columns, counts: CellCounts, *, judge: RunJudge | None = None
) -> tuple[RobustnessFinding, ...]:
    """In both estimands, on tasks like these where repositories do not bear on their test; nothing without a task
    that has trials in both arms.

    Over all primary tasks, also those that the contrast leaves out since losses left them too few trials: they
    enter as far as an assumption gives them trials. A retry that measured does not undo the loss before it: longer
    runs are lost more often, and failures run longer. So the four assumptions are made on first agent-started
    attempts, and must decide as the measured trials do. With looks, `judge` takes them again on these tasks,
    under each assumption.
    """
    a, b = scheme.pair(contrast)
    compared = counts.tasks_of(scheme, contrast)
    as_measured = counts.arms(a, b, compared)
    first = columns.without(columns.first_missing | columns.forged)
    kept = counted(first, scheme)
    lost = per_cell(first, scheme, ~first.valid)
    some = (kept.valid[:, a] + lost[:, a] > 0) & (kept.valid[:, b] + lost[:, b] > 0)
    if not some.any():
        return ()
    arms = [(kept.passes[some, side], kept.valid[some, side], lost[some, side]) for side in (a, b)]
    six = (*arms[0], *arms[1])
    forged = int(np.sum(columns.forged & np.isin(columns.condition, (a, b))))
    on_these = _on_these(contrast, Arms(*as_measured), six, scheme, columns, judge, forged)
    if TasksClaim.of(scheme, compared, primary=True).several:
        return (*on_these,)  # the test by repositories is not that of tasks in any order
    like = _finding(contrast, "tasks_like_these", _fixed(_paired, scheme, six), Arms(*as_measured), six, forged)
    return (*on_these, like)


def _on_these(
    contrast: Contrast,
    measured: Arms[Integers],
    six: SixCounts,
    scheme: Scheme,
    columns: Columns,
    judge: RunJudge | None,
    forged: int,
) -> Iterator[RobustnessFinding]:
    """Nothing before the first look."""
    if judge is None:
        yield _finding(contrast, "these_tasks", _fixed(exact, scheme, six), measured, six, forged)
    elif scheme.decisions:
        own = _Judge(judge, judge.decide, judge.by_task, judge.choices)
        first = judge.count_first(contrast, scheme, columns)
        yield _finding(contrast, "these_tasks", own, judge.count_measured(scheme), first, forged)


def _fixed(test: Callable[[Arms[Integers]], tuple[float | None, int]], scheme: Scheme, six: SixCounts) -> _Judge:
    def compare(counts: Arms[Integers]) -> Arms[Integers]:
        return counts if scheme.keeps_thin else _without_thin(counts, six)

    return _Judge(
        test, lambda counts: judged("", counts, test, scheme.alpha).decision, compare=compare, exchangeable=True
    )


def _without_thin(counts: Arms[Integers], six: SixCounts) -> Arms[Integers]:
    """As the contrast: without the tasks that are thin as long as the other lost trials stay missing."""
    valid = np.column_stack([counts.trials_a, counts.trials_b])
    ended = np.column_stack([six[1] + six[2], six[4] + six[5]])
    tasks = [str(task) for task in range(len(valid))]
    kept = compare_tasks(tasks, valid, ended).mask_among(tasks)
    return Arms(*(each[kept] for each in counts))


def _finding(
    contrast: Contrast,
    estimand: Estimand,
    judge: _Judge,
    measured: Arms[Integers],
    six: SixCounts,
    forged: int,
) -> RobustnessFinding:
    named = {"as measured": measured}
    named |= {name: judge.compare(counts) for name, counts in assumed(six).items()}
    decisions = {name: judge.decide(counts) for name, counts in named.items()}

    def decide(counts: Arms[Integers]) -> int:
        return judge.decide(judge.compare(counts))

    found = tipping(
        six,
        decisions["complete case"],
        _remember(decide, six) if judge.exchangeable else decide,
        choices=judge.choices,
    )
    return RobustnessFinding(
        treatment=contrast.treatment,
        control=contrast.control,
        estimand=estimand,
        missing_treatment=int(six[2].sum()),
        missing_control=int(six[5].sum()),
        forged=forged,
        scenarios=tuple(
            _scenario(cast("ScenarioName", name.replace(" ", "_")), counts, judge, decisions[name])
            for name, counts in named.items()
        ),
        robust=len(set(decisions.values())) == 1 and found.point is None,
        tipping_point=found.point,
        tipping_exhaustive=found.exhaustive,
    )


def _remember(decide: Callable[[Arms[Integers]], int], six: SixCounts) -> Callable[[Arms[Integers]], int]:
    """`decide`, asked once for all choices that give the same counts in another order of the tasks: where many
    tasks lost as many, these are most."""
    ended = six[1] + six[2], six[4] + six[5]
    known: dict[bytes, int] = {}

    def recall(counts: Arms[Integers]) -> int:
        rows = np.column_stack([*counts, *ended])
        key = rows[np.lexsort(rows.T)].tobytes()
        if key not in known:
            known[key] = decide(counts)
        return known[key]

    return recall


def _scenario(name: ScenarioName, counts: Arms[Integers], judge: _Judge, decision: int) -> ScenarioFinding:
    p_value, sign = judge.test(counts)
    return ScenarioFinding(
        name, difference(judge.by_task(counts)), p_value, decision in (1, -1), sign, goes_on=decision == GOES_ON
    )


def sensitivities(contrast: Contrast, scheme: Scheme, columns: Columns) -> tuple[Sensitivity, ...]:
    """The primary contrast with the agent's own out-of-memory as lost, and without trials whose declared delivery
    was not seen to reach the model."""
    return (
        _without(columns.own_memory, "own_memory_as_lost", contrast, scheme, columns),
        _without(columns.undelivered, "per_protocol", contrast, scheme, columns),
    )


def loss_test(scheme: Scheme, columns: Columns) -> LossTestFinding:
    """Trials whose first agent-started attempt gave nothing to count, by condition. What the operator stopped is
    compared apart (`losses.operator_stops`)."""
    lost = [int(np.sum(columns.first_lost & (columns.condition == c))) for c in range(len(scheme.conditions))]
    trials = [int(np.sum(columns.condition == c)) for c in range(len(scheme.conditions))]
    found = loss_by_condition(lost, trials, seed=scheme.seed_of("loss by condition"))
    return LossTestFinding(plain_test(found), found.standard_error, scheme.conditions, tuple(lost), tuple(trials))


def difference(four: FourCounts) -> float | None:
    """Mean over tasks with valid trials in both arms; None without one."""
    x_a, n_a, x_b, n_b = _measured(four)
    return float(np.mean(x_a / n_a - x_b / n_b)) if n_a.size else None


def _paired(counts: Arms[Integers]) -> tuple[float | None, int]:
    x_a, n_a, x_b, n_b = _measured(counts)
    return paired_t_on_tasks(rates(x_a, n_a), rates(x_b, n_b)).p_value, side(difference(counts))


def _measured(four: FourCounts) -> FourCounts:
    some = (four[1] > 0) & (four[3] > 0)
    return four[0][some], four[1][some], four[2][some], four[3][some]


def _without(
    lost: Bools, name: SensitivityName, contrast: Contrast, scheme: Scheme, columns: Columns
) -> Sensitivity:
    a, b = scheme.pair(contrast)
    out = lost & columns.valid
    counts = counted(columns.without(out), scheme)
    four = counts.arms(a, b, pair_tasks(scheme, columns.without(out), counts, a, b).mask_among(scheme.tasks))
    interval: Interval = stratified_miettinen_nurminen(*four, level=1 - scheme.alpha)
    return Sensitivity(
        name=name,
        excluded_treatment=int(np.sum(out & (columns.condition == a))),
        excluded_control=int(np.sum(out & (columns.condition == b))),
        difference=interval,
        test=stratified_exact(*four),
    )


@dataclass(frozen=True)
class DriftCheck:
    """One check of order and time. `blinded`: conditions are strata, and none is shown. `difference`: second
    half less first half, in rates, where halves are compared. `monte_carlo_se`: of a p by shuffling.
    `contiguous`: conditions that ran alone in one stretch."""

    name: Literal["order_effect", "balance", "loss_drift", "autocorrelation"]
    question: str
    blinded: bool
    test: Test
    difference: float | None
    contiguous: tuple[str, ...]
    monte_carlo_se: float | None = None


SHUFFLES = 1_999
QUESTIONS = (
    "Did the second half pass more, or less, than the first?",
    "Did conditions run at different hours?",
    "Were more trials lost in the second half, or fewer?",
    "Is a rep more like the rep before it than like others of its cell?",
)


def drift_checks(scheme: Scheme, columns: Columns) -> tuple[DriftCheck, ...]:
    """All but `balance` are blinded: conditions are strata in them, and no condition's rate is shown. What the
    halving has left out ran at other hours by design."""
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
        if scheme.conditions[int(condition)] not in scheme.left_out
    ]
