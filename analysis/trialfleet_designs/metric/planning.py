"""What a declared metric is expected to find: bounds as wide as those of its permuted labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from scipy import special

from trialfleet_designs.document.figures import percent, times
from trialfleet_designs.document.tables import TableColumn, number, table
from trialfleet_designs.metric.looks import design_of_metric, find_futile_scores
from trialfleet_designs.metric.sizes import OF_SCALE
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.least_reps import count_looks, find_least_reps, lacks_looks, word_looks, word_reps
from trialfleet_designs.power.own_plan import OwnPlan, PlanText
from trialfleet_designs.protocol import PowerQuestion
from trialfleet_ledger.designs.metric import ComparedMetric, MetricPrimary, MetricScale
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import TIES, Floats, floats
from trialfleet_statistics.sequential import SequentialDesign, normal_bounds, stopping_probabilities

USUAL = (0.9, 0.8, 0.7, 0.5)
ASSUMED_CV: dict[MetricScale, float] = {"ratio": 0.6, "difference": 0.7}  # the same trials, of tasks that differ
MOST_REPS = 1000
NEVER = 40.0  # of a Z
MANY_ARRANGEMENTS = 50.0  # logarithm: whole ones and parts are the same
ROUGH_BELOW = 60  # trials an arm: of skewed means, simulated power is up to 14 points above that of normal bounds
Origin: TypeAlias = Literal["given", "pilot", "assumed"]
SIGNS: dict[MetricScale, str] = {"ratio": "/", "difference": "−"}
BOUNDS: dict[MetricScale, str] = {"ratio": "t bounds on logs", "difference": "normal bounds on means"}
RELATIVE: dict[MetricScale, str] = {"ratio": "", "difference": ", relative to the mean of all tasks,"}
ORIGINS: dict[Origin, str] = {
    "given": "as given",
    "pilot": "the pilot's",
    "assumed": "assumed; take it from a pilot with --pilot, or say what you expect with --cv",
}


@dataclass(frozen=True)
class MetricScenario:
    """`share`: of the planned trials, on average; `futile`: how often the looks give up."""

    ratio: float
    power: float
    share: float
    futile: float


@dataclass(frozen=True)
class MetricRow:
    """`trials`: in both arms. `lacks_looks`: those that are declared are at blocks of other reps."""

    reps: int
    trials: int
    scenarios: tuple[MetricScenario, ...]
    lacks_looks: bool


@dataclass(frozen=True)
class MetricPlan(OwnPlan):
    """`cv`: the coefficient of variation of a trial's metric within a task and condition, of differences of means
    relative to the mean of all tasks; `origin`: whence it is.
    `one_sided`: only less is asked, at half of the test's level. `needed`: the least reps with the power wanted at
    the effect; None: more than 1,000; `needed_lacks_looks`: as of a row; `looks`: at most; 0: a fixed end."""

    campaign: str
    metric: ComparedMetric
    scale: MetricScale
    treatment: str
    control: str
    tasks: int
    cv: float
    origin: Origin
    looks: int
    effort: Effort
    rows: tuple[MetricRow, ...]
    effect: float
    needed: int | None
    needed_lacks_looks: bool
    one_sided: bool = False

    kind: ClassVar[str] = "metric"

    def describe(self) -> PlanText:
        each = [(row, one) for row in self.rows for one in row.scenarios]
        columns: list[TableColumn[tuple[MetricRow, MetricScenario]]] = [
            number("reps", lambda one: word_reps(one[0].reps, lacks_looks=one[0].lacks_looks)),
            number("trials in both arms", lambda one: one[0].trials),
            number("true ratio", lambda one: times(one[1].ratio)),
            number("power", lambda one: percent(one[1].power)),
        ]
        if self.looks:
            columns.append(number("of the trials, on average", lambda one: percent(one[1].share)))
            columns.append(number("stops early, not shown", lambda one: percent(one[1].futile)))
        return PlanText(
            f"{self.campaign}: {self.metric}, {self.treatment} {SIGNS[self.scale]} {self.control} "
            f"{OF_SCALE[self.scale]}, {plural(self.tasks, 'task')}",
            table("", each, *columns),
            (self._say_needed(), self._name_assumptions()),
        )

    def _say_needed(self) -> str:
        wanted = f"{times(self.effect)} is found {percent(self.effort.power)} of the time"
        if self.needed is None:
            return f"{wanted} with more than {MOST_REPS:,} reps a task: take more tasks"
        end = ", with a fixed end" if self.needed_lacks_looks else ""
        trials = plural(2 * self.needed * self.tasks, "trial")
        return f"{wanted} with {plural(self.needed, 'rep')} a task ({trials}{end})"

    def _name_assumptions(self) -> str:
        origin = ORIGINS[self.origin]
        looks = f", {word_looks(self.looks, [row.reps for row in self.rows])}" if self.looks else ""
        fewest = self.tasks * min([row.reps for row in self.rows] + ([self.needed] if self.needed else []))
        is_rough = self.scale == "difference" and fewest < ROUGH_BELOW
        rough = f", rough below {ROUGH_BELOW} trials an arm" if is_rough else ""
        return (
            f"{'one' if self.one_sided else 'two'}-sided alpha {self.effort.alpha:g}{looks}, "
            f"by {BOUNDS[self.scale]}{rough}; "
            f"coefficient of variation within tasks{RELATIVE[self.scale]} {self.cv:g} ({origin})"
        )


def plan_metric(declared: MetricPrimary, asked: PowerQuestion) -> MetricPlan:
    """Raises `ValueError` for a coefficient of variation that is not above 0."""
    tasks, scale = asked.rates.tasks, declared.scale
    known = (asked.pilot if scale == "ratio" else asked.pilot_of_means).get(declared.metric)
    origin: Origin = "given" if asked.cv is not None else "pilot" if known else "assumed"
    cv = asked.cv if asked.cv is not None else known or ASSUMED_CV[scale]
    if cv <= 0:
        raise ValueError(f"a coefficient of variation is above 0, and {cv:g} is not")
    effect = declared.effect or 0.8

    def at(reps: int, ratio: float) -> MetricScenario:
        design = SequentialDesign((reps,), alpha=declared.alpha)
        if count_looks(declared.stop, reps):
            design = design_of_metric(declared, reps)
        drift = find_drift(scale, ratio, cv, reps * tasks)
        if scale == "ratio":
            bounds = bound_permutations(design, tasks, drift)
        else:
            can = share_attained(design, tasks) * (reps > 1) > 0
            bounds = floats(np.where(can, normal_bounds(design), NEVER))
        found = stopping_probabilities(
            bounds, design.times(), drift, futile_below=find_futile_scores(declared, design)
        )
        before = found.upwards[:-1] + found.downwards[:-1] + found.given_up[:-1]
        share = 1 - float(np.sum(before * (1 - design.times()[:-1])))
        return MetricScenario(ratio, float(np.sum(found.upwards)), share, float(np.sum(found.given_up[:-1])))

    needed = find_least_reps(lambda reps: at(reps, effect).power >= asked.effort.power, MOST_REPS)
    ratios = tuple(sorted({*USUAL, effect}, reverse=True))
    return MetricPlan(
        campaign=asked.campaign,
        metric=declared.metric,
        scale=scale,
        treatment=declared.treatment,
        control=declared.control,
        tasks=tasks,
        cv=cv,
        origin=origin,
        looks=max(count_looks(declared.stop, reps) for reps in asked.reps),
        effort=asked.effort,
        rows=tuple(
            MetricRow(
                reps, 2 * reps * tasks, tuple(at(reps, one) for one in ratios), lacks_looks(declared.stop, reps)
            )
            for reps in asked.reps
        ),
        effect=effect,
        needed=needed,
        needed_lacks_looks=needed is not None and lacks_looks(declared.stop, needed),
    )


def bound_permutations(design: SequentialDesign, tasks: int, drift: float) -> Floats:
    """The |Z| that an effect of this `drift`, the expected Z at the end, crosses at each look as often as its
    difference of means crosses in labels that are permuted within task and stage: normal bounds at the level that
    can be attained, as quantiles of t. Its degrees of freedom are the values', less a mean for each task and stage
    and the difference. Shape (looks,).

    >>> [bound_permutations(SequentialDesign((reps,)), 3, 2.2).round(2).tolist() for reps in (1, 2, 50)]
    [[40.0], [2.27], [1.97]]
    """
    several = np.arange(1, len(design.looks) + 1)
    freedom = tasks * (2 * np.array(design.looks) - several) - 1.0
    normal = normal_bounds(design)
    tails = special.ndtr(-normal) * share_attained(design, tasks) * (freedom > 0)
    means, freedom = drift * np.sqrt(design.times()), np.maximum(freedom, 1)
    crossed = special.nctdtr(freedom, -means, special.stdtrit(freedom, tails))
    return floats(np.where(tails > 0, np.clip(means - special.ndtri(crossed), normal, NEVER), NEVER))


def share_attained(design: SequentialDesign, tasks: int) -> Floats:
    """Of what each look may have spent: labels that are permuted within task and stage spend it in whole
    arrangements. Shape (looks,).

    >>> [share_attained(SequentialDesign(looks), 3).round(2).tolist() for looks in ((1,), (2,), (1, 2, 4))]
    [[0.0], [0.93], [0.0, 0.0, 1.0]]
    """
    stages = [design.stage(number + 1) for number in range(len(design.looks))]
    arrangements = tasks * np.cumsum([math.log(math.comb(2 * blocks, blocks)) for blocks in stages])
    extreme = design.levels() / 2 * np.exp(np.minimum(arrangements, MANY_ARRANGEMENTS))
    return floats(np.floor(extreme * (1 + TIES)) / extreme)


def find_drift(scale: MetricScale, ratio: float, cv: float, trials: int) -> float:
    """The expected difference over its standard error, with so many trials an arm. Of logs it is that of a
    log-normal metric; of means both arms vary in proportion to theirs.

    >>> round(find_drift("ratio", 0.8, 0.6, 80), 2), round(find_drift("difference", 0.8, 0.7, 80), 2)
    (2.55, 2.0)
    """
    if scale == "ratio":
        return abs(math.log(ratio)) / math.sqrt(2 * math.log1p(cv**2) / trials)
    return abs(1 - ratio) / (cv * math.sqrt((1 + ratio**2) / trials))
