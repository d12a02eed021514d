"""How trials ended, what was lost, what they took, and whether the context was delivered."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from trialfleet_analysis.losses import UNASSIGNED
from trialfleet_analysis.process import MEASURES, Channel, Measure, Typical
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import NOTHING, percent, plural, quantity, seconds
from trialfleet_analysis.report.html import plots
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.table import scrolling, section
from trialfleet_runner.contract import Stop, Verdict

VERDICTS: dict[Verdict | None, str] = {
    Verdict.PASSED: "passed",
    Verdict.FAILED: "failed",
    Verdict.TIMED_OUT: "timed out",
    Verdict.EXHAUSTED: "exhausted",
    Verdict.TESTS_TIMED_OUT: "tests timed out",
    None: "lost",
}
STAGES = {
    "before_agent": "before the agent started: ignorable",
    "mid_run": "while the agent ran: informative",
    "after_patch": "after the agent had left its patch",
    "unknown": "unknown: its end cannot be read",
}


def endings(report: Report) -> Element:
    counts = {(entry.condition, entry.verdict): entry.trials for entry in report.verdicts}
    used = [verdict for verdict in VERDICTS if any(counts.get((n, verdict)) for n in report.condition_names)]
    rows = [
        [
            h("span", breakable(name), class_="name"),
            plots.bar([(_kind(v), VERDICTS[v], counts.get((name, v), 0)) for v in used]),
            h("span", plural(sum(counts.get((name, v), 0) for v in used), "trial"), class_="value muted"),
        ]
        for name in report.condition_names
    ]
    legend = h("ul", [h("li", h("i", class_=f"key {_kind(v)}"), VERDICTS[v]) for v in used], class_="legend")
    figure = h("figure", legend, h("div", rows, class_="forest"))
    return section("endings", "How trials ended", figure, _stops(report))


def _kind(verdict: Verdict | None) -> str:
    return "lost" if verdict is None else verdict.value


def _stops(report: Report) -> Element:
    counts = {(entry.condition, entry.stop): entry for entry in report.stops}
    used = [stop for stop in Stop if any((name, stop) in counts for name in report.condition_names)]

    def cell(name: str, stop: Stop) -> Element:
        entry = counts.get((name, stop))
        text: Node = "0" if entry is None else [str(entry.trials), h("small", f" {entry.passes} passed")]
        return h("td", text)

    rows = [
        h(
            "tr",
            h("th", stop.value.replace("_", " "), scope="row"),
            [cell(n, stop) for n in report.condition_names],
        )
        for stop in used
    ]
    return scrolling("Why agents stopped", ("Why the agent stopped", *report.condition_names), rows)


def losses(report: Report) -> Element:
    if not report.losses:
        return section("losses", "Losses", h("p", "No attempt was lost."))
    names = [*report.condition_names]
    if any(entry.condition == UNASSIGNED for entry in report.losses):
        names.append(UNASSIGNED)
    counts = {(entry.loss, entry.stage, entry.condition): entry.attempts for entry in report.losses}
    kinds = sorted({(entry.loss, entry.stage) for entry in report.losses})
    body = [
        h(
            "tr",
            h("th", loss.value.replace("_", " "), h("small", f" {STAGES[stage.value]}"), scope="row"),
            [h("td", counts.get((loss, stage, name), 0)) for name in names],
        )
        for loss, stage in kinds
    ]
    return section(
        "losses",
        "Losses",
        h(
            "p",
            "Attempts that ended without a verdict: missing data, never failures. Losses while the agent ran are "
            "informative, since longer runs are lost more often; a retry does not undo that.",
            class_="muted",
        ),
        _loss_rates(report),
        scrolling("Lost attempts by class and condition", ("Class", *names), body),
        _messages(report),
        _quarantined(report),
    )


def _loss_rates(report: Report) -> Element:
    columns = (
        "Condition",
        "Lost while running",
        "of started runs",
        "Rate",
        "Median time to loss",
        "Ignorable",
        "Abandoned",
    )
    rows = [
        h(
            "tr",
            h("th", breakable(entry.condition), scope="row"),
            h("td", entry.informative),
            h("td", entry.started),
            h("td", percent(entry.rate)),
            h("td", quantity(entry.elapsed_s, "s")),
            h("td", entry.ignorable),
            h("td", entry.abandoned, class_="bad" if entry.abandoned else None),
        )
        for entry in report.loss_rates
    ]
    return scrolling("Informative losses by condition", columns, rows)


def _messages(report: Report) -> Element:
    rows = [
        h(
            "tr",
            h("th", entry.loss.value.replace("_", " "), scope="row"),
            h("td", entry.attempts),
            h("td", entry.message or NOTHING, class_="text"),
            h("td", h("code", entry.example), class_="text"),
        )
        for entry in report.loss_messages
    ]
    columns = ("Class", "Attempts", "Message", "For example")
    return h(
        "details", h("summary", "What they said"), scrolling("Messages of losses", columns, rows, class_="prose")
    )


def _quarantined(report: Report) -> Node:
    if not report.quarantined:
        return None
    rows = [
        h(
            "tr",
            h("th", h("code", entry.trial), scope="row"),
            h("td", f"{entry.task} × {entry.condition}", class_="text"),
            h("td", entry.attempt),
            h("td", entry.reason, class_="text"),
        )
        for entry in report.quarantined
    ]
    columns = ("Trial", "Cell", "Attempt", "Why its bundle was refused")
    return [h("h3", "Quarantined"), scrolling("Quarantined bundles", columns, rows, class_="prose")]


def metrics(report: Report) -> Element:
    found = {(entry.measure, entry.condition): entry for entry in report.metrics}
    rows = [
        h(
            "tr",
            h("th", measure.label, h("small", " share") if measure.unit == "share" else None, scope="row"),
            [_typical(found[measure.key, name], measure) for name in report.condition_names],
        )
        for measure in MEASURES
        if (measure.key, report.condition_names[0]) in found
    ]
    note = (
        "The median over tasks of each task’s median, so that every task counts once; n is the number of trials "
        "that have the metric. Shares are means in both places. Runs that hit a budget are cut off there: their "
        "times and tokens are lower bounds."
    )
    table = scrolling("Medians of metrics", ("Median", *report.condition_names), rows)
    return section("metrics", "What trials took", h("p", note, class_="muted"), table, _core_seconds(report))


def _typical(entry: Typical, measure: Measure) -> Element:
    return h("td", quantity(entry.value, measure.unit), h("small", f" n {entry.trials}"))


def _core_seconds(report: Report) -> Element:
    core = report.core_seconds
    if core.median is None:
        return h("p", "Core seconds were not measured.", class_="muted")
    return h(
        "p",
        "Core time per trial: median ",
        h("b", seconds(core.median)),
        f", mean {seconds(core.mean)} over {plural(core.trials, 'trial')}. Medians of its parts: overhead "
        f"{seconds(core.overhead)}, agent {seconds(core.agent)}, tests {seconds(core.tests)}.",
    )


def order(report: Report) -> Element:
    passes, valid = sum(b.passes for b in report.blocks), sum(b.valid for b in report.blocks)
    rows = [
        h("tr", h("th", f"Block {b.block}", scope="row"), h("td", f"{b.passes} / {b.valid}"), h("td", b.lost))
        for b in report.blocks
    ]
    return section(
        "order",
        "Order and time",
        h(
            "figure",
            plots.blocks(report.blocks, passes / valid if valid else None),
            h(
                "figcaption",
                "Pass rate of each launch block, first to last (0 to 100%; dashed: all blocks). Every block "
                "holds each cell once, in random order, so a trend means that time mattered, not the conditions.",
            ),
        ),
        h(
            "details",
            h("summary", "Blocks in numbers"),
            scrolling("Blocks", ("Block", "Passed / valid", "Lost"), rows),
        ),
    )


def delivery(report: Report) -> Element:
    by_condition: dict[str, list[Channel]] = {}
    for channel in report.channels:
        by_condition.setdefault(channel.condition, []).append(channel)
    inline = {entry.condition: entry for entry in report.inline}
    rows: list[Element] = []
    for name, found in by_condition.items():
        text = inline.get(name)
        rows.append(
            h(
                "tr",
                h("th", breakable(name), scope="row"),
                [_channel(channel) for channel in found],
                h("td", NOTHING if text is None else f"{text.covered} covered, {text.none} without a node"),
                h("td", NOTHING if text is None else quantity(text.median_tokens, "count")),
                h("td", NOTHING if text is None else text.truncated),
            )
        )
    columns = (
        "Condition",
        "Files",
        "Inline text",
        "Hook",
        "Inline coverage",
        "Inline tokens, median",
        "Cut at the cap",
    )
    note = (
        "Whether each declared delivery was seen in what reached the model (trials seen / not seen; agents "
        "without a model are not counted). A hook that never fired counts as not seen."
    )
    return section("delivery", "Delivery", h("p", note, class_="muted"), scrolling("Delivery", columns, rows))


def _channel(channel: Channel) -> Element:
    if not channel.declared:
        leaked = f"undeclared: {channel.reached}" if channel.reached else NOTHING
        return h("td", leaked, class_="bad" if channel.reached else "muted")
    if channel.reached == channel.not_reached == 0:
        return h("td", "no model", class_="muted")
    return h("td", f"{channel.reached} / {channel.not_reached}", class_="bad" if channel.not_reached else None)
