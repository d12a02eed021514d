"""What the report says of one contrast: treatment − control, in both estimands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trialfleet_analysis.estimates import Estimand, Interval, Test
from trialfleet_analysis.multiplicity import Attainability

Role = Literal["primary", "secondary", "unplanned", "ceiling", "asked"]
ArmChange = Literal["added", "dropped", "changed"]


@dataclass(frozen=True)
class DeliveryChange:
    """One delivery in which the two conditions differ, as treatment against control."""

    delivery: Literal["files", "inline", "hook", "pull", "fail_fast"]
    change: ArmChange


@dataclass(frozen=True)
class Composition:
    """In which deliveries a contrast's conditions differ. With more than one its effect belongs to the package:
    `missing` are compositions that would tell the parts apart and that the campaign did not run, as YAML."""

    changes: tuple[DeliveryChange, ...]
    missing: tuple[str, ...]

    @property
    def confounded(self) -> bool:
        return len(self.changes) > 1


@dataclass(frozen=True)
class Adjusted:
    """A p-value within its family. `p_value` None: the test has none."""

    family: str
    p_value: float | None


@dataclass(frozen=True)
class Family:
    """Tests that are corrected together. `size`: how many took part; `dropped`: those that could not have reached
    alpha, whatever the outcome, with their names."""

    id: str
    method: Literal["holm", "benjamini_hochberg"]
    alpha: float
    size: int
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class BlockCompanion:
    """The same test with strata task × block: valid under any drift. `pairs`: complete ones, one trial per arm;
    `broken`: pairs dropped because one of the two is missing."""

    test: Test
    pairs: int
    only_treatment: int
    only_control: int
    broken: int


@dataclass(frozen=True)
class OnTheseTasks:
    """The contrast on the tasks that were run. `agrees`: whether interval and test decide alike; the p decides.
    `odds_ratio`: of passing, conditional on each task's total; a limit that is unbounded is None."""

    test: Test
    adjusted: Adjusted | None
    difference: Interval
    agrees: bool | None
    odds_ratio: Interval
    strata: int
    informative: int
    by_block: BlockCompanion


@dataclass(frozen=True)
class LeaveOneOut:
    """The range of the mean difference, and of its p, as each task is left out in turn."""

    low: float
    high: float
    least_p: float | None
    largest_p: float | None


@dataclass(frozen=True)
class OnTasksLikeThese:
    """The contrast for the population that the tasks stand for. `largest_share`: of the summed task differences,
    what one task, `largest_task`, makes; above 1 where the others sum to the opposite. `caveat`: what so few tasks
    cannot show."""

    test: Test
    adjusted: Adjusted | None
    difference: Interval
    leave_one_out: LeaveOneOut | None
    largest_task: str | None
    largest_share: float | None
    caveat: str | None


@dataclass(frozen=True)
class Heterogeneity:
    """Whether the effect differs between tasks. `sigma_int`: SD of the true effect between tasks, rate scale;
    `prediction`: where a new task's true effect lies; `homogeneity`: Breslow and Day's test of equal odds ratios;
    `qualitative`: Gail and Simon's test of effects in both directions."""

    sigma_int: float | None
    prediction: Interval
    homogeneity: Test
    qualitative: Test
    reason: str | None


@dataclass(frozen=True)
class Contrast:
    """Treatment − control over `tasks`, in rates. `role`: primary; secondary (its family is corrected); unplanned
    (no primary was declared); asked (on the command line, after the fact)."""

    treatment: str
    control: str
    role: Role
    tasks: int
    treatment_rate: float | None
    control_rate: float | None
    composition: Composition
    these_tasks: OnTheseTasks
    tasks_like_these: OnTasksLikeThese
    heterogeneity: Heterogeneity

    @property
    def name(self) -> str:
        return f"{self.treatment} − {self.control}"


@dataclass(frozen=True)
class Declared:
    """What the campaign froze before anything ran. `margin`: of equivalence, in rates; `effect`: the difference
    that it was planned for."""

    treatment: str
    control: str
    estimand: Estimand
    alpha: float
    margin: float | None
    effect: float | None


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests against ±margin. `interval`: at level 1 − 2 alpha; `equivalent`: both sides rejected;
    `non_inferior`: treatment is not worse by the margin, the lower side alone."""

    estimand: Estimand
    margin: float
    alpha: float
    p_lower: float | None
    p_upper: float | None
    p_value: float | None
    interval: Interval
    equivalent: bool | None
    non_inferior: bool | None
    reason: str | None


@dataclass(frozen=True)
class Subgroup:
    """One level of a factor of the tasks, and the primary contrast's difference among its tasks, on these tasks.
    No p-value of its own: whether levels differ is the interaction's question."""

    level: str
    tasks: tuple[str, ...]
    difference: Interval


@dataclass(frozen=True)
class Subgroups:
    """A pre-declared factor. `interaction`: whether the odds ratio differs between levels, on these tasks (exact,
    given all totals); `interaction_like_these`: Welch's t between the levels' task differences. `reason`: why
    there is nothing to compare."""

    factor: str
    levels: tuple[Subgroup, ...]
    interaction: Test | None
    adjusted: Adjusted | None
    interaction_like_these: Test | None
    adjusted_like_these: Adjusted | None
    reason: str | None


@dataclass(frozen=True)
class TaskEffect:
    """One task's difference, with Miettinen and Nurminen's 95 % limits, and its Fisher test. `label`: what it
    could have shown at best; `tasks_needed`: in this family, how many tasks would have to be as clear for it to
    be found; None where one is enough or none could. `adjusted` None: dropped from the family, it could not
    reach alpha."""

    task: str
    passes_treatment: int
    valid_treatment: int
    passes_control: int
    valid_control: int
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float | None
    found: bool
    attainable_p: float
    label: Attainability
    tasks_needed: int | None


@dataclass(frozen=True)
class Screen:
    """All tasks of one contrast, screened by Benjamini and Hochberg."""

    treatment: str
    control: str
    family: str
    tasks: tuple[TaskEffect, ...]
