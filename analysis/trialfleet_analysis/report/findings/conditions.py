"""Pass rates of conditions and cells, and of several tries; how trials ended, and what was delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from trialfleet_analysis.analysis_plan.analyse import Repeats
from trialfleet_analysis.analysis_plan.cutoff import CutoffSplit
from trialfleet_analysis.process import Channel, InlineText, Typical, UncausedPass
from trialfleet_analysis.rates import CellResult, ConditionResult
from trialfleet_analysis.report.answer import estimand
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.tables.rows import Use
from trialfleet_deliveries.registry import list_channels
from trialfleet_designs.document.figures import NOTHING, decimals, level, limits, percent, quantity
from trialfleet_designs.document.tables import (
    Cell,
    ReportSection,
    ReportTable,
    Value,
    crossed,
    failures,
    number,
    or_reason,
    rate,
    rate_limits,
    section,
    spaced,
    table,
    text,
)
from trialfleet_ledger.metric_table import BY_NAME
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_statistics.repeats import RepeatsInterval

_USES = ("skill_opened", "mcp_called")  # names of metrics
EVERYTHING = "too few tasks: 0 to 100%"

BOUNDS = " Bounds: where the rate would lie if every trial whose first started run was lost had failed, or passed."


def conditions(report: Report) -> ReportSection:
    found = report.conditions
    of = level(found[0].these_tasks.level) if found else "95%"
    return section(
        "conditions",
        "How often did each condition pass?",
        "Pass rate of each condition: the mean of its tasks’ rates, each task counting once; the difference of "
        f"two of them is the contrast’s. On {estimand(report)} the {of} interval knows only the chance of these "
        "tasks’ reps; for tasks like these a model’s interval also knows that other tasks would differ. Two "
        f"intervals that overlap, or do not, are no test.{BOUNDS if _have_bounds(found) else ''}",
        _conditions(found, of),
        _by_cutoff(report.cutoff, of),
    )


def _have_bounds(found: Sequence[ConditionResult]) -> bool:
    return any(one.worst != one.best for one in found)


def _bounds(one: ConditionResult) -> str:
    return NOTHING if one.worst is None else f"{percent(one.worst)} to {percent(one.best)}"


def _conditions(found: Sequence[ConditionResult], of: str) -> ReportTable:
    return table(
        "Conditions in numbers",
        found,
        text("Condition", lambda one: one.condition),
        number("Mean rate", lambda one: rate(one.these_tasks)),
        number(f"{of} interval, these tasks", lambda one: rate_limits(one.these_tasks)),
        number(f"{of} interval, tasks like these", _model_limits),
        number("Passed/valid", lambda one: f"{one.passes:,}/{one.valid:,}"),
        number("Lost", lambda one: failures(one.lost)),
        *([number("Bounds", _bounds)] if _have_bounds(found) else []),
        number("First runs missing", lambda one: one.first_runs_missing),
        number("Tasks differ: ICC", _icc),
    )


def _by_cutoff(found: CutoffSplit | None, of: str) -> ReportTable | None:
    if found is None:
        return None
    return table(
        "Before and since the training cut-off",
        found.rates,
        text("Tasks fixed", lambda one: one.side),
        number("Tasks", lambda one: one.tasks),
        text("Condition", lambda one: one.condition),
        number("Mean rate", lambda one: rate(one.rate)),
        number(f"{of} interval, these tasks", lambda one: rate_limits(one.rate)),
        lead=f"{plural(len(found.before), 'compared task')} before {found.cutoff}, {len(found.since)} since, "
        f"{len(found.undated)} without a known date. Groups hold other tasks: a higher "
        "rate before the cut-off may be easier tasks as well as memory. Whether the effect differs is asked under "
        "task by task.",
    )


def model_median(one: ConditionResult) -> float | None:
    """The model's own rate where its limits exclude the mean: it shrinks the rate."""
    mean, like = one.these_tasks.estimate, one.tasks_like_these
    if mean is None or like.low is None or like.high is None or like.low <= mean <= like.high:
        return None
    return like.estimate


def _model_limits(one: ConditionResult) -> Value:
    median = model_median(one)
    if median is None:
        return rate_limits(one.tasks_like_these)
    return Value(limits(one.tasks_like_these), f"the model’s median is {percent(median)}")


def _icc(one: ConditionResult) -> Value:
    icc = one.tasks_like_these.icc
    return Value(NOTHING) if icc is None else or_reason(decimals(icc.estimate), icc.reason)


def cells(report: Report) -> ReportSection:
    return section(
        "cells",
        "Which tasks passed, and how often?",
        "Passed of valid trials in each task × condition, with Wilson’s 95% interval for the reps of that one "
        "cell.",
        table(
            "All cells in numbers",
            report.cells,
            text("Task", lambda one: one.task),
            text("Condition", lambda one: one.condition),
            number("Passed", lambda one: one.passes),
            number("Valid", lambda one: one.valid),
            number("Lost", lambda one: failures(one.lost)),
            number("Rate", lambda one: rate(one.wilson)),
            number("Wilson", lambda one: rate_limits(one.wilson)),
            number("Clopper–Pearson", lambda one: rate_limits(one.clopper_pearson)),
            text("Note", lambda one: ", ".join(_notes(one))),
            folded=True,
        ),
    )


def _notes(one: CellResult) -> Iterator[str]:
    if one.use is not Use.PRIMARY:
        yield f"apart: {spaced(one.use.value)}"
    if one.coverage_none:
        yield f"no covering node in {one.coverage_none:,}"


def repeats(report: Report) -> ReportSection:
    return section(
        "repeats",
        "What would several tries give?",
        "pass@k: some of k reps passes; pass^k: all of k do. Means over tasks, for tasks like these.",
        _repeats(report.analysis.repeats),
    )


def _repeats(found: Sequence[Repeats]) -> ReportTable:
    return table(
        "pass@k and pass^k",
        found,
        text("Condition", lambda one: one.condition),
        number("k", lambda one: one.k),
        number("pass@k", lambda one: rate(one.pass_at_k)),
        number("95% interval of pass@k", lambda one: _limits(one.pass_at_k)),
        number("pass^k", lambda one: rate(one.pass_hat_k)),
        number("95% interval of pass^k", lambda one: _limits(one.pass_hat_k)),
        text("Note", lambda one: one.pass_at_k.warning or ""),
    )


def _limits(found: RepeatsInterval) -> Value:
    """An interval from 0 to 100% is not shown."""
    return Value(NOTHING, EVERYTHING) if (found.low, found.high) == (0.0, 1.0) else rate_limits(found)


VERDICTS: dict[Verdict | None, str] = {**{verdict: spaced(verdict.value) for verdict in Verdict}, None: "lost"}


def endings(report: Report) -> ReportSection:
    return section(
        "endings",
        "How did trials end?",
        "Only passed counts as a pass. Lost trials have no verdict: they are missing, not failed.",
        _verdicts(report),
        _stops(report),
        _uncaused(report),
        _cautioned(report),
    )


def used_verdicts(report: Report) -> dict[Verdict | None, str]:
    """Those that occur, with their names."""
    seen = {entry.verdict for entry in report.verdicts}
    return {verdict: name for verdict, name in VERDICTS.items() if verdict in seen}


def _verdicts(report: Report) -> ReportTable:
    counts = {(entry.condition, entry.verdict): entry.trials for entry in report.verdicts}
    return crossed(
        "Endings in numbers",
        "Condition",
        report.condition_names,
        used_verdicts(report),
        lambda name, verdict: counts.get((name, verdict), 0),
        folded=True,
    )


def _uncaused(report: Report) -> ReportTable:
    return table(
        "Passes that the product’s changes do not explain",
        report.uncaused,
        text("Trial", lambda one: one.trial),
        text("Task", lambda one: one.task),
        text("Condition", lambda one: one.condition),
        text("Ending", lambda one: VERDICTS[one.verdict]),
        text("Passes with", _explain),
        lead="Forged trials count as failed; the others count by their verdict. Files are changed files apart "
        "from the product’s.",
    )


def _explain(one: UncausedPass) -> str:
    """A forged pass that needs no other files is refuted by tests that must fail."""
    if one.unsteady:
        return "no change at all"
    return ", ".join(one.files) or "tests that must fail passed, too: tests/must_fail.log in its bundle"


def _cautioned(report: Report) -> ReportTable:
    return table(
        "Passes whose code may recognise its tests",
        report.cautioned,
        text("Trial", lambda one: one.trial),
        text("Task", lambda one: one.task),
        text("Condition", lambda one: one.condition),
        text("Cautions", lambda one: ", ".join(one.cautions)),
        lead="They count as passed. Honest code has such lines, too: read the patch.",
    )


def _stops(report: Report) -> ReportTable:
    found = {(entry.condition, entry.stop): entry for entry in report.stops}
    used = {stop: spaced(stop.value) for stop in Stop if any(stop is entry.stop for entry in report.stops)}

    def cell(name: str, stop: Stop) -> Cell:
        entry = found.get((name, stop))
        return 0 if entry is None else Value(f"{entry.trials:,}", f"{entry.passes:,} passed")

    return crossed("Why agents stopped", "Condition", report.condition_names, used, cell)


def delivery(report: Report) -> ReportSection:
    return section(
        "delivery",
        "Did the context reach the model?",
        "Whether each declared delivery was seen in what reached the model: trials seen / not seen; agents "
        "without a model are not counted. Silent: trials in which the hook or the rule pushed nothing, since the "
        "agent touched nothing that it is about.",
        _delivery(report),
        _used(report),
    )


def _delivery(report: Report) -> ReportTable:
    found: dict[tuple[str, str], Channel] = {(one.condition, one.channel): one for one in report.channels}
    inline = {entry.condition: entry for entry in report.inline}
    return table(
        "What reached the model",
        dict.fromkeys(channel.condition for channel in report.channels),
        text("Condition", str),
        *(number(one.head, partial(_channel, found, of)) for of, one in list_channels().items()),
        text("Inline coverage", lambda name: _coverage(inline[name]) if name in inline else NOTHING),
        number(
            "Inline tokens, median",
            lambda name: quantity(inline[name].median_tokens, "count") if name in inline else NOTHING,
        ),
        number("Cut at the cap", lambda name: inline[name].truncated if name in inline else NOTHING),
    )


def _used(report: Report) -> ReportTable:
    """Of conditions with skills or MCP servers."""
    found = {(one.condition, one.measure): one for one in report.metrics if one.measure in _USES and one.trials}
    return table(
        "What agents used of it",
        dict.fromkeys(condition for condition, _ in found),
        text("Condition", str),
        *(number(BY_NAME[use].label, partial(_share_of_trials, found, use)) for use in _USES),
        lead="The share of trials in which the agent opened one of the condition’s skills, or called a tool of "
        "one of its MCP servers: the mean of its tasks’ shares, each task counting once. n: measured trials.",
    )


def _share_of_trials(found: Mapping[tuple[str, str], Typical], use: str, condition: str) -> Cell:
    one = found.get((condition, use))
    return NOTHING if one is None else Value(percent(one.value), f"n {one.trials:,}")


def _coverage(inline: InlineText) -> str:
    return f"{inline.covered:,} covered, {inline.none:,} without a node"


def _channel(found: Mapping[tuple[str, str], Channel], of: str, name: str) -> Value:
    channel = found[name, of]
    if not channel.declared:
        return Value(f"undeclared: {channel.reached:,}", alarm=True) if channel.reached else Value(NOTHING)
    silent = f"silent in {channel.silent:,}" if channel.silent else None
    if channel.reached == channel.not_reached == 0:
        return Value(silent or "no model")
    return Value(f"{channel.reached:,} / {channel.not_reached:,}", silent, alarm=channel.not_reached > 0)
