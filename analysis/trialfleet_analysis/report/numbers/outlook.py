"""Order and time, and what more trials would show."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.outlook import DeclaredPower, Detectable, DriftCheck, More, Outlook
from trialfleet_analysis.report.figures import (
    ESTIMANDS,
    NOTHING,
    bare_points,
    decimals,
    percent,
    plural,
)
from trialfleet_analysis.report.numbers.table import (
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


def order(report: Report) -> Section:
    return Section(
        "order",
        "Order and time",
        "Every block holds each cell once, in random order. A trend over blocks means that time mattered; it "
        "cannot favour a condition, but it weakens the test that does not know of it.",
        full(_drift(report.analysis.drift), _blocks(report)),
    )


def _drift(found: Sequence[DriftCheck]) -> Table:
    columns = ("Question", "p", "Second half less first, points", Words("Blinded"), Words("Ran alone"))
    rows = (
        (
            one.question,
            p_of(one.test) if one.monte_carlo_se is None else sampled_p(one.test, one.monte_carlo_se),
            bare_points(one.difference),
            "yes" if one.blinded else "no",
            Value(", ".join(one.contiguous), alarm=True) if one.contiguous else NOTHING,
        )
        for one in found
    )
    return table("Drift", columns, rows)


def _blocks(report: Report) -> Table:
    rows = (
        (f"Block {one.block}", f"{one.passes:,} / {one.valid:,}", one.lost, percent(_share(one.passes, one.valid)))
        for one in report.blocks
    )
    return table("Blocks in numbers", ("Block", "Passed / valid", "Lost", "Rate"), rows, folded=True)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def outlook(report: Report) -> Section:
    found = report.analysis.outlook
    return Section(
        "outlook",
        "What could be seen, and what more would buy",
        f"Detectable: the least true difference that a design finds with {_power(found)} power. {_rests_on(found)}"
        " Power at the observed effect is never shown: it only repeats the p-value.",
        full(_detectable(found.detectable), _more(found.more), _declared(found.declared)),
    )


def _power(found: Outlook) -> str:
    return f"{100 * found.detectable[0].power:g}%" if found.detectable else "the wanted"


def _rests_on(found: Outlook) -> str:
    if found.mean is None:
        return "Nothing is known yet of rates and their spread."
    icc = decimals(found.icc.estimate) if found.icc.estimate is not None else f"unknown ({found.icc.reason})"
    sigma = "unknown" if found.sigma_int is None else f"{100 * found.sigma_int:.1f} points"
    return (
        f"It rests on a mean rate of {percent(found.mean)}, an ICC of {icc} between tasks, and an SD of the "
        f"effect between tasks of {sigma}, of both arms together."
    )


def _detectable(found: Sequence[Detectable]) -> Table:
    columns = ("Estimand", "Tasks", "Reps per cell", "Power", "Alpha", "Detectable, points")
    rows = (
        (
            ESTIMANDS[one.estimand],
            one.tasks,
            one.reps,
            f"{100 * one.power:g}%",
            f"{one.alpha:g}",
            maybe(_mde(one.mde), one.reason),
        )
        for one in found
    )
    return table("What this campaign could have seen", columns, rows)


def _more(found: Sequence[More]) -> Table:
    columns = (
        "Design",
        Words("Against what was run"),
        "Trials per condition",
        "These tasks: detectable, points",
        "Tasks like these: detectable, points",
    )
    rows = (
        (
            design(one),
            "as it was run" if n == 0 else against(one, found[0]),
            one.trials_per_arm,
            _mde(one.mde_these_tasks),
            _mde(one.mde_tasks_like_these),
        )
        for n, one in enumerate(found)
    )
    lead = (
        "For tasks like these more tasks buy more than more reps at every equal total; for these tasks only the "
        "total counts. Normal approximations, for choosing between designs; plan with trialfleet power."
    )
    return table("What more reps or more tasks would buy", columns, rows, lead=lead)


def design(one: More) -> str:
    return f"{plural(one.tasks, 'task')} × {plural(one.reps, 'rep')}"


def against(one: More, run: More) -> str:
    parts = [
        f"{name} ×{more / less:g}"
        for name, more, less in (("tasks", one.tasks, run.tasks), ("reps", one.reps, run.reps))
        if more != less
    ]
    return ", ".join(parts) or "as it was run"


def _mde(value: float | None) -> str:
    return NOTHING if value is None else decimals(100 * value, 1)


def _declared(found: Sequence[DeclaredPower]) -> Table:
    columns = ("Estimand", "Declared effect, points", "Power", "Monte Carlo error", "Simulated campaigns")
    rows = (
        (
            ESTIMANDS[one.estimand],
            bare_points(one.effect),
            maybe(percent(one.power), one.reason),
            NOTHING if one.monte_carlo_se is None else f"±{percent(one.monte_carlo_se)}",
            one.simulations,
        )
        for one in found
    )
    return table("Power at the declared effect", columns, rows)
