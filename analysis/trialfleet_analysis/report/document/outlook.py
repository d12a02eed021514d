"""What the report says of time and of what more trials would show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trialfleet_analysis.estimates import Estimand, Interval, Test
from trialfleet_analysis.repeats import RepeatsInterval


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


@dataclass(frozen=True)
class Detectable:
    """The least difference that the achieved design detects with that power; None with the `reason`. It is made of
    the harmonic mean of the cells' valid trials; `reps` is that mean, rounded."""

    estimand: Estimand
    tasks: int
    reps: int
    power: float
    alpha: float
    mde: float | None
    reason: str | None


@dataclass(frozen=True)
class More:
    """What a design would detect: first the one that was run, then more reps, then more tasks, losing as many
    trials in proportion; `reps` are rounded as in `Detectable`. Normal approximations, for choosing between
    designs; None: more than 100 points, or not known."""

    tasks: int
    reps: int
    trials_per_arm: int
    mde_these_tasks: float | None
    mde_tasks_like_these: float | None


@dataclass(frozen=True)
class DeclaredPower:
    """Power at the effect that the campaign declared, at the achieved n: simulated with the test that analyses.
    Never at the effect that was observed."""

    estimand: Estimand
    effect: float
    power: float | None
    monte_carlo_se: float | None
    simulations: int
    reason: str | None


@dataclass(frozen=True)
class Outlook:
    """Of the primary contrast, or of the first contrast where none was declared. `mean`, `icc`, `sigma_int`: the
    nuisance values that these numbers rest on, of both arms together."""

    mean: float | None
    icc: Interval
    sigma_int: float | None
    detectable: tuple[Detectable, ...]
    more: tuple[More, ...]
    declared: tuple[DeclaredPower, ...]


@dataclass(frozen=True)
class Repeats:
    """pass@k: some of k reps passes; pass^k: all of k do. Mean over tasks, for tasks like these."""

    condition: str
    k: int
    pass_at_k: RepeatsInterval
    pass_hat_k: RepeatsInterval


@dataclass(frozen=True)
class Method:
    """Which method made which number, and with what."""

    number: str
    method: str
