"""What to do next: whether more reps or more tasks would help, how many, and for how much money."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from trialfleet_analysis.analysis_plan.power_summary import POWER, More
from trialfleet_analysis.report.answer import SHOWN, claims_equivalence
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.crashes import find_halted_sides
from trialfleet_analysis.report.declared_result import DeclaredResult, could_tell, declared_result
from trialfleet_analysis.report.verdict_label import may_still_change
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.figures import quantity, unsigned_points
from trialfleet_designs.protocol import FRAGILE, name_doubts
from trialfleet_ledger.plurals import enumerate_words, plural
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.power.allocation import least_effect

PLAN = "`trialfleet power` says what a campaign of any size would notice and cost"
LITTLE = 0.9  # of the difference that is noticed now: where twice the reps leave more than this, they help little


def suggest_next_step(report: Report) -> str | None:
    """None where nothing was declared, and where the data allow no answer for a reason that the answer names.
    Differences rest on blinded rates, never on the effect that was observed; money on what the trials cost."""
    outcome, result = report.decision, declared_result(report)
    if report.dry_run:
        return "Run the campaign itself: a dry run answers nothing about its agent or its contexts."
    if outcome is None:
        return None
    if halted := find_halted_sides(report):
        return _after_halt(report, " and ".join(halted))
    if may_still_change(report, outcome):
        return _while_open(report)
    alike = result is not None and claims_equivalence(result, outcome)
    if alike or outcome in (*SHOWN, "shown") or report.design.name_outcome(report.analysis.found):
        return _once_answered(report, result, alike=alike)
    return _where_undecided(report, result, outcome) if outcome in ("not_shown", "not_possible") else None


def _after_halt(report: Report, names: str) -> str:
    if report.progress.cancelled:
        return f"Fix what halted {names}, then run a new campaign: this one was cancelled."
    return f"Fix what halted {names}; `trialfleet resume --lift` then continues the campaign."


def _while_open(report: Report) -> str | None:
    """Bets allow for reps that are added; for other designs there is nothing to add before the end."""
    progress, doubled = report.progress, 2 * report.progress.blocks
    if progress.interim and progress.halted:
        return _after_halt(report, "the campaign")
    if progress.cancelled:
        return "Run a new campaign: this one was cancelled before it had an answer."
    if progress.interim:
        return f"{suggest_wait(report)} If no controller is running, {progress.way_on}."
    if report.design.is_fixed_on("these_tasks"):
        return None
    return (
        f"Add reps, which this design allows for: `trialfleet resume --reps {doubled}` doubles them; "
        f"{_price(report, progress.blocks, every=True)}."
    )


def suggest_wait(report: Report) -> str:
    """For the trials that are not over, with their price where it is known."""
    waits = [one for one in report.below_plan if one.condition not in report.halted_conditions]
    left = Counter[str]()
    for one in waits:
        left[one.condition] += one.planned - one.terminal
    trials = plural(left.total(), "trial")
    if not left.total():
        return "Wait until its blocks are complete."
    most = "at most " if report.design.may_end_early(report.analysis.found) else ""
    costs = {
        one.condition: one.cost / one.trials
        for one in report.analysis.costs
        if one.cost is not None and one.trials
    }
    if not left.keys() <= costs.keys():
        return f"Wait for what is left: {most}{trials}."
    price = _money(sum(number * costs[name] for name, number in left.items()))
    return f"Wait for what is left: {most}{trials}, about {price} at what a trial cost here."


def _once_answered(report: Report, result: DeclaredResult | None, *, alike: bool) -> str:
    doubts = list(_list_doubts(report, result))
    if doubts:
        return f"Confirm it in a new campaign before relying on it: {enumerate_words(doubts)}."
    if alike:
        return f"This question is answered. A smaller margin takes a new campaign: {PLAN}."
    if result is None or result.estimand != "these_tasks":
        return "This question is answered and needs no more trials."
    return (
        "This question is answered for these tasks and needs no more trials of them. Whether it holds for other "
        "tasks, only more tasks can tell."
    )


def _list_doubts(report: Report, result: DeclaredResult | None) -> Iterator[str]:
    """Why an answer is not one to rely on, as clauses."""
    if result is None:
        own = report.design.list_doubts(report.analysis.found)
    else:
        fragile = result.robustness is not None and not result.robustness.robust
        own = name_doubts(robust=not fragile, withdrawn=bool(result.withdrawn))
    if sum(sentence.count("Careful: ") for sentence in report.answer) > own.count(FRAGILE):
        yield "the answer carries a warning"
    valid = result.companion.p_value if result and result.companion else None
    ended = report.design.has_ended(report.analysis.found)
    extended = report.progress.extended_after_look and not (ended or report.design.allows_for_looks)
    if extended and (result is None or valid is None or valid > result.declared.alpha):
        yield "its p-value does not allow for the reps that were added"
    yield from own


def _where_undecided(report: Report, result: DeclaredResult | None, outcome: Outcome) -> str:
    few = None if result is None else could_tell(result.contrast)
    if outcome == "not_possible" and few:
        return (
            f"More reps of the same tasks may change nothing: {few}. Plan a new campaign with tasks that pass "
            f"sometimes: {PLAN}."
        )
    if result is None:
        return f"Only a new, larger campaign can show more: {PLAN}."
    if result.declared.estimand == "other_repositories":
        return f"Only tasks of more repositories can tell more about others, in a new campaign: {PLAN}."
    larger = _suggest_larger(report, result)
    return larger or f"Only a new, larger campaign can find a smaller difference: {PLAN}."


def _suggest_larger(report: Report, result: DeclaredResult) -> str | None:
    """None where the least difference that this design finds is not known, or is not that of a fixed end."""
    if result.design.plans_power or result.detectable is None or result.detectable.mde is None:
        return None
    run, *others = report.analysis.outlook.more
    reps = next((one for one in others if one.tasks == run.tasks), None)
    tasks = next((one for one in others if one.reps == run.reps), None)
    now, more_reps, more_tasks = (_least_noticed(one, result.estimand) for one in (run, reps, tasks))
    if now is None or more_reps is None or more_tasks is None:
        return None
    larger = (
        f"A new campaign with twice the reps ({2 * report.progress.complete_blocks:,} each) would notice a "
        f"difference of about {unsigned_points(more_reps)} points four times in five, against "
        f"{unsigned_points(now)} with as many as now"
    )
    added = "Reps that are added to this campaign instead make its p-value invalid."
    if result.estimand == "these_tasks":
        return f"{larger}; {_price(report, 2 * report.progress.complete_blocks)}. {added}"
    tasks_too = f"one with twice the tasks ({2 * run.tasks:,}), {unsigned_points(more_tasks)}"
    best = _compare_with_tasks(report, run, now=now, more_reps=more_reps, more_tasks=more_tasks)
    return (
        f"{larger}; {tasks_too}. {best}For either, {_price(report, 2 * report.progress.complete_blocks)}. {added}"
    )


def _least_noticed(design: More | None, estimand: Estimand) -> float | None:
    if design is None:
        return None
    return design.mde_these_tasks if estimand == "these_tasks" else design.mde_tasks_like_these


def _compare_with_tasks(report: Report, run: More, *, now: float, more_reps: float, more_tasks: float) -> str:
    """What the spread of effects between tasks leaves for reps to gain, as a sentence; empty: as much as tasks."""
    outlook, declared = report.analysis.outlook, report.analysis.declared
    if outlook.sigma_int and declared is not None and more_reps > LITTLE * now:
        error = outlook.sigma_int / math.sqrt(run.tasks)
        least = least_effect(error, df=outlook.freedom, alpha=declared.alpha, power=POWER)
        return (
            f"More reps help little: however many, {plural(run.tasks, 'task')} would not notice less than "
            f"{unsigned_points(least)}. "
        )
    return "More tasks help more than more reps. " if more_tasks < more_reps else ""


def _price(report: Report, blocks: int, *, every: bool = False) -> str:
    """What so many blocks of the campaign's tasks cost, at the mean cost of a trial here, as a clause. `every`: of
    all conditions, not of the compared ones alone."""
    found = [one for one in report.analysis.costs if every or one.condition in report.analysis.sides]
    means = [one.cost / one.trials for one in found if one.cost is not None and one.trials]
    if not means or len(means) < len(found):
        reason = next((f": {one.reason}" for one in found if one.cost is None), "")
        return f"what it would cost is not known{reason}"
    lost = ", lost runs not counted" if any(one.unknown for one in found) else ""
    whose = "all conditions" if every else "the compared conditions"
    total = _money(blocks * len(report.tasks) * sum(means))
    return f"at what a trial cost here, {whose} take about {total}{lost}"


def _money(usd: float) -> str:
    """An estimate: no cents where they are less than a hundredth."""
    return f"${usd:,.0f}" if usd >= 10 else quantity(usd, "usd")
