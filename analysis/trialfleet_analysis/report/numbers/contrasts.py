"""Contrasts in both estimands, with what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.contrasts import (
    Adjusted,
    Contrast,
    Family,
    OnTasksLikeThese,
    OnTheseTasks,
    Role,
)
from trialfleet_analysis.report.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    decimals,
    level,
    percent,
)
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    full,
    gap,
    gap_limits,
    maybe,
    p_of,
    spaced,
    table,
)

ROLES: dict[Role, str] = {
    "primary": "primary",
    "secondary": "secondary",
    "unplanned": "unplanned",
    "ceiling": "a ceiling, apart",
    "asked": "asked for after the fact",
}
MONITORED = " The campaign is not over: no p-value below is valid as it stands."
SAYS = {True: "yes", False: "no: the p decides", None: NOTHING}


def contrasts(report: Report) -> Section:
    found = report.analysis.contrasts
    return Section(
        "contrasts",
        "Contrasts",
        "Treatment less control, in percentage points, in both estimands. These tasks: would the same tasks, run "
        "again, show it? Tasks like these: would other tasks of their kind? Only the declared primary contrast in "
        "its declared estimand is the result; every other p-value is corrected in its family."
        + (MONITORED if report.analysis.monitored else ""),
        full(
            _contrasts(found),
            _on_these_tasks(found),
            _by_block(found),
            _tasks_like_these(found),
            _between_tasks(found),
            _packages(found),
            families(report.analysis.families),
        ),
    )


def corrected(adjusted: Adjusted | None, *, alone: bool) -> Value:
    if adjusted is None:
        return Value("alone" if alone else NOTHING)
    return maybe(bare_p(adjusted.p_value), "dropped: could not reach alpha")


def _contrasts(found: Sequence[Contrast]) -> Table:
    of = level(found[0].these_tasks.difference.level) if found else "95%"
    columns = (
        "Contrast",
        Words("Role"),
        Words("Estimand"),
        "Tasks",
        "Treatment",
        "Control",
        "Difference, points",
        f"{of} interval",
        "p",
        "Corrected p",
    )
    return table("Contrasts in numbers", columns, (row for one in found for row in _both(one)))


def _both(one: Contrast) -> Iterator[Sequence[Cell]]:
    parts: tuple[OnTheseTasks | OnTasksLikeThese, ...] = (one.these_tasks, one.tasks_like_these)
    for name, part in zip(ESTIMANDS.values(), parts, strict=True):
        yield (
            one.name,
            ROLES[one.role],
            name,
            one.tasks,
            percent(one.treatment_rate),
            percent(one.control_rate),
            gap(part.difference),
            gap_limits(part.difference),
            p_of(part.test),
            corrected(part.adjusted, alone=one.role == "primary" and part.test.p_value is not None),
        )


def _on_these_tasks(found: Sequence[Contrast]) -> Table:
    rows = (
        (
            one.name,
            maybe(decimals(one.these_tasks.odds_ratio.estimate), one.these_tasks.odds_ratio.reason),
            _odds_limits(one),
            f"{one.these_tasks.informative} of {one.these_tasks.strata}",
            bare_p(one.these_tasks.test.attainable_p),
            SAYS[one.these_tasks.agrees],
        )
        for one in found
    )
    columns = (
        "Contrast",
        "Odds ratio",
        "Its interval",
        "Informative tasks",
        "Least p these totals allow",
        Words("Interval and test agree"),
    )
    return table("On these tasks: odds ratios", columns, rows, folded=True)


def _odds_limits(one: Contrast) -> Value:
    found = one.these_tasks.odds_ratio
    if found.low is None and found.high is None:
        return Value(NOTHING)
    low = "0" if found.low is None else decimals(found.low)
    return Value(f"{low} to {'unbounded' if found.high is None else decimals(found.high)}")


def _by_block(found: Sequence[Contrast]) -> Table:
    rows = (
        (
            one.name,
            p_of(one.these_tasks.by_block.test),
            one.these_tasks.by_block.pairs,
            one.these_tasks.by_block.only_treatment,
            one.these_tasks.by_block.only_control,
            one.these_tasks.by_block.broken,
        )
        for one in found
    )
    columns = ("Contrast", "p", "Pairs", "Only treatment passed", "Only control passed", "Broken pairs dropped")
    lead = "The same comparison within task × block: valid whatever time did, and it uses complete pairs only."
    return table("On these tasks: within task × block", columns, rows, lead=lead, folded=True)


def _tasks_like_these(found: Sequence[Contrast]) -> Table:
    columns = (
        "Contrast",
        "Difference, a task left out",
        "p, a task left out",
        Words("Largest task"),
        "Its share of the sum",
        Words("Caveat"),
    )
    rows = (_left_out(one) for one in found)
    return table("Tasks like these: one task left out in turn", columns, rows, folded=True)


def _left_out(one: Contrast) -> Sequence[Cell]:
    part, left = one.tasks_like_these, one.tasks_like_these.leave_one_out
    return (
        one.name,
        NOTHING if left is None else f"{bare_points(left.low)} to {bare_points(left.high)}",
        NOTHING if left is None or left.least_p is None else f"{bare_p(left.least_p)} to {bare_p(left.largest_p)}",
        part.largest_task or NOTHING,
        percent(part.largest_share),
        part.caveat or "",
    )


def _between_tasks(found: Sequence[Contrast]) -> Table:
    columns = (
        "Contrast",
        "SD of the effect, points",
        "Another task’s effect: prediction",
        "Equal odds ratios, p",
        "Effects in both directions, p",
    )
    rows = (
        (
            one.name,
            maybe(
                NOTHING if one.heterogeneity.sigma_int is None else decimals(100 * one.heterogeneity.sigma_int, 1),
                one.heterogeneity.reason,
            ),
            gap_limits(one.heterogeneity.prediction),
            p_of(one.heterogeneity.homogeneity),
            p_of(one.heterogeneity.qualitative),
        )
        for one in found
    )
    lead = "Tests of differences between effects are weak: a large p does not say that the effect is the same."
    return table("Does the effect differ between tasks?", columns, rows, lead=lead, folded=True)


def _packages(found: Sequence[Contrast]) -> Table:
    rows = (
        (
            one.name,
            ", ".join(f"{change.delivery} {change.change}" for change in one.composition.changes) or "nothing",
            "; ".join(one.composition.missing) or NOTHING,
        )
        for one in found
    )
    columns = ("Contrast", Words("Differs in"), Words("Conditions that would tell the parts apart"))
    lead = "With more than one part, the effect belongs to the package and to none of its parts."
    return table("What each contrast compares", columns, rows, lead=lead, folded=True)


def families(found: Sequence[Family]) -> Table:
    rows = ((one.id, spaced(one.method), f"{one.alpha:g}", one.size, _dropped(one)) for one in found)
    columns = ("Family", Words("Correction"), "Alpha", "Tests", Words("Dropped: could not reach alpha"))
    return table("Families of tests", columns, rows, folded=True)


def _dropped(family: Family) -> str:
    few = ", ".join(family.dropped[:6])
    more = len(family.dropped) - 6
    if not family.dropped:
        return "none"
    return f"{len(family.dropped)}: {few}" + (f" and {more} more" if more > 0 else "")
