"""How trials ended, what they took, and whether the context was delivered."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_analysis.process import MEASURES, Channel, InlineText, Measure, Typical
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import NOTHING, plural, quantity, seconds
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    full,
    spaced,
    table,
)
from trialfleet_runner.contract import Stop, Verdict

BY_KEY = {measure.key: measure for measure in MEASURES}
VERDICTS: dict[Verdict | None, str] = {**{verdict: spaced(verdict.value) for verdict in Verdict}, None: "lost"}


def endings(report: Report) -> Section:
    return Section(
        "endings",
        "How trials ended",
        "Only passed counts as a pass. Lost trials have no verdict: they are missing, not failed.",
        full(_verdicts(report), _stops(report)),
    )


def used_verdicts(report: Report) -> list[Verdict | None]:
    seen = {entry.verdict for entry in report.verdicts}
    return [verdict for verdict in VERDICTS if verdict in seen]


def _verdicts(report: Report) -> Table:
    counts = {(entry.condition, entry.verdict): entry.trials for entry in report.verdicts}
    used = used_verdicts(report)
    rows: list[Sequence[Cell]] = [
        (name, *(counts.get((name, verdict), 0) for verdict in used)) for name in report.condition_names
    ]
    head = [VERDICTS[verdict] for verdict in used]
    return table("Endings in numbers", ("Condition", *head), rows if used else [], folded=True)


def _stops(report: Report) -> Table:
    counts = {(entry.condition, entry.stop): entry for entry in report.stops}
    used = [stop for stop in Stop if any(stop is entry.stop for entry in report.stops)]

    def cell(name: str, stop: Stop) -> Cell:
        entry = counts.get((name, stop))
        return "0" if entry is None else Value(f"{entry.trials:,}", f"{entry.passes:,} passed")

    rows: list[Sequence[Cell]] = [(name, *(cell(name, stop) for stop in used)) for name in report.condition_names]
    head = [spaced(stop.value) for stop in used]
    return table("Why agents stopped", ("Condition", *head), rows if used else [])


WIDEST = 8  # conditions beside each other: what paper holds


def medians(report: Report) -> list[Table]:
    """One table, or several where there are many conditions."""
    names = report.condition_names
    return [_medians(report, names[n : n + WIDEST], n) for n in range(0, len(names), WIDEST)]


def _medians(report: Report, names: Sequence[str], first: int) -> Table:
    found = {(entry.measure, entry.condition): entry for entry in report.metrics}
    rows: list[Sequence[Cell]] = [
        (
            measure.label + (" (share)" if measure.unit == "share" else ""),
            *(_typical(found.get((measure.key, name)), measure) for name in names),
        )
        for measure in MEASURES
        if any(key == measure.key for key, _ in found)
    ]
    lead = (
        "The median over tasks of each task’s median, so that every task counts once; shares are means in both "
        "places. n: trials with the metric. Runs that hit a budget are cut off there: their times and tokens are "
        "lower bounds."
    )
    title = "Medians of every metric" + (f", conditions {first + 1} to {first + len(names)}" if first else "")
    return table(title, ("Metric", *names), rows, lead=lead, folded=True)


def _typical(entry: Typical | None, measure: Measure) -> Cell:
    return NOTHING if entry is None else Value(quantity(entry.value, measure.unit), f"n {entry.trials:,}")


def core_seconds(report: Report) -> str:
    core = report.core_seconds
    if core.median is None:
        return "Core seconds were not measured."
    return (
        f"Core time per trial: median {seconds(core.median)}, mean {seconds(core.mean)} over "
        f"{plural(core.trials, 'trial')}; medians of overhead {seconds(core.overhead)}, agent "
        f"{seconds(core.agent)}, tests {seconds(core.tests)}."
    )


def delivery(report: Report) -> Section:
    return Section(
        "delivery",
        "Delivery",
        "Whether each declared delivery was seen in what reached the model: trials seen / not seen; agents "
        "without a model are not counted. Silent: trials in which the hook or the rule pushed nothing, since the "
        "agent touched nothing that it is about.",
        full(_delivery(report)),
    )


def _delivery(report: Report) -> Table:
    by_condition: dict[str, list[Channel]] = {}
    for channel in report.channels:
        by_condition.setdefault(channel.condition, []).append(channel)
    inline = {entry.condition: entry for entry in report.inline}
    rows: list[Sequence[Cell]] = [
        (name, *(_channel(channel) for channel in found), *_inline(inline.get(name)))
        for name, found in by_condition.items()
    ]
    columns = (
        "Condition",
        "Files",
        "Inline text",
        "Hook",
        "Rule",
        Words("Inline coverage"),
        "Inline tokens, median",
        "Cut at the cap",
    )
    return table("What reached the model", columns, rows)


def _inline(text: InlineText | None) -> tuple[Cell, Cell, Cell]:
    if text is None:
        return NOTHING, NOTHING, NOTHING
    covered = f"{text.covered:,} covered, {text.none:,} without a node"
    return covered, quantity(text.median_tokens, "count"), text.truncated


def _channel(channel: Channel) -> Value:
    if not channel.declared:
        return Value(f"undeclared: {channel.reached:,}", alarm=True) if channel.reached else Value(NOTHING)
    silent = f"silent in {channel.silent:,}" if channel.silent else None
    if channel.reached == channel.not_reached == 0:
        return Value(silent or "no model")
    return Value(f"{channel.reached:,} / {channel.not_reached:,}", silent, alarm=channel.not_reached > 0)
