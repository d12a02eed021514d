"""How trials ended, how their metrics spread, and by when they passed."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.analysis_plan.measures import Distribution
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.scales import Scale, nice
from trialfleet_analysis.report.findings.conditions import used_verdicts
from trialfleet_analysis.report.html.markup import Node, breakable, frame, h
from trialfleet_analysis.report.html.plots import axis, blocks, histogram, incidence, share
from trialfleet_designs.document.figures import brief, percent, quantity
from trialfleet_ledger.metric_table import BY_NAME
from trialfleet_ledger.plurals import plural


def endings(report: Report) -> Node:
    """One column per ending, so that no meaning depends on a colour."""
    used = used_verdicts(report)
    if not used:
        return None
    counts = {(entry.condition, entry.verdict): entry.trials for entry in report.verdicts}
    head = h("tr", h("th", "Condition", scope="col"), [h("th", verdict, scope="col") for verdict in used.values()])
    body: list[Element] = []
    for name in report.condition_names:
        found = [counts.get((name, verdict), 0) for verdict in used]
        body.append(h("tr", h("th", breakable(name), scope="row"), [_ending(n, sum(found)) for n in found]))
    return h(
        "figure",
        frame("How trials ended", head, body, class_="bars"),
        h("figcaption", "Trials and their share of the condition’s."),
    )


def _ending(trials: int, of: int) -> Element:
    part = h("small", percent(trials / of)) if of else None
    return h("td", h("b", f"{trials:,}"), part, share(trials, of))


def effort(report: Report) -> Node:
    return [_panels(report, "first"), _curves(report), _folded_panels(report)]


def _folded_panels(report: Report) -> Node:
    panels = _panels(report, "folded")
    return None if panels is None else h("details", h("summary", "More distributions"), panels)


def _panels(report: Report, plot: str) -> Node:
    by_measure: dict[str, list[Distribution]] = {}
    for one in report.analysis.distributions:
        if BY_NAME[one.measure].plot == plot:
            by_measure.setdefault(one.measure, []).append(one)
    if not by_measure:
        return None
    caption = "Outline: share of trials per bin. Below it: the middle half of the trials and their median."
    return h(
        "figure",
        h("div", [_panel(*each) for each in by_measure.items()], class_="panels"),
        h("figcaption", caption),
    )


def _panel(key: str, found: Sequence[Distribution]) -> Element:
    metric, edges = BY_NAME[key], found[0].edges
    ticks = nice(edges[0], edges[-1], lambda tick: brief(tick, metric.unit)).ticks
    inside = tuple(tick for tick in ticks if edges[0] <= tick <= edges[-1])
    scale = Scale(edges[0], edges[-1], inside, lambda tick: brief(tick, metric.unit))
    rows = [
        [
            h("span", breakable(one.condition), class_="name"),
            histogram(scale, one.edges, one.counts, one.quartiles, _said(one)),
            h("span", quantity(one.quartiles[1] if one.quartiles else None, metric.unit), class_="value"),
        ]
        for one in found
    ]
    grid = h("div", rows, h("span"), axis(scale), h("span"), class_="forest spreads")
    return h("div", h("h3", metric.label), grid, class_="panel")


def _said(one: Distribution) -> str:
    if one.quartiles is None:
        return f"{one.condition}: no trial has it"
    low, middle, high = (quantity(value, BY_NAME[one.measure].unit) for value in one.quartiles)
    return f"{one.condition}, {plural(sum(one.counts), 'trial')}: median {middle}, middle half {low} to {high}"


def _curves(report: Report) -> Node:
    """One small curve per condition, the control's behind it."""
    found = report.analysis.incidence
    if not found:
        return None
    control = report.headline.control if report.headline else found[0].condition
    behind = next((one.passed for one in found if one.condition == control), None)
    last = quantity(found[0].at[-1], "s")
    panels = [
        h(
            "div",
            h("p", h("b", breakable(one.condition)), h("span", percent(one.passed[-1]))),
            incidence(
                one.at,
                one.passed,
                None if one.condition == control else behind,
                f"{one.condition}: {percent(one.passed[-1])} had passed by {last}",
            ),
            class_="small",
        )
        for one in found
    ]
    caption = (
        f"Share of trials that had passed, by agent time from 0 to {last}; a failed run never passes. Height: 0 "
        f"to 100%; dashed: {control}. The number is the share at the end."
    )
    return h(
        "figure", h("h3", "By when trials passed"), h("div", panels, class_="smalls"), h("figcaption", caption)
    )


def over_blocks(report: Report) -> Node:
    if not report.blocks:
        return None
    passes, valid = sum(one.passes for one in report.blocks), sum(one.valid for one in report.blocks)
    caption = "Pass rate of each launch block over the compared tasks, first to last; dashed: all blocks."
    drawing = blocks(report.blocks, passes / valid if valid else None)
    return h("figure", drawing, h("figcaption", caption))
