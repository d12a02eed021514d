"""The declared contrast in one estimand, what it decides, and how few tasks bear on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from trialfleet_analysis.analysis_plan.margin import EquivalenceFinding
from trialfleet_analysis.analysis_plan.power_summary import DeclaredPower, Detectable, PlannedPower
from trialfleet_analysis.analysis_plan.sensitivity import RobustnessFinding
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.crashes import find_halted_sides
from trialfleet_designs.anytime.finding import AnytimeCompanion, AnytimeFinding
from trialfleet_designs.comparison.contrast import Contrast, OnTasksLikeThese, OnTheseTasks
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.looks.finding import LooksFinding
from trialfleet_designs.trend.answer import trend_outcome
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Estimand, cannot_reject, rejects

ENOUGH = 3  # informative tasks from which on a number over tasks is shown without their number


class OfEstimand(Protocol):
    """A finding of the declared contrast in one estimand."""

    @property
    def estimand(self) -> Estimand: ...


F = TypeVar("F", bound=OfEstimand)


@dataclass(frozen=True)
class DeclaredResult:
    """The declared contrast in one estimand. What was not computed is None. `cancelled`: the campaign was, before
    a look ended it. `withdrawn`: trials that its looks counted and that no longer count. `extended`: reps
    were added after results were seen, and no declared rule allows for that; `companion`: what holds then."""

    contrast: Contrast
    declared: Primary
    estimand: Estimand
    monitored: bool
    cancelled: bool
    part: OnTheseTasks | OnTasksLikeThese
    detectable: Detectable | None
    power: DeclaredPower | None
    planned: PlannedPower | None
    equivalence: EquivalenceFinding | None
    robustness: RobustnessFinding | None
    looks: LooksFinding | None
    anytime: AnytimeFinding | None
    withdrawn: int
    extended: bool
    companion: AnytimeCompanion | None


def declared_result(report: Report, *, other: bool = False) -> DeclaredResult | None:
    """In the declared estimand, or in the `other` one; None where no contrast was declared."""
    contrast, analysis, declared = report.headline, report.analysis, report.analysis.declared
    if contrast is None or declared is None:
        return None
    on_these = (declared.estimand == "these_tasks") != other
    estimand: Estimand = "these_tasks" if on_these else "tasks_like_these"
    anytime = analysis.anytime if on_these else None
    return DeclaredResult(
        contrast=contrast,
        declared=declared,
        estimand=estimand,
        monitored=analysis.monitored and not (on_these and (analysis.looks or anytime)),
        cancelled=report.progress.cancelled,
        part=contrast.these_tasks if on_these else contrast.tasks_like_these,
        detectable=None if anytime else _of(analysis.outlook.detectable, estimand),
        power=None if anytime else _of(analysis.outlook.declared, estimand),
        planned=analysis.outlook.planned if on_these else None,
        equivalence=_of(analysis.equivalence, estimand),
        robustness=_of(analysis.robustness, estimand),
        looks=analysis.looks if on_these else None,
        anytime=anytime,
        withdrawn=analysis.withdrawn if on_these else 0,
        extended=report.progress.extended_after_look and not (on_these and (analysis.looks or anytime)),
        companion=analysis.extended if on_these else None,
    )


def _of(found: Sequence[F], estimand: Estimand) -> F | None:
    return next((one for one in found if one.estimand == estimand), None)


def decided(report: Report) -> Outcome | None:
    """Of the declared contrast in its declared estimand, or of the trend; None where nothing was declared.

    `more`, `less`: the treatment passed so, in the test's direction. `conflict`: the test rejects, and the mean
    difference has the opposite sign. `not_possible`: no outcome could have rejected, given the totals.
    """
    if find_halted_sides(report):
        return "undefined"
    if report.analysis.trend is not None:
        return trend_outcome(report.analysis.trend)
    result = declared_result(report)
    return None if result is None else outcome_of(result)


def outcome_of(result: DeclaredResult) -> Outcome:
    part, alpha = result.part, result.declared.alpha
    if part.test.p_value is None or part.difference.estimate is None:
        return "undefined"
    if not rejects(part.test.p_value, alpha):
        return "not_possible" if cannot_reject(part.test, alpha) else "not_shown"
    if isinstance(part, OnTheseTasks):
        return "conflict" if part.conflict else "more" if part.test.direction > 0 else "less"
    return "more" if part.difference.estimate > 0 else "less"


def could_tell(contrast: Contrast) -> str | None:
    """How few tasks bear on the contrast, as a clause; None where all of them do."""
    informative, tasks = contrast.these_tasks.informative, contrast.these_tasks.strata
    if informative == tasks:
        return None
    return f"{f'only {informative}' if informative else 'none'} of {plural(tasks, 'task')} could distinguish them"


def missing_runs(found: RobustnessFinding) -> str:
    """The runs that robustness is judged over, counted."""
    missing = found.missing_treatment + found.missing_control
    return plural(missing, "lost or forged run" if found.forged else "lost first run")
