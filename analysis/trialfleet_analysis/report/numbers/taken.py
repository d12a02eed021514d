"""What context changed in turns, time, tokens and money."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.continuous import BootstrapInterval
from trialfleet_analysis.process import Unit
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.measures import (
    CostPerPass,
    CostRatio,
    Distribution,
    Incidence,
    MeasureContrast,
)
from trialfleet_analysis.report.figures import NOTHING, bare_p, change, decimals, percent, quantity, times
from trialfleet_analysis.report.numbers.contrasts import corrected
from trialfleet_analysis.report.numbers.process import BY_KEY, core_seconds, medians
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    full,
    maybe,
    p_of,
    sampled_p,
    table,
)

OTHERS = "Metrics of the other contrasts"
SHOWN_TIMES = 6  # of a curve, in the table


def taken(report: Report) -> Section:
    analysis = report.analysis
    sides = dict.fromkeys((one.treatment, one.control) for one in analysis.measures)
    first = next(iter(sides), None)
    return Section(
        "taken",
        "What trials took",
        f"Success ends a run, so time and tokens are of all runs, passed or not. {core_seconds(report)}",
        full(
            *(one for pair in sides for one in _measures(report, pair, folded=pair != first)),
            _costs(analysis.costs),
            _ratios(analysis.cost_ratios),
            _time_to_pass(report),
            _incidence(analysis.incidence),
            *medians(report),
            _quartiles(report),
        ),
    )


def unit_of(measure: str) -> Unit:
    return BY_KEY[measure].unit if measure in BY_KEY else "count"


def label_of(measure: str) -> str:
    return BY_KEY[measure].label if measure in BY_KEY else measure


def _measures(report: Report, sides: tuple[str, str], *, folded: bool) -> Iterator[Table]:
    found = [one for one in report.analysis.measures if (one.treatment, one.control) == sides]
    name = f"{sides[0]} − {sides[1]}"
    columns = (
        "Metric",
        "Median, treatment",
        "Median, control",
        "Difference of means",
        "Interval",
        "Permutation p",
        "Corrected",
        "Cut off by a budget",
    )
    yield table(
        f"{name}: metrics on these tasks",
        columns,
        [_on_these(one) for one in found],
        lead="± is the standard error that resampling leaves in a p or a limit. Cut off: trials of treatment / "
        "control that hit a budget, whose values are lower bounds.",
        folded=folded,
        group=OTHERS if folded else "",
    )
    like = ("Metric", "Tasks", "Shift of medians", "Interval", "Signed-rank p", "Corrected")
    yield table(
        f"{name}: metrics on tasks like these",
        like,
        [_like_these(one) for one in found],
        folded=True,
        group=OTHERS if folded else "",
    )


def _on_these(one: MeasureContrast) -> Sequence[Cell]:
    unit, mean = unit_of(one.measure), one.mean_difference
    return (
        label_of(one.measure),
        Value(quantity(one.median_treatment, unit), f"n {one.trials_treatment:,}"),
        Value(quantity(one.median_control, unit), f"n {one.trials_control:,}"),
        maybe(change(mean.estimate, unit), mean.reason),
        _sampled_limits(mean, unit),
        p_of(one.permutation)
        if one.permutation.exact
        else sampled_p(one.permutation, one.permutation.monte_carlo_se),
        corrected(one.permutation_adjusted, alone=False),
        f"{one.cut_off_treatment:,} / {one.cut_off_control:,}",
    )


def _sampled_limits(found: BootstrapInterval, unit: Unit) -> Value:
    """With the error that only so many resamples leave in them."""
    limits, error = between(found.low, found.high, unit, found.reason), found.monte_carlo_se
    return limits if error is None else Value(limits.text, f"limits ± {quantity(max(error), unit)}")


def _like_these(one: MeasureContrast) -> Sequence[Cell]:
    unit, shift = unit_of(one.measure), one.shift
    return (
        label_of(one.measure),
        one.tasks,
        maybe(change(shift.estimate, unit), shift.reason),
        between(shift.low, shift.high, unit, shift.reason),
        maybe(bare_p(one.signed_rank.p_value), one.signed_rank.reason),
        corrected(one.signed_rank_adjusted, alone=False),
    )


def between(low: float | None, high: float | None, unit: Unit, reason: str | None) -> Value:
    if low is None or high is None:
        return Value(NOTHING, reason)
    return Value(f"{change(low, unit)} to {change(high, unit)}")


def _costs(found: Sequence[CostPerPass]) -> Table:
    columns = (
        "Condition",
        "Passes",
        "Cost of measured trials",
        "Cost per pass",
        "Cost per pass, lost runs included",
        "Lost runs without a cost",
    )
    rows = (
        (
            one.condition,
            one.passes,
            quantity(one.cost, "usd"),
            maybe(quantity(one.without_losses, "usd"), one.reason),
            _with_losses(one),
            one.unknown,
        )
        for one in found
    )
    return table("What a pass costs", columns, rows if any(one.cost is not None for one in found) else ())


def _with_losses(one: CostPerPass) -> Value:
    """Known, or between the cost without them and that with the plan's cap for each."""
    if one.with_losses is not None or one.without_losses is None:
        return maybe(quantity(one.with_losses, "usd"), one.reason)
    low, high = quantity(one.without_losses, "usd"), one.with_losses_at_most
    if high is None:
        return Value(f"{low} or more", "what a lost run cost is in no record, and the plan has no cap")
    return Value(f"{low} to {quantity(high, 'usd')}", "each lost run at no more than the plan’s cap")


def _ratios(found: Sequence[CostRatio]) -> Table:
    columns = ("Contrast", Words("Estimand"), "Ratio of costs per pass", "Interval", "Resamples without a ratio")
    return table("Cost per pass, treatment over control", columns, (row for one in found for row in _ratio(one)))


def _ratio(one: CostRatio) -> Iterator[Sequence[Cell]]:
    for name, part in (("these tasks", one.these_tasks), ("tasks like these", one.tasks_like_these)):
        known = part.low is not None and part.high is not None
        yield (
            f"{one.treatment} / {one.control}",
            name,
            maybe(times(part.estimate), part.reason),
            Value(f"{times(part.low)} to {times(part.high)}", _error(part))
            if known
            else Value(NOTHING, part.reason),
            percent(part.undefined_share),
        )


def _error(found: BootstrapInterval) -> str | None:
    return None if found.monte_carlo_se is None else f"limits ± {decimals(max(found.monte_carlo_se))}"


def _time_to_pass(report: Report) -> Table:
    rows = (
        (
            f"{one.treatment} − {one.control}",
            quantity(one.limit_s, "s"),
            maybe(change(one.difference.estimate, "s"), one.difference.reason),
            between(one.difference.low, one.difference.high, "s", one.difference.reason),
        )
        for one in report.analysis.time_to_pass
    )
    lead = "Mean agent time to a pass, a failure counting as the whole limit; these tasks."
    return table("Time to a pass", ("Contrast", "Limit", "Difference", "Interval"), rows, lead=lead)


def _incidence(found: Sequence[Incidence]) -> Table | None:
    if not found:
        return None
    at = found[0].at
    step = max(1, len(at) // SHOWN_TIMES)
    places = range(step - 1, len(at), step)
    columns = ("Condition", *(f"by {quantity(at[n], 's')}" for n in places))
    rows = [(one.condition, *(percent(one.passed[n]) for n in places)) for one in found]
    return table("Share passed by then", columns, rows, folded=True)


def _quartiles(report: Report) -> Table:
    columns = ("Metric", Words("Condition"), "Lower quartile", "Median", "Upper quartile", "Trials")
    rows = [_quartile(one) for one in report.analysis.distributions]
    return table("Quartiles over trials", columns, rows, folded=True)


def _quartile(one: Distribution) -> Sequence[Cell]:
    unit = unit_of(one.measure)
    low, middle, high = (quantity(value, unit) for value in one.quartiles or (None, None, None))
    return label_of(one.measure), one.condition, low, middle, high, sum(one.counts)
