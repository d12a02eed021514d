"""A combination as a page, as Markdown and for a terminal, by the report's renderers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from pydantic import TypeAdapter
from rich.console import Console, RenderableType

from trialfleet_analysis.combining.shown import IN_POINTS, Combined, CombinedLine, ShownCombination, shown
from trialfleet_analysis.report.figures.forest import Forest, Mark, MarkedRow
from trialfleet_analysis.report.figures.scales import Scale
from trialfleet_analysis.report.html.assets import asset
from trialfleet_analysis.report.html.forests import show_forest
from trialfleet_analysis.report.html.markup import Node, all_shown, breakable, h, page, section
from trialfleet_analysis.report.html.sentences import cautions_list, in_one_minute
from trialfleet_analysis.report.markdown import long_text, section_lines
from trialfleet_analysis.report.terminal_document import print_cautions, print_sentences, print_table
from trialfleet_designs.document.figures import NOTHING, bare_p, p_value
from trialfleet_designs.document.tables import ReportSection, number, table, text
from trialfleet_ledger.display_text import markdown as escaped
from trialfleet_ledger.plurals import plural


def to_json(found: Combined) -> str:
    """Every number of the other renderings, unrounded. Same campaigns, same bytes."""
    plain_values = TypeAdapter(type(found)).dump_python(found, mode="json")
    return json.dumps(plain_values, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def to_html(combined: Combined) -> str:
    """Self-contained: one file that opens without network. Same combination, same bytes."""
    found = shown(combined)
    anchors = (("answer", "Result"), *((one.anchor, one.title) for one in found.sections))
    body = (
        h("a", "Skip to the result", href="#answer", class_="skip"),
        h("button", "Dark", id="theme", type="button", hidden="", aria_label="Switch between light and dark"),
        _heading(found),
        h("nav", [h("a", name, href=f"#{anchor}") for anchor, name in anchors], aria_label="Contents"),
        h(
            "main",
            in_one_minute(found.answer, show_forest(draw_forest(found)), cautions_list(found.cautions)),
            [_section(one) for one in found.sections],
        ),
    )
    title = f"{found.name} · trialfleet combine"
    return page(
        title=title,
        style=asset("style.css"),
        script=asset("theme.js") + asset("script.js") + asset("save.js"),
        body=body,
    )


def _heading(found: ShownCombination) -> Node:
    return h(
        "header",
        h("p", "trialfleet combine", class_="kicker"),
        h("h1", breakable(found.name)),
        h("ul", [h("li", one, class_="chip") for one in found.facts], class_="chips"),
    )


def _section(found: ReportSection) -> Node:
    lead = h("p", found.lead, class_="muted") if found.lead else None
    return section(found.anchor, found.title, lead, list(all_shown(found.tables)))


def draw_forest(found: ShownCombination) -> Forest | None:
    """Every campaign, then all together, under one scale."""
    drawn = [one for one in found.lines if one.difference.estimate is not None or one.tag != "combined"]
    intervals = [one.difference for one in drawn]
    if all(one.estimate is None for one in intervals):
        return None
    scale = found.unit.scale([value for one in intervals for value in (one.estimate, one.low, one.high)])
    return Forest(
        anchor="campaigns",
        title="Campaigns",
        axis=found.unit.axis,
        scale=scale,
        rows=tuple(_row(one, found, scale) for one in drawn),
        caption=found.caption,
        keys=found.keys,
        zero=found.unit.zero,
    )


def _row(one: CombinedLine, found: ShownCombination, scale: Scale) -> MarkedRow:
    of, unit = one.difference, found.unit
    limits, size = unit.limits(of) or "no interval", unit.word(of.estimate)
    said = limits if one.p_value is None else f"{limits}, {p_value(one.p_value, found.alpha)}"
    label = f"{one.name}: {size}{' points' if unit is IN_POINTS else ''}, {said}"
    mark = Mark(one.kind, of.estimate, of.low, of.high)
    if (of.low is None) != (of.high is None):  # an open end reaches to the scale's
        low, high = (scale.low if of.low is None else of.low), (scale.high if of.high is None else of.high)
        mark = replace(mark, low=low, high=high)
    return MarkedRow(one.name, one.tag, (mark,), ((size, said),), label)


def to_markdown(combined: Combined) -> str:
    """The same tables as the page. Same combination, same bytes."""
    found = shown(combined)
    parts = (_head(found), *map(section_lines, found.sections))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: ShownCombination) -> Iterator[str]:
    first, *rest = found.answer
    yield f"**{long_text(first)}**"
    for sentence in rest:
        yield from ("", long_text(sentence))
    campaigns = ", ".join(map(escaped, found.labels))
    yield from ("", f"{escaped(found.name)} in {plural(len(found.labels), 'campaign')}: {campaigns}.")
    if found.cautions:
        yield from ("", "Before you rely on it:", "")
        yield from (f"- {long_text(caution)}" for caution in found.cautions)


def show(combined: Combined, console: Console) -> None:
    """Print the answer, the campaigns and the cautions; text of others as plain text, never as markup."""
    for part in _parts(shown(combined)):
        console.print(part)


def _parts(found: ShownCombination) -> Iterator[RenderableType]:
    yield from print_sentences(found.answer)
    yield from print_table(
        table(
            f"{found.name}, {'in points' if found.unit is IN_POINTS else found.unit.axis}",
            found.lines,
            text("campaign", lambda one: one.name),
            number(found.unit.name, lambda one: found.unit.word(one.difference.estimate)),
            number("interval", lambda one: found.unit.limits(one.difference) or NOTHING),
            number("p", lambda one: bare_p(one.p_value, found.alpha)),
        )
    )
    yield from print_cautions(found.cautions)
