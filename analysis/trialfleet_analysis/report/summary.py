"""The first screen: what the declared contrast decides, its size and cost in two sentences, and all of it in one
table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from trialfleet_analysis.analysis_plan.anytime import AnytimeFinding
from trialfleet_analysis.analysis_plan.contrast import Contrast, OnTasksLikeThese, OnTheseTasks
from trialfleet_analysis.analysis_plan.looks import LooksFinding
from trialfleet_analysis.analysis_plan.margin import EquivalenceFinding
from trialfleet_analysis.analysis_plan.measures import CostPerPass, MeasureContrast
from trialfleet_analysis.analysis_plan.power_summary import DeclaredPower, Detectable
from trialfleet_analysis.analysis_plan.sensitivity import RobustnessFinding
from trialfleet_analysis.rates import ConditionResult
from trialfleet_analysis.report.campaign_report import Outcome, Report, SummaryEntry, SummaryRow
from trialfleet_analysis.report.figures import (
    DEMONSTRATED,
    NOTHING,
    bare_p,
    cut_at,
    level,
    limits,
    p_value,
    percent,
    plural,
    point_limits,
    points,
    quantity,
    times,
    unsigned_points,
)
from trialfleet_analysis.report.trend_answer import trend_answer, trend_outcome
from trialfleet_analysis.statistics.estimates import Estimand, cannot_reject, rejects
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_runner.metric_table import Unit

LIMITS = {
    "": "Miettinen–Nurminen score, stratified",
    "stage-wise": "stage-wise, allows for looks",
    "repeated": "score limits that hold at all looks at once",
    "confidence_sequence": "confidence sequence, holds at any look",
}
ENOUGH = 3  # informative tasks from which on a number over tasks is shown without their number


class OfEstimand(Protocol):
    """A finding of the declared contrast in one estimand."""

    @property
    def estimand(self) -> Estimand: ...


F = TypeVar("F", bound=OfEstimand)


@dataclass(frozen=True)
class DeclaredResult:
    """The declared contrast in one estimand. What was not computed is None."""

    contrast: Contrast
    declared: Primary
    estimand: Estimand
    monitored: bool
    part: OnTheseTasks | OnTasksLikeThese
    detectable: Detectable | None
    power: DeclaredPower | None
    equivalence: EquivalenceFinding | None
    robustness: RobustnessFinding | None
    looks: LooksFinding | None
    anytime: AnytimeFinding | None


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
        part=contrast.these_tasks if on_these else contrast.tasks_like_these,
        detectable=None if anytime else _of(analysis.outlook.detectable, estimand),
        power=None if anytime else _of(analysis.outlook.declared, estimand),
        equivalence=_of(analysis.equivalence, estimand),
        robustness=_of(analysis.robustness, estimand),
        looks=analysis.looks if on_these else None,
        anytime=anytime,
    )


def _of(found: Sequence[F], estimand: Estimand) -> F | None:
    return next((one for one in found if one.estimand == estimand), None)


def decided(report: Report) -> Outcome | None:
    """Of the declared contrast in its declared estimand, or of the trend; None where nothing was declared.

    `more`, `less`: the treatment passed so, in the test's direction. `conflict`: the test rejects, and the mean
    difference has the opposite sign. `not_possible`: no outcome could have rejected, given the totals.
    """
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


def spent(report: Report, contrast: Contrast) -> str | None:
    """None where no trial has a cost, a time or turns."""
    return _per_pass(report, contrast) or _per_trial(report, contrast)


def _per_pass(report: Report, contrast: Contrast) -> str | None:
    of = {one.condition: one for one in report.analysis.costs}
    a, b = of.get(contrast.treatment), of.get(contrast.control)
    if a is None or b is None or a.without_losses is None or b.without_losses is None:
        return None
    against = f"{quantity(a.without_losses, 'usd')} against {quantity(b.without_losses, 'usd')}"
    return f"A pass cost {against}{_ratio(report, contrast)}{_apart(a, b)}."


def _ratio(report: Report, contrast: Contrast) -> str:
    sides = (contrast.treatment, contrast.control)
    found = next((one for one in report.analysis.cost_ratios if (one.treatment, one.control) == sides), None)
    declared = report.analysis.declared
    if found is None or declared is None:
        return ""
    ratio = found.these_tasks if declared.estimand == "these_tasks" else found.tasks_like_these
    if ratio.estimate is None:
        return ""
    limits = "" if ratio.low is None or ratio.high is None else f"{times(ratio.low)} to {times(ratio.high)}"
    return f" ({times(ratio.estimate)}{f', {level(ratio.level)} interval {limits}' if limits else ''})"


def _apart(a: CostPerPass, b: CostPerPass) -> str:
    return ", lost runs not counted" if a.unknown or b.unknown else ""


def _per_trial(report: Report, contrast: Contrast) -> str | None:
    sides = (contrast.treatment, contrast.control)
    of = {one.measure: one for one in report.analysis.measures if (one.treatment, one.control) == sides}
    if money := _medians(of.get("cost_usd"), "usd"):
        return f"A trial cost {money} (medians)."
    time, turns = _medians(of.get("agent_s"), "s"), _medians(of.get("turns"), "count")
    said = [text for text in (time and f"{time} of agent time", turns and f"{turns} turns") if text]
    return f"A trial took {', '.join(said)} (medians)." if said else None


def _medians(found: MeasureContrast | None, unit: Unit) -> str | None:
    if found is None or found.median_treatment is None or found.median_control is None:
        return None
    return f"{quantity(found.median_treatment, unit)} against {quantity(found.median_control, unit)}"


SHOWN: tuple[Outcome, ...] = ("more", "less")


def answer(report: Report) -> tuple[str, ...]:
    """The decision of the declared contrast; then its size and its cost. Without a declared contrast, every
    condition, and no test."""
    if report.analysis.trend is not None:
        return trend_answer(report.analysis.trend)
    result = declared_result(report)
    if result is None:
        return tuple(_conditions(report))
    outcome, size = outcome_of(result), _size(result)
    first, second = _decision(result, outcome), spent(report, result.contrast)
    if outcome in SHOWN:
        first = f"{first}: {size}{_few(result)}"
    elif size is not None:
        second = f"{size}{_needed(result, outcome)}. {second or ''}".rstrip()
    fragile = "" if outcome == "undefined" else _fragile(result)
    return tuple(text for text in (f"{first}.{fragile}", second, _saved(result)) if text)


def _saved(result: DeclaredResult) -> str | None:
    """Why the campaign is over, and what it took; None where no look has saved a trial."""
    if result.anytime is not None:
        return _bought(result.anytime)
    found = result.looks
    if found is None or found.ended is None:
        return None
    why = _shortened(found)
    if why is None:
        return None
    money, planned = found.cost_usd, found.planned_cost_usd
    cost = f" and {quantity(money, 'usd')}" if money else ""
    fixed = f" and {quantity(planned, 'usd')}" if money and planned else ""
    taken, fixed_plan = plural(found.trials, "trial"), plural(found.planned_trials, "trial")
    return f"{why}: this answer took {taken}{cost}; the fixed plan would have taken {fixed_plan}{fixed}."


def _shortened(found: LooksFinding) -> str | None:
    """What saved trials: a stop before the last block, or tasks that were left out."""
    last, of = found.taken[-1], found.planned[-1]
    if last.blocks < of:
        return (
            f"Stopped for {found.ended} at look {last.number} of {len(found.planned)}, after {last.blocks} of "
            f"{of} blocks"
        )
    if found.dropped:
        return f"Left out after block {found.drop_after}, saturated: {plural(len(found.dropped), 'task')}"
    return None


def _bought(found: AnytimeFinding) -> str | None:
    if found.ended is None:
        return None
    cost = f" and {quantity(found.cost_usd, 'usd')}" if found.cost_usd else ""
    after = plural(found.taken[-1].blocks, "block")
    return f"Stopped for {found.ended} after {after}: this answer took {plural(found.trials, 'trial')}{cost}."


def estimand(report: Report) -> str:
    """Which tasks the conditions' rates describe: printed with every table of rates."""
    return f"these tasks ({len(report.compared)} of {len(report.tasks)})"


def _decision(result: DeclaredResult, outcome: Outcome) -> str:
    contrast, on = result.contrast, _on(result)
    a, b = contrast.treatment, contrast.control
    if outcome == "undefined":
        reason = result.part.test.reason or result.part.difference.reason
        return f"The declared contrast {contrast.name} has no answer yet: {reason}"
    if outcome == "conflict":
        of_test, of_mean = (a, b) if contrast.these_tasks.test.direction > 0 else (b, a)
        return (
            f"On {on}, {a} and {b} differ, but no direction can be stated: the test points to {of_test}, the mean "
            f"difference to {of_mean}"
        )
    if outcome in SHOWN:
        return f"On {on}, {a} passed {outcome} often than {b}"
    going_on = result.monitored or any(
        found is not None and found.ended is None for found in (result.looks, result.anytime)
    )
    nothing = f"No difference was shown{' so far' if going_on else ''} between {a} and {b} on {on}"
    if outcome == "not_possible":
        few = could_tell(contrast)
        totals = f"given their totals no result reaches p ≤ {result.declared.alpha:g}"
        return f"{nothing}: {few}, and {totals}" if few else f"{nothing}: {totals}"
    return f"{nothing}{_equivalent(result)}"


def _on(result: DeclaredResult) -> str:
    tasks = plural(result.contrast.tasks, "task")
    if result.estimand == "these_tasks":
        return f"this {tasks}" if result.contrast.tasks == 1 else f"these {tasks}"
    return f"tasks like these, judged by {tasks}"


def _equivalent(result: DeclaredResult) -> str:
    shown = result.equivalence
    if shown is None or not shown.equivalent:
        return ""
    return f"; they are equivalent within ±{unsigned_points(shown.margin)} points"


def _size(result: DeclaredResult) -> str | None:
    contrast, difference, p = result.contrast, result.part.difference, result.part.test.p_value
    if difference.estimate is None:
        return None
    monitored = ", not valid under monitoring" if result.monitored else ""
    tested = "" if p is None else f", {p_value(p)}{monitored}"
    shown = point_limits(difference)
    interval = f"{level(difference.level)} interval {shown}" if shown else f"no interval: {difference.reason}"
    return (
        f"{percent(contrast.treatment_rate)} against {percent(contrast.control_rate)}, a difference of "
        f"{points(difference.estimate)} ({interval}){tested}"
    )


def _few(result: DeclaredResult) -> str:
    """Names the informative tasks where they are one or two."""
    few = could_tell(result.contrast)
    return f"; {few}" if few and result.contrast.these_tasks.informative < ENOUGH else ""


def _needed(result: DeclaredResult, outcome: Outcome) -> str:
    """What the design would have found most of the time, where it found nothing."""
    found = result.detectable
    if found is None or found.mde is None or outcome not in ("not_shown", "not_possible"):
        return ""
    needed = f"{unsigned_points(found.mde)} points"
    return f"; a true difference of at least {needed} would have been needed ({100 * found.power:g}% power)"


def _fragile(result: DeclaredResult) -> str:
    """Added to the decision where lost runs could have made it; the table has the rest."""
    found = result.robustness
    if found is None or found.robust:
        return ""
    lost = plural(found.missing_treatment + found.missing_control, "lost first run")
    if found.tipping_point is None:
        return f" Not robust to the {lost}."
    few = "" if found.tipping_exhaustive else "at most "
    return f" Not robust: of the {lost}, {few}{found.tipping_point:,} could change that decision."


def _conditions(report: Report) -> Iterator[str]:
    measured = [result for result in report.conditions if result.these_tasks.estimate is not None]
    if not measured:
        yield "Nothing to count: no complete block holds a verdict that can be used."
        return
    parts = [f"{result.condition} {_rate(result)}" for result in measured]
    yield f"Mean pass rates on these tasks: {'; '.join(parts)}."
    yield (
        "The campaign declares no primary contrast, so there is no headline test: pairwise contrasts are listed "
        "as unplanned, corrected for their number."
    )


def _rate(result: ConditionResult) -> str:
    return f"{percent(result.these_tasks.estimate)} ({limits(result.these_tasks)})"


def summary(report: Report) -> tuple[SummaryRow, ...]:
    """Nothing without a declared contrast; a row that neither estimand has is left out."""
    one, other = declared_result(report), declared_result(report, other=True)
    if one is None or other is None:
        return ()
    entries: dict[str, Callable[[DeclaredResult], SummaryEntry | None]] = {
        "Question": _question,
        "Difference": _difference,
        f"{level(1 - one.declared.alpha)} interval": _interval,
        "Test": _test,
        "Looks": _looks,
        "Information": _information,
        "Detectable": _detectable,
        "Declared effect": _power,
        "Equivalence": _equivalence,
        "Lost first runs": _lost,
        "Assumptions": _assumptions,
    }
    rows = ((name, entry(one), entry(other)) for name, entry in entries.items())
    return tuple(SummaryRow(name, a, b) for name, a, b in rows if a is not None and b is not None)


def _question(result: DeclaredResult) -> SummaryEntry:
    what = "the same tasks, run again" if result.estimand == "these_tasks" else "other tasks of their kind"
    declared = result.estimand == result.declared.estimand
    return SummaryEntry(what, None if declared else "cannot rescue the declared one")


def _difference(result: DeclaredResult) -> SummaryEntry:
    found = result.part.difference
    return SummaryEntry(NOTHING, found.reason) if found.estimate is None else SummaryEntry(points(found.estimate))


def _interval(result: DeclaredResult) -> SummaryEntry:
    difference = result.part.difference
    shown = point_limits(difference)
    if shown is None:
        return SummaryEntry(NOTHING, difference.reason)
    if result.estimand == "these_tasks":
        return SummaryEntry(f"{shown} points", LIMITS.get(difference.method, LIMITS[""]))
    degrees = f"t with {plural(result.contrast.tasks - 1, 'degree')} of freedom"
    cut = cut_at(difference)
    return SummaryEntry(f"{shown} points", f"{degrees}; {cut}" if cut else degrees)


def _test(result: DeclaredResult) -> SummaryEntry:
    test, adjusted = result.part.test, result.part.adjusted
    if test.p_value is None:
        return SummaryEntry(NOTHING, test.reason)
    method = "exact, conditional, mid-p" if result.estimand == "these_tasks" else "paired t on task differences"
    if result.looks is not None or result.anytime is not None:
        method = test.method
    alpha = f"alpha {result.declared.alpha:g}" if adjusted is None else f"{bare_p(adjusted.p_value)} after Holm"
    monitored = "; not valid under monitoring" if result.monitored else ""
    return SummaryEntry(p_value(test.p_value), f"{method}; {alpha}{monitored}")


def _looks(result: DeclaredResult) -> SummaryEntry | None:
    if result.declared.stop is None:
        return None
    if result.anytime is not None:
        return _bets(result.anytime)
    found = result.looks
    if found is None:
        return SummaryEntry(NOTHING, "declared for these tasks")
    state = f"decided: {found.ended}" if found.ended else "the campaign goes on"
    unbiased = found.difference.estimate if found.difference is not None else None
    median = "" if unbiased is None else f"; median-unbiased difference {points(unbiased)}"
    reps = f"; {found.planned[-1]} reps re-estimated, {found.revised_from} planned" if found.revised_from else ""
    return SummaryEntry(f"{len(found.taken)} of {len(found.planned)} taken", f"{state}{median}{reps}")


def _bets(found: AnytimeFinding) -> SummaryEntry:
    state = f"decided: {found.ended}" if found.ended else "may go on"
    return SummaryEntry(f"after each of {plural(len(found.taken), 'block')}", state)


def _information(result: DeclaredResult) -> SummaryEntry:
    part = result.part
    least = (
        "any p possible"
        if part.test.attainable_p is None
        else f"least possible p {bare_p(part.test.attainable_p)}"
    )
    if isinstance(part, OnTheseTasks):
        told = f"{part.informative:,} of {plural(part.strata, 'task')} informative"
        return SummaryEntry(told, f"{part.difference.n:,} trials; {least}")
    told = f"{part.moved:,} of {plural(result.contrast.tasks, 'task')} differ"
    share = part.largest_share  # above 1 where the others sum to the opposite: in its own table
    largest = "" if share is None or share > 1 else f"largest: {percent(share)} of the sum; "
    return SummaryEntry(told, f"{largest}{least}")


def _detectable(result: DeclaredResult) -> SummaryEntry | None:
    found = result.detectable
    if found is None:
        return None
    if found.mde is None:
        return SummaryEntry(NOTHING, found.reason)
    return SummaryEntry(f"{unsigned_points(found.mde)} points", f"{100 * found.power:g}% power; {made_by(found)}")


def made_by(found: Detectable) -> str:
    if found.estimand == "tasks_like_these":
        return "normal approximation"
    error = "" if found.monte_carlo_se is None else f" ±{unsigned_points(found.monte_carlo_se)} points"
    return f"simulation{error}"


def _power(result: DeclaredResult) -> SummaryEntry | None:
    found = result.power
    if found is None:
        return None
    if found.power is None or found.monte_carlo_se is None:
        return SummaryEntry(NOTHING, found.reason)
    error = f"±{percent(found.monte_carlo_se)}"
    return SummaryEntry(f"{percent(found.power)} power", f"at {points(found.effect)}; {error}")


def _equivalence(result: DeclaredResult) -> SummaryEntry | None:
    found = result.equivalence
    if found is None:
        return None
    within = f"within ±{unsigned_points(found.margin)} points"
    worse = f"not worse by that much: {DEMONSTRATED[found.non_inferior]}"
    return SummaryEntry(f"{within}: {DEMONSTRATED[found.equivalent]}", found.reason or worse)


def _lost(result: DeclaredResult) -> SummaryEntry:
    found = result.robustness
    if found is None:
        return SummaryEntry(NOTHING, "robustness is not known")
    lost = found.missing_treatment + found.missing_control
    if not lost:
        return SummaryEntry("none")
    runs = plural(lost, "lost first run")
    if found.robust:
        return SummaryEntry("robust", f"{runs} cannot change the decision")
    point = "some" if found.tipping_point is None else f"{found.tipping_point:,}"
    few = "" if found.tipping_exhaustive or found.tipping_point is None else "at most "
    return SummaryEntry("not robust", f"{few}{point} of {runs} could change the decision")


def _assumptions(result: DeclaredResult) -> SummaryEntry:
    if isinstance(result.part, OnTheseTasks):
        within = f"under drift: p {bare_p(result.part.by_block.test.p_value)} within task × block"
        return SummaryEntry("independent trials, no drift", within)
    return SummaryEntry("tasks sampled from their kind", result.part.caveat)
