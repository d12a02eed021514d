"""What the report says of losses: whether they could have made the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trialfleet_analysis.estimates import Estimand, Interval, Test

ScenarioName = Literal["as_measured", "complete_case", "lost_as_failed", "worst", "best"]
SensitivityName = Literal["own_memory_as_lost", "per_protocol"]


@dataclass(frozen=True)
class Scenario:
    """The primary contrast if what is missing had gone one way. `sign`: of the difference: 1, 0 or −1."""

    name: ScenarioName
    difference: float | None
    p_value: float | None
    rejects: bool
    sign: int


@dataclass(frozen=True)
class Robustness:
    """The primary contrast as measured, and on first agent-started attempts under four assumptions. `missing`:
    trials whose first such attempt was lost, whatever a retry gave. `robust`: all come to the same decision,
    sign included. `tipping_point`: the fewest missing trials whose adverse resolution changes the decision;
    None: no number of them does. `tipping_exhaustive`: no smaller choice is left untried; else fewer might
    do."""

    treatment: str
    control: str
    estimand: Estimand
    missing_treatment: int
    missing_control: int
    scenarios: tuple[Scenario, ...]
    robust: bool
    tipping_point: int | None
    tipping_exhaustive: bool


@dataclass(frozen=True)
class Sensitivity:
    """The primary contrast, on these tasks, on another set of trials. `excluded`: valid trials left out, by
    arm."""

    name: SensitivityName
    excluded_treatment: int
    excluded_control: int
    difference: Interval
    test: Test


@dataclass(frozen=True)
class LossTest:
    """Whether conditions lost first runs unequally often: a small p is a warning, a large one no comfort.
    `monte_carlo_se`: of a sampled p; None: exact. `trials`: with an outcome, by condition."""

    test: Test
    monte_carlo_se: float | None
    conditions: tuple[str, ...]
    lost: tuple[int, ...]
    trials: tuple[int, ...]
