"""The declared contrast in one estimand, what it decides, and how few tasks bear on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from trialfleet_analysis.analysis_plan.margin import EquivalenceFinding
from trialfleet_analysis.analysis_plan.power_summary import DeclaredPower, Detectable, PlannedPower
from trialfleet_analysis.analysis_plan.sensitivity import RobustnessFinding
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.crashes import find_halted_sides
from trialfleet_designs.anytime.finding import AnytimeCompanion
from trialfleet_designs.comparison.contrast import Contrast, OnTheseTasks
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.comparison.tasks_like_these import OnTasksLikeThese
from trialfleet_designs.document.saturated_tasks import name_saturated
from trialfleet_designs.protocol import Reported
from trialfleet_designs.registry import DESIGNS, FIXED, AnyDesign
from trialfleet_ledger.designs.contrast import Primary
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
    were added after results were seen, and no declared rule allows for that; `companion`: what holds then.
    `design`: what is declared, with what it `found`; in the other estimand a contrast at a fixed end."""

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
    design: AnyDesign
    found: Any
    context: Reported
    withdrawn: int
    extended: bool
    companion: AnytimeCompanion | None


def declared_result(report: Report, *, other: bool = False) -> DeclaredResult | None:
    """In the declared estimand, or in the `other` one; None where no contrast was declared."""
    contrast, analysis, declared = report.headline, report.analysis, report.analysis.declared
    if contrast is None or declared is None:
        return None
    on_these = (declared.reach == "these_tasks") != other
    estimand: Estimand = "these_tasks" if on_these else "tasks_like_these"
    design = DESIGNS[analysis.design] if on_these else FIXED
    betting = not design.is_fixed_on(estimand)
    return DeclaredResult(
        contrast=contrast,
        declared=declared,
        estimand=estimand,
        monitored=analysis.monitored and not design.allows_for_looks,
        cancelled=report.progress.cancelled,
        part=contrast.these_tasks if on_these else contrast.tasks_like_these,
        detectable=None if betting else _of(analysis.outlook.detectable, estimand),
        power=None if betting else _of(analysis.outlook.declared, estimand),
        planned=analysis.outlook.planned if on_these else None,
        equivalence=_of(analysis.equivalence, estimand),
        robustness=_of(analysis.robustness, estimand),
        design=design,
        found=analysis.found if on_these else None,
        context=report_context(report),
        withdrawn=analysis.withdrawn if on_these else 0,
        extended=report.progress.extended_after_look and not design.allows_for_looks,
        companion=analysis.extended if on_these else None,
    )


def _of(found: Sequence[F], estimand: Estimand) -> F | None:
    return next((one for one in found if one.estimand == estimand), None)


def report_context(report: Report) -> Reported:
    """What a design is told of the report besides its finding."""
    declared, progress = report.analysis.declared, report.progress
    return Reported(
        contrasts=report.analysis.contrasts,
        rates={one.condition: one.these_tasks for one in report.conditions},
        alpha=0.05 if declared is None else declared.alpha,
        control="" if declared is None else declared.control,
        monitored=report.analysis.monitored,
        cancelled=progress.cancelled,
        extended=progress.extended_after_look,
        after_decision=progress.after_decision,
        tasks=len(report.tasks),
    )


def decided(report: Report) -> Outcome | None:
    """Of the declared contrast in its declared estimand, or of the trend; None where nothing was declared.

    `more`, `less`: the treatment passed so, in the test's direction. `conflict`: the test rejects, and the mean
    difference has the opposite sign. `not_possible`: no outcome could have rejected, given the totals.
    """
    if find_halted_sides(report):
        return "undefined"
    own = report.design.tell_outcome(report.analysis.found)
    if own is not None:
        return own
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
    """How many tasks do not bear on the contrast, as a clause; None where all of them do."""
    return name_saturated(contrast.these_tasks.strata, contrast.these_tasks.informative)


def missing_runs(found: RobustnessFinding) -> str:
    """The runs that robustness is judged over, counted."""
    missing = found.missing_treatment + found.missing_control
    return plural(missing, "lost or forged run" if found.forged else "lost first run")
