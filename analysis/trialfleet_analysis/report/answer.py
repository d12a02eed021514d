"""The answer in two sentences: the decision of the declared contrast, then its size and its cost."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_analysis.rates import ConditionResult
from trialfleet_analysis.report.arrivals import qualify_answer
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.causes import forged_sentences
from trialfleet_analysis.report.cost_sentence import spent
from trialfleet_analysis.report.crashes import crash_sentences, find_halted_sides
from trialfleet_analysis.report.declared_result import (
    ENOUGH,
    DeclaredResult,
    could_tell,
    declared_result,
    outcome_of,
    report_context,
)
from trialfleet_analysis.report.equal_requests import warn_of_equal_arms
from trialfleet_analysis.report.unequal_ends import unequal_end_sentences
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.extended import EXTENDED
from trialfleet_designs.document.figures import (
    compare_rates,
    level,
    limits,
    name_these,
    p_value,
    percent,
    point_limits,
    points,
    unsigned_points,
)
from trialfleet_designs.document.lost_runs import warn_of_lost_runs
from trialfleet_designs.document.saturated_tasks import explain_impossible
from trialfleet_designs.document.tables import spaced
from trialfleet_designs.document.thin_tasks import name_thin_tasks
from trialfleet_ledger.plurals import plural

SHOWN: tuple[Outcome, ...] = ("more", "less")


def answer(report: Report) -> tuple[str, ...]:
    """The decision of the declared contrast; then its size and its cost. Without a declared contrast, every
    condition, and no test. Last, what equal first requests, crashed agents, forged passes, losses and failures of
    the provider make of it."""
    return (
        *qualify_answer(_of_contrast(report), report),
        *warn_of_equal_arms(report),
        *crash_sentences(report),
        *forged_sentences(report),
        *unequal_end_sentences(report),
    )


def _of_contrast(report: Report) -> tuple[str, ...]:
    if halted := find_halted_sides(report):
        names = " and ".join(halted)
        are = "conditions are halted" if len(halted) > 1 else "condition is halted"
        declared = (
            spaced(report.analysis.design) if report.headline is None else f"contrast {report.headline.name}"
        )
        return (f"The declared {declared} has no answer: its {are} ({names}).",)
    design, found, context = report.design, report.analysis.found, report_context(report)
    own = design.answer(found, context)
    if own is not None:
        return own
    result = declared_result(report)
    if result is None:
        return tuple(_conditions(report))
    outcome = outcome_of(result)
    size = _size(result, outcome)
    first, second = _decision(result, outcome), spent(report, result.contrast)
    if outcome in SHOWN:
        first = f"{first}: {size}{_few(result)}"
    elif size is not None:
        second = f"{size}{_needed(result, outcome)}. {second or ''}".rstrip()
    clauses = _after_stop(result, outcome)
    if clauses:
        first = f"{first} ({'; '.join(clauses)})"
    fragile = "" if outcome == "undefined" else _fragile(result)
    after = design.add_sentences(found, context)
    return tuple(text for text in (f"{first}.{_thin(result)}{fragile}", second, *after) if text)


def estimand(report: Report) -> str:
    """Which tasks the conditions' rates describe: printed with every table of rates."""
    return f"these tasks ({len(report.compared)} of {len(report.tasks)})"


def _decision(result: DeclaredResult, outcome: Outcome) -> str:
    contrast, on = result.contrast, _on(result)
    a, b = contrast.treatment, contrast.control
    going_on = not result.cancelled and (result.monitored or result.design.goes_on(result.found))
    if outcome == "undefined":
        reason = result.part.test.reason or result.part.difference.reason
        return f"No answer{' yet' if going_on else ''} on {a} against {b}: {reason}"
    if outcome == "conflict":
        of_test, of_mean = (a, b) if contrast.these_tasks.test.direction > 0 else (b, a)
        return (
            f"On {on}, {a} and {b} differ, but no direction can be stated: the test points to {of_test}, the mean "
            f"difference to {of_mean}"
        )
    if outcome in SHOWN:
        return f"On {on}, {a} passed {outcome} often than {b}"
    if claims_equivalence(result, outcome):
        margin, at = unsigned_points(result.declared.margin), " at the looks" * result.design.allows_for_looks
        return (
            f"The difference between {a} and {b} on {on} is no larger than {margin} points, either way "
            f"(two one-sided tests{at}, each at {result.declared.alpha:g})"
        )
    nothing = f"No difference was shown{' so far' if going_on else ''} between {a} and {b} on {on}"
    if outcome == "not_possible":
        these, alpha = contrast.these_tasks, result.declared.alpha
        return f"{nothing}: {explain_impossible(these.strata, these.informative, alpha, so_far=going_on)}"
    return nothing


def claims_equivalence(result: DeclaredResult, outcome: Outcome) -> bool:
    """Whether the answer is that the difference is no larger than the margin."""
    if outcome not in ("not_shown", "not_possible"):
        return False
    return _equivalent(result) and not (result.monitored or result.design.goes_on(result.found))


def _on(result: DeclaredResult) -> str:
    tasks = plural(result.contrast.tasks, "task")
    if result.estimand == "these_tasks":
        return name_these(result.contrast.tasks)
    part = result.contrast.tasks_like_these
    if result.declared.estimand == "other_repositories" and result.estimand == result.declared.reach:
        return f"tasks of other repositories, judged by {tasks} of {part.repositories:,}"
    if part.repositories:
        return f"tasks like these, of these {plural(part.repositories, 'repository')}, judged by {tasks}"
    return f"tasks like these, judged by {tasks}"


def _equivalent(result: DeclaredResult) -> bool:
    """Whether both tests against the declared margin reject."""
    return result.equivalence is not None and bool(result.equivalence.equivalent)


def _size(result: DeclaredResult, outcome: Outcome) -> str | None:
    contrast, difference, p = result.contrast, result.part.difference, result.part.test.p_value
    if difference.estimate is None:
        return None
    shown = point_limits(difference)
    interval = f"{level(difference.level)} interval {shown}" if shown else f"no interval: {difference.reason}"
    if (
        outcome not in SHOWN and _equivalent(result) and result.equivalence is not None and not _given_up(result)
    ):  # the interval of the tests that decide
        decides = result.equivalence.interval
        interval = f"{level(decides.level)} interval {point_limits(decides)}"
    monitored = ", not valid under monitoring" if result.monitored else ""
    tested = "" if p is None else f", {p_value(p, result.declared.alpha)}{monitored}"
    compared = compare_rates(contrast.treatment_rate, contrast.control_rate, difference.estimate)
    return f"{compared} ({interval}){tested}"


def _thin(result: DeclaredResult) -> str:
    """Added to the decision: the tasks that losses took out, and the difference with them."""
    thin, every = result.contrast.compared.thin, result.contrast.with_thin
    if not thin:
        return ""
    left_out = f" {name_thin_tasks(thin)}"
    if every is None or result.design.allows_for_looks:
        return f"{left_out}."
    difference = every.these_tasks if result.estimand == "these_tasks" else every.tasks_like_these
    if difference.estimate is None:
        return f"{left_out}."
    shown = point_limits(difference)
    interval = f" ({level(difference.level)} interval {shown})" if shown else ""
    them = "it" if len(thin) == 1 else "them"
    return f"{left_out}; with {them} the difference is {points(difference.estimate)}{interval}."


def _given_up(result: DeclaredResult) -> str | None:
    """Why the rule of futility ended the campaign, as a clause; None: it did not."""
    return result.design.explain_stop(result.found)


def _after_stop(result: DeclaredResult, outcome: Outcome) -> list[str]:
    """What a reader must know of the looks that led to this decision, as clauses."""
    why = None if outcome == "undefined" else _given_up(result)
    clauses = [] if why is None else [f"stopped: {why}"]
    clauses += [_withdrawn(result)] if result.withdrawn else []
    return [*clauses, *([_extended(result)] if result.extended and outcome != "undefined" else [])]


def _extended(result: DeclaredResult) -> str:
    """Why the p is not valid, and what is: bets on pairs, for these tasks."""
    found = result.companion
    if found is None or found.p_value is None:
        return EXTENDED
    shown = point_limits(found.difference)
    interval = f", {level(found.difference.level)} interval {shown}" if shown else ""
    return f"{EXTENDED}; valid at any look: {p_value(found.p_value)}{interval}, by bets on pairs"


def _withdrawn(result: DeclaredResult) -> str:
    """Where data were seen that no longer count."""
    return f"{result.design.name_last_look(result.found)} on data since withdrawn"


def _few(result: DeclaredResult) -> str:
    """Names the informative tasks where they are one or two."""
    few = could_tell(result.contrast)
    return f"; {few}" if few and result.contrast.these_tasks.informative < ENOUGH else ""


def _needed(result: DeclaredResult, outcome: Outcome) -> str:
    """What the design would have found most of the time, where it found nothing."""
    found, planned = result.detectable, result.planned
    if outcome != "not_shown" or _equivalent(result):
        return ""
    if planned is not None:
        return (
            f"; the plan with its looks had {percent(planned.power)} power at a true difference of "
            f"{unsigned_points(planned.effect)} points"
        )
    if found is None or found.mde is None or result.design.plans_power:
        return ""
    needed = f"{unsigned_points(found.mde)} points"
    return (
        f"; so many trials notice a true difference of {needed} or more most times ({100 * found.power:g}% power)"
    )


def _fragile(result: DeclaredResult) -> str:
    """Added to the decision where lost runs could have made it; the table has the rest."""
    found = result.robustness
    if found is None or found.robust:
        return ""
    missing, forged = found.missing_treatment + found.missing_control, found.forged > 0
    enough, sure = found.tipping_point, found.tipping_exhaustive or found.tipping_point is None
    said = warn_of_lost_runs(missing, forged=forged, enough=enough, sure=sure, same_without=found.same_without)
    return f" {said}"


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
