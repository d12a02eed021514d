"""The declared metric: its ratio in a typical task, that of the bill, what looks said, and what lost runs could
change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme, TrialsTaken, per_cell
from trialfleet_designs.comparison.compared import ComparedTasks, compare_tasks
from trialfleet_designs.metric import effort
from trialfleet_designs.metric.looks import design_of_metric, log_values
from trialfleet_designs.protocol import Observed
from trialfleet_ledger.designs.looks import Decision, MetricResult, Verdict, stopped
from trialfleet_ledger.designs.metric import MAY_BE_ABSENT, PARTS, ComparedMetric, MetricPrimary
from trialfleet_statistics.continuous import pool_variation
from trialfleet_statistics.estimates import Bools, Floats, Interval, floats, rejects
from trialfleet_statistics.sequential import MeanStage, PermutedMeans, permute_means

MetricLossName = Literal["as_measured", "complete_case", "treatment_low", "treatment_high"]
NO_TASK = "no task has a value of the metric on both sides"
NO_LOOK = "no declared look has been taken yet"
MOST = 1e6  # times: an interval's end beyond it is unbounded


@dataclass(frozen=True)
class MetricUnderLoss:
    """The metric if what is missing had been one way. `direction`: of what the test decides: −1 less, 1 more,
    0."""

    name: MetricLossName
    ratio: float | None
    p_value: float | None
    direction: int


@dataclass(frozen=True)
class MetricLook:
    """One look that was taken. `obeyed`: False where the operator went on."""

    number: int
    blocks: int
    result: MetricResult
    obeyed: bool


@dataclass(frozen=True)
class MetricSide:
    """One condition: mean over the tasks' mean values; mean of the tasks' pass rates; trials with a value; valid
    ones without; those that hit a limit; `spread`: the pooled coefficient of variation within tasks."""

    condition: str
    mean: float | None
    rate: float | None
    trials: int
    missing: int
    cut_off: int
    spread: float | None


@dataclass(frozen=True)
class MetricFinding:
    """`ratio`: treatment over control in a typical task: exp of the mean over tasks of the differences of mean
    logs. `bill`: of the mean values over the tasks, the ratio that an invoice shows. `compared`: the tasks.
    `p_value`: two-sided, None with the `reason`; `direction`: 1 the treatment takes more, −1 less. `scenarios`: as
    measured, then with lost first runs assumed; none where nothing was. `planned`: the blocks after which is
    looked, empty for a fixed end; `ended`: why the campaign is over at a look. `trials` of `planned_trials`: all
    that ran for it. `withdrawn`: data of a look no longer count."""

    metric: ComparedMetric
    alpha: float
    effect: float | None
    compared: ComparedTasks
    treatment: MetricSide
    control: MetricSide
    ratio: Interval
    bill: float | None
    p_value: float | None
    direction: int
    reason: str | None
    scenarios: tuple[MetricUnderLoss, ...]
    lost: int
    planned: tuple[int, ...]
    taken: tuple[MetricLook, ...]
    ended: Verdict | None
    trials: TrialsTaken
    planned_trials: int
    withdrawn: bool
    monitored: bool

    @property
    def shown(self) -> bool:
        """Whether a difference is."""
        return self.p_value is not None and rejects(self.p_value, self.alpha)

    @property
    def goes_on(self) -> bool:
        """Whether later trials may still show one."""
        return self.ended is None and (self.monitored or bool(self.planned))

    @property
    def robust(self) -> bool:
        """Whether every assumption about lost first runs leads to the same decision."""
        return len({one.direction for one in self.scenarios}) < 2


def metric_finding(declared: MetricPrimary, observed: Observed) -> MetricFinding:
    scheme, sides = observed.scheme, (declared.treatment, declared.control)
    columns = _select_sides(observed, sides)
    test = _MetricTest(declared, scheme, columns)
    values = measure_columns(columns, declared.metric)
    compared, found = test.compare(log_values(values)), None
    looks = len(scheme.decisions)
    if compared.tasks and (looks or declared.stop is None):
        paths = effort.AT_A_FIXED_END if declared.stop is None else effort.AT_LOOKS
        found = test.permute(log_values(values), compared, paths)
    ended = _how_ended(scheme.decisions, declared, scheme.planned_reps)
    within = columns.select_trials(compared.mask_among(scheme.tasks)[columns.task])
    a, b = (_side(name, scheme, within, declared.metric) for name in sides)
    reason = None if found is not None else NO_LOOK if declared.stop is not None and not looks else NO_TASK
    last = None if found is None else found.look(max(1, looks))
    return MetricFinding(
        metric=declared.metric,
        alpha=declared.alpha,
        effect=declared.effect,
        compared=compared,
        treatment=a,
        control=b,
        ratio=_ratio(found, max(1, looks), declared, int(within.task.size), ended, reason),
        bill=None if a.mean is None or not b.mean else a.mean / b.mean,
        p_value=None if last is None or last.difference is None else last.p_value,
        direction=0 if last is None or last.difference is None else int(np.sign(last.difference)),
        reason=reason,
        scenarios=tuple(_scenarios(test, values, columns, found)),
        lost=int(columns.first_missing.sum()),
        planned=() if declared.stop is None else design_of_metric(declared, scheme.planned_reps).looks,
        taken=tuple(_look(one) for one in scheme.decisions),
        ended=ended,
        trials=observed.ran.count_up_to(_stop_block(scheme.decisions)),
        planned_trials=observed.ran.tasks * len(scheme.conditions) * (scheme.planned_reps or scheme.reps),
        withdrawn=observed.withdrawn,
        monitored=scheme.monitored,
    )


def measure_columns(columns: Columns, metric: ComparedMetric) -> Floats:
    """Of each trial, NaN where it was not measured."""
    nothing = np.full(columns.task.shape, np.nan)
    parts = {name: columns.measures.get(name, nothing) for name in PARTS[metric]}
    every = [np.nan_to_num(part) if name in MAY_BE_ABSENT else part for name, part in parts.items()]
    return floats(np.where(columns.valid, np.sum(every, axis=0), np.nan))


def _select_sides(observed: Observed, sides: tuple[str, str]) -> Columns:
    """The trials of both conditions, up to the last look where any was taken."""
    scheme, columns = observed.scheme, observed.columns
    places = [scheme.conditions.index(name) for name in sides]
    kept = np.isin(columns.condition, places)
    if scheme.decisions:
        kept &= columns.block < scheme.decisions[-1].blocks
    return columns.select_trials(kept)


@dataclass(frozen=True)
class _MetricTest:
    """The declared test, on any values of the same trials."""

    declared: MetricPrimary
    scheme: Scheme
    columns: Columns

    def compare(self, logs: Floats) -> ComparedTasks:
        places = [self.scheme.conditions.index(name) for name in self.declared.sides.values()]
        known = per_cell(self.columns, self.scheme, np.isfinite(logs))[:, places]
        ended = per_cell(self.columns, self.scheme, np.ones_like(self.columns.valid))[:, places]
        return compare_tasks(self.scheme.tasks, known, ended, keep_thin=self.scheme.keeps_thin)

    def permute(self, logs: Floats, compared: ComparedTasks, paths: int) -> PermutedMeans:
        design = design_of_metric(self.declared, self.scheme.planned_reps or self.scheme.reps)
        bounds = [one.blocks for one in self.scheme.decisions] or [int(self.columns.block.max(initial=0)) + 1]
        used = np.isfinite(logs) & compared.mask_among(self.scheme.tasks)[self.columns.task]
        treatment = self.scheme.conditions.index(self.declared.treatment)
        stages = [
            self._stage(used & (self.columns.block >= first) & (self.columns.block < last), logs, treatment)
            for first, last in zip([0, *bounds], bounds, strict=False)
        ]
        levels = design.levels()[: len(stages)]
        return permute_means(stages, self.scheme.tasks, levels, seed=self.scheme.seed, paths=paths)

    def _stage(self, here: Bools, logs: Floats, treatment: int) -> MeanStage:
        of_treatment = (self.columns.condition[here] == treatment).astype(np.int64)
        return MeanStage(logs[here], of_treatment, self.columns.task[here])


def _ratio(
    found: PermutedMeans | None,
    number: int,
    declared: MetricPrimary,
    trials: int,
    ended: Verdict | None,
    reason: str | None,
) -> Interval:
    """With limits by the test's own order; where no crossing or end has decided, repeated ones."""
    level = 1 - declared.alpha
    if found is None or math.isnan(float(found.observed[number - 1])):
        return Interval(None, None, None, level, trials, "permutation", "these_tasks", reason or NO_TASK)
    repeated = declared.stop is not None and ended not in ("benefit", "harm", "end")
    low, high = found.limits(number, level, repeated=repeated)
    method = "permutation, repeated" if repeated else "permutation"
    estimate = math.exp(float(found.observed[number - 1]))
    return Interval(estimate, _times(low), _times(high), level, trials, method, "these_tasks")


def _times(log: float | None) -> float | None:
    return None if log is None or abs(log) > math.log(MOST) else math.exp(log)


def _side(name: str, scheme: Scheme, columns: Columns, metric: ComparedMetric) -> MetricSide:
    mine = columns.select_trials(columns.condition == scheme.conditions.index(name))
    values = measure_columns(mine, metric)
    known = np.isfinite(values) & (values > 0)
    tasks = np.unique(mine.task[known])
    means = [float(values[known & (mine.task == task)].mean()) for task in tasks]
    rates = [float(mine.passed[mine.valid & (mine.task == task)].mean()) for task in tasks]
    return MetricSide(
        condition=name,
        mean=float(np.mean(means)) if means else None,
        rate=float(np.mean(rates)) if rates else None,
        trials=int(known.sum()),
        missing=int(np.sum(mine.valid & ~known)),
        cut_off=int(np.sum(mine.cut_off & known)),
        spread=pool_variation(values, mine.task),
    )


def _how_ended(decisions: Sequence[Decision], declared: MetricPrimary, reps: int) -> Verdict | None:
    end = stopped(decisions)
    if end is None and declared.stop is not None and len(decisions) == len(declared.stop.blocks(reps)):
        end = decisions[-1]
    return None if end is None else _result(end).verdict


def _stop_block(decisions: Sequence[Decision]) -> int | None:
    end = stopped(decisions)
    return None if end is None else end.blocks


def _result(decision: Decision) -> MetricResult:
    assert isinstance(decision.result, MetricResult), "this campaign's looks are at a metric"
    return decision.result


def _look(decision: Decision) -> MetricLook:
    return MetricLook(decision.number, decision.blocks, _result(decision), decision.obeyed)


def _scenarios(
    test: _MetricTest, values: Floats, columns: Columns, measured: PermutedMeans | None
) -> Iterator[MetricUnderLoss]:
    """Lost first runs left out; then those of the treatment at the least that its task has shown, and those of the
    control at the limit or the most, and the other way round."""
    if measured is None or not columns.first_missing.any():
        return
    yield _scenario("as_measured", test, measured)
    first = np.where(columns.first_missing, np.nan, values)
    yield _scenario("complete_case", test, _again(test, first))
    treated = columns.condition == test.scheme.conditions.index(test.declared.treatment)
    least, most = _task_range(test, values)
    assumed: dict[MetricLossName, Bools] = {"treatment_low": treated, "treatment_high": ~treated}
    for name, low in assumed.items():
        filled = np.where(columns.first_missing, np.where(low, least, most), first)
        yield _scenario(name, test, _again(test, filled))


def _task_range(test: _MetricTest, values: Floats) -> tuple[Floats, Floats]:
    """Of each trial: the least and the most that its task has shown on either side, at most the declared limit."""
    limit = {"cost_usd": test.scheme.cap_usd, "agent_s": test.scheme.limit_s}.get(test.declared.metric)
    least, most = np.full(values.shape, np.nan), np.full(values.shape, np.nan)
    for task in np.unique(test.columns.task):
        mine = test.columns.task == task
        known = values[mine & np.isfinite(values) & (values > 0)]
        if known.size:
            least[mine], most[mine] = known.min(), max(float(known.max()), limit or 0.0)
    return floats(least), floats(most)


def _again(test: _MetricTest, values: Floats) -> PermutedMeans | None:
    logs = log_values(values)
    compared = test.compare(logs)
    return test.permute(logs, compared, effort.UNDER_LOSS) if compared.tasks else None


def _scenario(name: MetricLossName, test: _MetricTest, found: PermutedMeans | None) -> MetricUnderLoss:
    last = None if found is None else found.look(int(found.observed.size))
    if last is None or last.difference is None:
        return MetricUnderLoss(name, None, None, 0)
    decided = int(np.sign(last.difference)) if rejects(last.p_value, test.declared.alpha) else 0
    return MetricUnderLoss(name, math.exp(last.difference), last.p_value, decided)
