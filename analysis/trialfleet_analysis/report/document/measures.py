"""What the report says of turns, time, tokens and cost: per condition, and per contrast."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_analysis.continuous import BootstrapInterval, PermutationTest, SignedRankInterval
from trialfleet_analysis.estimates import Interval, Test
from trialfleet_analysis.report.document.contrasts import Adjusted


@dataclass(frozen=True)
class MeasureContrast:
    """One metric under treatment and control. Tasks with a value in one arm only are left out.

    `mean_difference`: of the tasks' means, on these tasks, bootstrapped over reps; `permutation`: labels shuffled
    inside each task. `shift`: Hodges and Lehmann's estimate over the tasks' differences of medians, for tasks like
    these; `signed_rank`: its test. `trials`: with the metric; `cut_off`: those of them that hit a budget, whose
    values are lower bounds. `median`: over tasks of the tasks' medians.
    """

    measure: str
    treatment: str
    control: str
    tasks: int
    trials_treatment: int
    trials_control: int
    median_treatment: float | None
    median_control: float | None
    cut_off_treatment: int
    cut_off_control: int
    mean_difference: BootstrapInterval
    permutation: PermutationTest
    permutation_adjusted: Adjusted | None
    shift: SignedRankInterval
    signed_rank: Test
    signed_rank_adjusted: Adjusted | None


@dataclass(frozen=True)
class CostPerPass:
    """Money per pass, per condition: sum of costs / passes; None without a pass. `with_losses` adds what lost
    runs of the agent cost: None where `unknown` of them left no cost. They cost no more than the plan's cap each:
    `with_losses_at_most`, None without a cap."""

    condition: str
    passes: int
    cost: float | None
    lost_cost: float | None
    unknown: int
    without_losses: float | None
    with_losses: float | None
    reason: str | None
    with_losses_at_most: float | None = None


@dataclass(frozen=True)
class CostRatio:
    """Treatment's cost per pass over control's."""

    treatment: str
    control: str
    these_tasks: BootstrapInterval
    tasks_like_these: BootstrapInterval


@dataclass(frozen=True)
class Incidence:
    """By when a condition's trials had passed, failure competing: the mean over tasks of the share passed within
    `at` seconds of agent time."""

    condition: str
    at: tuple[float, ...]
    passed: tuple[float, ...]


@dataclass(frozen=True)
class TimeToPass:
    """Difference of the restricted mean time to a pass, failures at the limit: seconds of agent time."""

    treatment: str
    control: str
    limit_s: float
    difference: Interval


@dataclass(frozen=True)
class Distribution:
    """A metric's spread under one condition, over trials: count per bin between `edges` (one more than counts)."""

    measure: str
    condition: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    quartiles: tuple[float, float, float] | None
