"""The declared metric: its ratio in a typical task, or the difference of means, the bill's ratio, what looks said,
and what lost runs could change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme, TrialsTaken, per_cell
from trialfleet_designs.comparison.compared import ComparedTasks, compare_tasks
from trialfleet_designs.metric import effort
from trialfleet_designs.metric.looks import design_of_metric, scale_values
from trialfleet_designs.monitoring import word_first_look
from trialfleet_designs.protocol import Observed
from trialfleet_ledger.designs.looks import Decision, MetricResult, Verdict, stopped
from trialfleet_ledger.designs.metric import MAY_BE_ABSENT, PARTS, ComparedMetric, MetricPrimary, MetricScale
from trialfleet_statistics.continuous import pool_variation
from trialfleet_statistics.estimates import TIES, Bools, Floats, Interval, floats, rejects
from trialfleet_statistics.sequential import MeanStage, PermutedMeans, permute_means

MetricLossName = Literal["as_measured", "complete_case", "treatment_low", "treatment_high"]
NO_TASK = "no task has a value of the metric on both sides"
NO_PAIRS = "no task has two blocks with a value of the metric on both sides"
LEAST_FOR_SPREAD = 2  # values in each arm of a task, of which a difference has an error
HALVINGS = 14  # of the range of a sequential p, which is then known to the fourth place
MOST = 1e6  # times: an interval's end beyond it is unbounded


@dataclass(frozen=True)
class MetricUnderLoss:
    """The metric if what is missing had been one way. `direction`: of what the test decides: −1 less, 1 more,
    0."""

    name: MetricLossName
    size: float | None
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
    """`size`: treatment over control in a typical task: exp of the mean over tasks of the differences of mean
    logs; on the scale of differences the mean over tasks of treatment less control. `uncached`: the same of the
    cost without a cache, with limits that hold whatever ended the campaign; None: nothing was cached, it is not
    known, or another metric is declared. `bill`: of the mean values over the tasks, the ratio that an invoice
    shows. `compared`: the tasks. `p_value`: two-sided, None with the `reason`; `direction`: 1 the treatment takes
    more, −1 less. `scenarios`: as measured, then with lost first runs assumed; none where nothing was. `planned`:
    the blocks after which is looked, empty for a fixed end; `ended`: why the campaign is over at a look. `trials`
    of `planned_trials`: all that ran for it. `withdrawn`: data of a look no longer count."""

    metric: ComparedMetric
    scale: MetricScale
    alpha: float
    effect: float | None
    compared: ComparedTasks
    treatment: MetricSide
    control: MetricSide
    size: Interval
    uncached: Interval | None
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
    looks, ended = len(scheme.decisions), _how_ended(scheme.decisions, declared, scheme.planned_reps)
    stagewise = declared.stop is None or (ended in ("benefit", "harm", "end") and not observed.withdrawn)
    test = _MetricTest(declared, scheme, columns, stagewise)
    values = test.choose(measure_columns(columns, declared.metric))
    compared, found = test.compare(values), None
    if compared.tasks and (looks or declared.stop is None):
        paths = effort.AT_A_FIXED_END if declared.stop is None else effort.AT_LOOKS
        found = test.permute(values, compared, paths)
    within = compared.mask_among(scheme.tasks)[columns.task]
    a, b = (_side(name, scheme, columns.select_trials(within), values[within]) for name in sides)
    planned = () if declared.stop is None else design_of_metric(declared, scheme.planned_reps).looks
    none = NO_TASK if declared.scale == "ratio" else NO_PAIRS
    reason = None if found is not None else word_first_look(planned) if planned and not looks else none
    last = None if found is None else found.look(max(1, looks))
    return MetricFinding(
        metric=declared.metric,
        scale=declared.scale,
        alpha=declared.alpha,
        effect=declared.effect,
        compared=compared,
        treatment=a,
        control=b,
        size=_size(found, max(1, looks), declared, int(within.sum()), reason, repeated=not stagewise),
        uncached=None if found is None else _uncached(test, compared, values, max(1, looks)),
        bill=None if a.mean is None or not b.mean else a.mean / b.mean,
        p_value=None if found is None or last is None or last.difference is None else test.p_value(found),
        direction=0 if last is None or last.difference is None else int(np.sign(last.difference)),
        reason=reason,
        scenarios=tuple(_scenarios(test, measure_columns(columns, declared.metric), columns, found)),
        lost=int(columns.first_missing.sum()),
        planned=planned,
        taken=tuple(_look(one) for one in scheme.decisions),
        ended=ended,
        trials=observed.ran.count_up_to(None if ended is None else scheme.decisions[-1].blocks),
        planned_trials=observed.ran.tasks * len(scheme.conditions) * (scheme.planned_reps or scheme.reps),
        withdrawn=observed.withdrawn,
        monitored=scheme.monitored,
    )


def collect_values(declared: MetricPrimary, observed: Observed, compared: ComparedTasks) -> MeanStage:
    """The values that the test of a fixed end averages, of the tasks that are compared, counted from 0."""
    columns = _select_sides(observed, (declared.treatment, declared.control))
    test = _MetricTest(declared, observed.scheme, columns, stagewise=True)
    scaled = scale_values(declared.scale, test.choose(measure_columns(columns, declared.metric)))
    kept = compared.mask_among(observed.scheme.tasks)
    used = test.stage(np.isfinite(scaled) & kept[columns.task], scaled)
    return replace(used, task=(np.cumsum(kept) - 1)[used.task])


def measure_columns(columns: Columns, metric: ComparedMetric | Literal["uncached_cost_usd"]) -> Floats:
    """Of each trial, NaN where it was not measured."""
    nothing = np.full(columns.task.shape, np.nan)
    names = (metric,) if metric == "uncached_cost_usd" else PARTS[metric]
    parts = {name: columns.measures.get(name, nothing) for name in names}
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
    """The declared test, on any values of the same trials. `stagewise`: the p of the last look is that of the
    answer: the campaign ended there, by a crossing or as planned, or it has no looks."""

    declared: MetricPrimary
    scheme: Scheme
    columns: Columns
    stagewise: bool

    @property
    def places(self) -> list[int]:
        """Of treatment and control, among the conditions."""
        return [self.scheme.conditions.index(name) for name in self.declared.sides.values()]

    def choose(self, values: Floats) -> Floats:
        """NaN where the test does not use one. A difference is balanced: it uses a block of a task where both
        sides have a value."""
        known = np.isfinite(values) & (values > 0)
        if self.declared.scale == "difference":
            block, treated = self.columns.block, self.columns.condition == self.places[0]
            pair = self.columns.task * (int(block.max(initial=0)) + 1) + block
            known &= np.isin(pair, pair[known & treated]) & np.isin(pair, pair[known & ~treated])
        return floats(np.where(known, values, np.nan))

    def compare(self, values: Floats) -> ComparedTasks:
        """Values by `choose`, as those of the others."""
        places = self.places
        known = per_cell(self.columns, self.scheme, np.isfinite(values))[:, places]
        if self.declared.scale == "difference":
            known[(known < LEAST_FOR_SPREAD).any(axis=1)] = 0
        ended = per_cell(self.columns, self.scheme, np.ones_like(self.columns.valid))[:, places]
        return compare_tasks(self.scheme.tasks, known, ended, keep_thin=self.scheme.keeps_thin)

    def permute(self, values: Floats, compared: ComparedTasks, paths: int) -> PermutedMeans:
        design = design_of_metric(self.declared, self.scheme.planned_reps or self.scheme.reps)
        bounds = [one.blocks for one in self.scheme.decisions] or [int(self.columns.block.max(initial=0)) + 1]
        scaled = scale_values(self.declared.scale, values)
        used = np.isfinite(scaled) & compared.mask_among(self.scheme.tasks)[self.columns.task]
        stages = [
            self.stage(used & (self.columns.block >= first) & (self.columns.block < last), scaled)
            for first, last in zip([0, *bounds], bounds, strict=False)
        ]
        levels = design.levels()[: len(stages)]
        studentised = self.declared.scale == "difference"
        return permute_means(
            stages, self.scheme.tasks, levels, seed=self.scheme.seed, paths=paths, studentised=studentised
        )

    def p_value(self, found: PermutedMeans) -> float:
        """Of the last look; where no crossing or end has decided, the least alpha at which a look so far would
        have stopped the campaign, from above."""
        number = int(found.observed.size)
        if self.stagewise:
            return found.look(number).p_value
        design = design_of_metric(self.declared, self.scheme.planned_reps or self.scheme.reps)

        def stops(alpha: float) -> bool:
            spent = replace(found, levels=design.levels(alpha)[:number])
            return any(spent.look(look).crossed for look in range(1, number + 1))

        alpha = self.declared.alpha
        below, above = (0.0, alpha) if stops(alpha) else (alpha, 1.0)
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            below, above = (below, middle) if stops(middle) else (middle, above)
        return above

    def stage(self, here: Bools, scaled: Floats) -> MeanStage:
        """The trials of `here`."""
        of_treatment = (self.columns.condition[here] == self.places[0]).astype(np.int64)
        return MeanStage(scaled[here], of_treatment, self.columns.task[here])


def _uncached(test: _MetricTest, compared: ComparedTasks, costs: Floats, number: int) -> Interval | None:
    """`costs`: of the trials that the declared test uses, each of which must have left this one, too."""
    used = np.isfinite(costs)
    values = np.where(used, measure_columns(test.columns, "uncached_cost_usd"), np.nan)
    if test.declared.metric != "cost_usd" or not np.all(values[used] > 0):
        return None
    if np.allclose(values[used], costs[used], rtol=TIES, atol=0):
        return None
    found = test.permute(floats(values), compared, effort.UNDER_LOSS)
    return _size(found, number, test.declared, int(used.sum()), None, repeated=test.declared.stop is not None)


def _size(
    found: PermutedMeans | None,
    number: int,
    declared: MetricPrimary,
    trials: int,
    reason: str | None,
    *,
    repeated: bool,
) -> Interval:
    """With limits by the test's own order. `repeated`: those that hold whatever ended the campaign."""
    level, ratio = 1 - declared.alpha, declared.scale == "ratio"
    method = "permutation" if ratio else "studentised permutation, asymptotic"
    if found is None or math.isnan(float(found.observed[number - 1])):
        return Interval(None, None, None, level, trials, method, "these_tasks", reason or NO_TASK)
    low, high = found.limits(number, level, repeated=repeated)
    estimate = float(found.observed[number - 1])
    method = f"{method}, repeated" if repeated else method
    if ratio:
        return Interval(math.exp(estimate), _times(low), _times(high), level, trials, method, "these_tasks")
    return Interval(estimate, low, high, level, trials, method, "these_tasks")


def _times(log: float | None) -> float | None:
    return None if log is None or abs(log) > math.log(MOST) else math.exp(log)


def _side(name: str, scheme: Scheme, columns: Columns, chosen: Floats) -> MetricSide:
    """`chosen`: the values that the test uses."""
    here = columns.condition == scheme.conditions.index(name)
    mine, values = columns.select_trials(here), chosen[here]
    known = np.isfinite(values)
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
    chosen = test.choose(values)
    compared = test.compare(chosen)
    return test.permute(chosen, compared, effort.UNDER_LOSS) if compared.tasks else None


def _scenario(name: MetricLossName, test: _MetricTest, found: PermutedMeans | None) -> MetricUnderLoss:
    last = None if found is None else found.look(int(found.observed.size))
    if found is None or last is None or last.difference is None:
        return MetricUnderLoss(name, None, None, 0)
    p_value = test.p_value(found)
    decided = int(np.sign(last.difference)) if rejects(p_value, test.declared.alpha) else 0
    size = math.exp(last.difference) if test.declared.scale == "ratio" else last.difference
    return MetricUnderLoss(name, size, p_value, decided)
