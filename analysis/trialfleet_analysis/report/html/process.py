"""How trials ended, how their metrics spread, and by when they passed."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.effort import Histograms, PassCurves, find_curves, list_histograms
from trialfleet_analysis.report.figures.launch_order import find_blocks
from trialfleet_analysis.report.findings.conditions import used_verdicts
from trialfleet_analysis.report.html.markup import Node, breakable, frame, h
from trialfleet_analysis.report.html.plots import axis, blocks, histogram, incidence, share
from trialfleet_designs.document.figures import percent


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
    folded = _panels(list_histograms(report, "folded"))
    more = None if folded is None else h("details", h("summary", "More distributions"), folded)
    return [_panels(list_histograms(report, "first")), _curves(find_curves(report)), more]


def _panels(found: Sequence[Histograms]) -> Node:
    if not found:
        return None
    panels = h("div", [_panel(one) for one in found], class_="panels")
    return h("figure", panels, h("figcaption", found[0].caption))


def _panel(found: Histograms) -> Element:
    rows = [
        [
            h("span", breakable(one.name), class_="name"),
            histogram(found.scale, one.edges, one.counts, one.quartiles, one.said),
            h("span", one.value, class_="value"),
        ]
        for one in found.rows
    ]
    grid = h("div", rows, h("span"), axis(found.scale), h("span"), class_="forest spreads")
    return h("div", h("h3", found.title), grid, class_="panel")


def _curves(found: PassCurves | None) -> Node:
    if found is None:
        return None
    panels = [
        h(
            "div",
            h("p", h("b", breakable(one.name)), h("span", one.value)),
            incidence(found.at, one.passed, None if one.name == found.control else found.behind, one.said),
            class_="small",
        )
        for one in found.curves
    ]
    return h(
        "figure",
        h("h3", found.title),
        h("div", panels, class_="smalls"),
        h("figcaption", found.caption),
        id=f"figure-{found.anchor}",
    )


def over_blocks(report: Report) -> Node:
    found = find_blocks(report)
    if found is None:
        return None
    drawing = blocks(found.blocks, found.mean, found.said)
    return h("figure", drawing, h("figcaption", found.caption), id=f"figure-{found.anchor}")
