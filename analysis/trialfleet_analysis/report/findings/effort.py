"""Effects on turns, time, tokens and money; first edits, and the turns before and after them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from trialfleet_analysis.analysis_plan.measures import CostPerPass, CostRatio, Distribution, MeasureContrast
from trialfleet_analysis.analysis_plan.timing import AfterFirstEdit, EditTiming, HitOf, HitSplit, Phase
from trialfleet_analysis.process import Typical
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.contrasts import corrected
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    change,
    decimals,
    limit_times,
    percent,
    quantity,
    seconds,
    times,
)
from trialfleet_designs.document.tables import (
    Cell,
    ReportSection,
    ReportTable,
    Value,
    crossed,
    number,
    or_reason,
    rate,
    rate_limits,
    sampled_p,
    section,
    table,
    text,
)
from trialfleet_ledger.metric_table import BY_NAME, REPORTED, Metric, Unit
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.continuous import BootstrapInterval
from trialfleet_statistics.estimates import Interval

OTHERS = "Metrics of the other contrasts"
SHOWN_TIMES = 6  # points of a curve in its table
WIDEST = 8  # conditions in one table: the width of a printed page


def effort(report: Report) -> ReportSection:
    analysis = report.analysis
    sides = list(dict.fromkeys((one.treatment, one.control) for one in analysis.measures))
    return section(
        "taken",
        "What did it cost?",
        f"Success ends a run, so time and tokens are of all runs, passed or not. {core_seconds(report)}",
        *(one for n, pair in enumerate(sides) for one in _metrics(report, pair, folded=n > 0)),
        _costs(analysis.costs),
        _ratios(analysis.cost_ratios),
        _time_to_pass(report),
        _incidence(report),
        *_medians(report),
        _quartiles(analysis.distributions),
    )


def core_seconds(report: Report) -> str:
    core = report.core_seconds
    if core.median is None:
        return "Core seconds were not measured."
    return (
        f"Core time per trial: median {seconds(core.median)}, mean {seconds(core.mean)} over "
        f"{plural(core.trials, 'trial')}; medians of overhead {seconds(core.overhead)}, agent "
        f"{seconds(core.agent)}, tests {seconds(core.tests)}."
    )


def _metrics(report: Report, sides: tuple[str, str], *, folded: bool) -> Iterator[ReportTable]:
    found = [one for one in report.analysis.measures if (one.treatment, one.control) == sides]
    name, group = f"{sides[0]} − {sides[1]}", OTHERS if folded else ""
    yield table(
        f"{name}: metrics on these tasks",
        found,
        text("Metric", lambda one: BY_NAME[one.measure].label),
        number("Median, treatment", lambda one: _median(one, one.median_treatment, one.trials_treatment)),
        number("Median, control", lambda one: _median(one, one.median_control, one.trials_control)),
        number("Difference of means", lambda one: _change(one, one.mean_difference)),
        number("Interval", _sampled_limits),
        number("Permutation p", lambda one: sampled_p(one.permutation, _error_of_p(one))),
        number("Corrected", lambda one: corrected(one.permutation_adjusted)),
        number("Cut off by a budget", lambda one: f"{one.cut_off_treatment:,} / {one.cut_off_control:,}"),
        lead="± is the standard error that resampling leaves in a p or a limit. Cut off: trials of treatment / "
        "control that hit a budget, whose values are lower bounds.",
        folded=folded,
        group=group,
    )
    yield table(
        f"{name}: metrics on tasks like these",
        found,
        text("Metric", lambda one: BY_NAME[one.measure].label),
        number("Tasks", lambda one: one.tasks),
        number("Shift of medians", lambda one: _change(one, one.shift)),
        number("Interval", lambda one: change_limits(one.shift, BY_NAME[one.measure].unit)),
        number("Signed-rank p", lambda one: or_reason(bare_p(one.signed_rank.p_value), one.signed_rank.reason)),
        number("Corrected", lambda one: corrected(one.signed_rank_adjusted)),
        folded=True,
        group=group,
    )


def _median(one: MeasureContrast, median: float | None, trials: int) -> Value:
    return Value(quantity(median, BY_NAME[one.measure].unit), f"n {trials:,}")


def _change(one: MeasureContrast, found: Interval) -> Value:
    return or_reason(change(found.estimate, BY_NAME[one.measure].unit), found.reason)


def _error_of_p(one: MeasureContrast) -> float | None:
    return None if one.permutation.exact else one.permutation.monte_carlo_se


def _sampled_limits(one: MeasureContrast) -> Value:
    """With the Monte Carlo error of the limits."""
    unit, found = BY_NAME[one.measure].unit, one.mean_difference
    limits, error = change_limits(found, unit), found.monte_carlo_se
    return limits if error is None else Value(limits.text, _simulation_error(quantity(max(error), unit)))


def _simulation_error(shown: str) -> str | None:
    """None: it is rounded to nothing."""
    return f"limits ± {shown}" if re.search("[1-9]", shown) else None


def change_limits(found: Interval, unit: Unit) -> Value:
    if found.low is None or found.high is None:
        return Value(NOTHING, found.reason)
    return Value(f"{change(found.low, unit)} to {change(found.high, unit)}")


def _costs(found: Sequence[CostPerPass]) -> ReportTable:
    return table(
        "What a pass costs",
        found if any(one.cost is not None for one in found) else (),
        text("Condition", lambda one: one.condition),
        number("Passes", lambda one: one.passes),
        number("Cost of measured trials", lambda one: quantity(one.cost, "usd")),
        number("Cost per pass", lambda one: or_reason(quantity(one.without_losses, "usd"), one.reason)),
        number("Cost per pass, lost runs included", _with_losses),
        number("Lost runs without a cost", lambda one: one.unknown),
    )


def _with_losses(one: CostPerPass) -> Value:
    """Known, or between the cost without them and that with the plan's cap for each."""
    if one.with_losses is not None or one.without_losses is None:
        return or_reason(quantity(one.with_losses, "usd"), one.reason)
    low, high = quantity(one.without_losses, "usd"), one.with_losses_at_most
    if high is None:
        return Value(f"{low} or more", "what a lost run cost is in no record, and the plan has no cap")
    return Value(f"{low} to {quantity(high, 'usd')}", "each lost run at no more than the plan’s cap")


def _ratios(found: Sequence[CostRatio]) -> ReportTable:
    return table(
        "Cost per pass, treatment over control",
        (
            (f"{one.treatment} / {one.control}", *part)
            for one in found
            for part in zip(ESTIMANDS.values(), (one.these_tasks, one.tasks_like_these), strict=True)
        ),
        text("Contrast", lambda row: row[0]),
        text("Estimand", lambda row: row[1]),
        number("Ratio of costs per pass", lambda row: or_reason(times(row[2].estimate), row[2].reason)),
        number("Interval", lambda row: _ratio_limits(row[2])),
        number("Resamples without a ratio", lambda row: percent(row[2].undefined_share)),
    )


def _ratio_limits(found: BootstrapInterval) -> Value:
    if found.low is None or found.high is None:
        return Value(NOTHING, found.reason)
    error = None if found.monte_carlo_se is None else _simulation_error(decimals(max(found.monte_carlo_se)))
    return Value(f"{limit_times(found.low)} to {limit_times(found.high)}", error)


def _time_to_pass(report: Report) -> ReportTable:
    return table(
        "Time to a pass",
        report.analysis.time_to_pass,
        text("Contrast", lambda one: f"{one.treatment} − {one.control}"),
        number("Limit", lambda one: quantity(one.limit_s, "s")),
        number("Difference", lambda one: or_reason(change(one.difference.estimate, "s"), one.difference.reason)),
        number("Interval", lambda one: change_limits(one.difference, "s")),
        lead="Mean agent time to a pass, a failure counting as the whole limit; these tasks.",
    )


def _incidence(report: Report) -> ReportTable:
    passed = {one.condition: one.passed for one in report.analysis.incidence}
    at = report.analysis.incidence[0].at if passed else ()
    step = max(1, len(at) // SHOWN_TIMES)
    heads = {n: f"by {quantity(at[n], 's')}" for n in range(step - 1, len(at), step)}
    return crossed(
        "Share passed by then",
        "Condition",
        passed,
        heads,
        lambda name, n: percent(passed[name][n]),
        folded=True,
    )


def _medians(report: Report) -> Iterator[ReportTable]:
    """Several tables where there are many conditions."""
    names = report.condition_names
    found = {(entry.condition, entry.measure): entry for entry in report.metrics}
    measured = [one for one in REPORTED if any(key == one.name for _, key in found)]
    for first in range(0, len(names), WIDEST):
        shown = names[first : first + WIDEST]
        title = "Medians of every metric"
        yield table(
            title + (f", conditions {first + 1} to {first + len(shown)}" if first else ""),
            measured,
            text("Metric", lambda one: one.label + (" (share)" if one.unit == "share" else "")),
            *(number(name, partial(_typical, found, name)) for name in shown),
            lead="The median over tasks of each task’s median, so that every task counts once; shares are means "
            "in both places. n: trials with the metric. Runs that hit a budget are cut off there: their times and "
            "tokens are lower bounds.",
            folded=True,
        )


def _typical(found: Mapping[tuple[str, str], Typical], condition: str, metric: Metric) -> Cell:
    entry = found.get((condition, metric.name))
    return NOTHING if entry is None else Value(quantity(entry.value, metric.unit), f"n {entry.trials:,}")


def _quartiles(found: Sequence[Distribution]) -> ReportTable:
    return table(
        "Quartiles over trials",
        (
            (one, [quantity(value, BY_NAME[one.measure].unit) for value in one.quartiles or [None] * 3])
            for one in found
        ),
        text("Metric", lambda row: BY_NAME[row[0].measure].label),
        text("Condition", lambda row: row[0].condition),
        number("Lower quartile", lambda row: row[1][0]),
        number("Median", lambda row: row[1][1]),
        number("Upper quartile", lambda row: row[1][2]),
        number("Trials", lambda row: sum(row[0].counts)),
        folded=True,
    )


PHASES: dict[Phase, str] = {"exploration": "Exploration", "edit": "Edit", "tail": "Tail"}
HITS: dict[HitOf, str] = {
    "target_hit": "it edited a file of the fix",
    "predicted_hit": "a predicted file is one of the fix",
    "preflight_hit": "the pre-flight pointed at a file of the fix",
}


def timing(report: Report) -> ReportSection:
    found = report.analysis.timing
    return section(
        "timing",
        "When did agents edit first?",
        "When agents first edited, and how their turns divide into exploration (before the first edit), edit "
        "(first to last) and tail (after). All of it describes; whether a condition moved the first edit is "
        "tested under “What did it cost?”.",
        _first(found.conditions),
        _phases(found.conditions),
        _after(found.after),
        _hits(found.hits),
    )


def _first(found: Sequence[EditTiming]) -> ReportTable:
    return table(
        "When agents first edited",
        found,
        text("Condition", lambda one: one.condition),
        number("Trials", lambda one: one.trials),
        number("Edited", lambda one: rate(one.share_edited)),
        number("Interval", lambda one: rate_limits(one.share_edited)),
        number("First edit, turn", lambda one: _median_of(one.first_edit_turn, "count")),
        number("Interval", lambda one: _median_limits(one.first_edit_turn, "count")),
        number("First edit, time", lambda one: _median_of(one.first_edit_s, "s")),
        number("Interval", lambda one: _median_limits(one.first_edit_s, "s")),
        number("Not observed", lambda one: one.unseen),
        lead="On these tasks: share of trials with an edit, and the median over tasks of each task’s median. A "
        "trial without an edit counts as one that would have edited later than all others. Not observed: the "
        "workspace could not be watched to the end; these trials are in no other column.",
    )


def _median_of(found: BootstrapInterval, unit: Unit) -> Value:
    return or_reason(quantity(found.estimate, unit), found.reason)


def _median_limits(found: BootstrapInterval, unit: Unit) -> Value:
    return or_reason(open_limits(found, unit), found.reason if found.estimate is not None else None)


def open_limits(found: Interval, unit: Unit) -> str:
    """Limits of which one may be unbounded."""
    low, high = quantity(found.low, unit), quantity(found.high, unit)
    if found.low is not None and found.high is not None:
        return f"{low} to {high}"
    return f"{low} or more" if found.low is not None else f"{high} or less" if found.high is not None else NOTHING


def _phases(found: Sequence[EditTiming]) -> ReportTable:
    return table(
        "Exploration, edit, tail",
        ((one.condition, phase) for one in found for phase in one.phases),
        text("Condition", lambda row: row[0]),
        text("Phase", lambda row: PHASES[row[1].phase]),
        number("Share of turns", lambda row: rate(row[1].share)),
        number("Interval", lambda row: rate_limits(row[1].share)),
        number("Turns, median", lambda row: _median_of(row[1].turns, "count")),
        number("Interval", lambda row: _median_limits(row[1].turns, "count")),
        lead="On these tasks: the mean over tasks of a trial’s share of its turns, and medians as above. The "
        "three shares add up to 100%, so that one cannot grow without another shrinking. A trial without an edit "
        "explored to its end.",
    )


def _after(found: Sequence[AfterFirstEdit]) -> ReportTable:
    return table(
        "What follows a later first edit",
        found,
        text("Trials of", lambda one: one.condition or "all conditions, with condition effects"),
        number("Trials", lambda one: one.trials),
        number(
            "Turns after, per turn later",
            lambda one: or_reason(_slope(one.these_tasks.estimate), one.these_tasks.reason),
        ),
        number("Interval, these tasks", lambda one: _slope_limits(one.these_tasks)),
        number("Interval, tasks like these", lambda one: _slope_limits(one.tasks_like_these)),
        number("Cut off by a budget", lambda one: one.cut_off),
        lead="How many turns more follow the first edit when it comes one turn later, within a task: +1 is one "
        "turn more, 0 none. The whole session is not regressed on its first edit, which is part of it: that slope "
        "would be this one plus 1, by arithmetic. No causal claim: what makes an agent search long may make it "
        "work long. A limit on turns cuts the late ones most.",
    )


def _slope(value: float | None) -> str:
    if value is None:
        return NOTHING
    return ("+" if round(value, 2) > 0 else "") + decimals(value).replace("−0.00", "0.00")


def _slope_limits(found: Interval) -> Value:
    if found.low is None or found.high is None:
        return Value(NOTHING, found.reason)
    return Value(f"{_slope(found.low)} to {_slope(found.high)}")


def _hits(found: Sequence[HitSplit]) -> ReportTable:
    return table(
        "Trials that hit, and trials that did not",
        ((split, group) for split in found for group in split.groups),
        text("Condition", lambda row: row[0].condition),
        text("Hit: whether", lambda row: HITS[row[0].of]),
        text("Hit", lambda row: "yes" if row[1].hit else "no"),
        number("Trials", lambda row: row[1].trials),
        number("In tasks", lambda row: row[1].tasks),
        number("Passed", lambda row: percent(row[1].passes / row[1].trials) if row[1].trials else NOTHING),
        number("First edit, turn", lambda row: quantity(row[1].median_first_edit, "count")),
        number("Turns", lambda row: quantity(row[1].median_turns, "count")),
        lead="A description, never an effect: a hit comes after the treatment began, and a trial that hits had "
        "the easier task or was on the way to a pass. Medians over trials; compare conditions, not these rows.",
    )
