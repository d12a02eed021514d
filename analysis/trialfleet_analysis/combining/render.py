"""A combination as a page, as Markdown and for a terminal, by the report's renderers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.sections import CombinedRow, combination_sections, combined_rows
from trialfleet_analysis.report.figures import bare_p, bare_points, p_value, plural, point_limits
from trialfleet_analysis.report.findings.tables import ReportSection
from trialfleet_analysis.report.html.forests import ForestRow, forest, lines
from trialfleet_analysis.report.html.markup import Node, all_shown, breakable, h, page, section
from trialfleet_analysis.report.html.page import asset, cautions_list, unbroken
from trialfleet_analysis.report.html.plots import Mark, Scale, differences, row
from trialfleet_analysis.report.markdown import long_text, section_lines
from trialfleet_analysis.report.sanitize import markdown as escaped
from trialfleet_analysis.report.sanitize import plain
from trialfleet_analysis.statistics.estimates import Interval, Test

KEYS = (("these", "these tasks"), ("like", "campaigns like these"))
LIKE = frozenset({"Random effects", "Another campaign"})
MOST = 12  # cautions on a terminal


def to_html(found: Combination) -> str:
    """Self-contained: one file that opens without network. Same combination, same bytes."""
    sections = [one for one in combination_sections(found) if one.tables]
    anchors = (("answer", "Result"), *((one.anchor, one.title) for one in sections))
    body = (
        h("a", "Skip to the result", href="#answer", class_="skip"),
        h("button", "Dark", id="theme", type="button", hidden="", aria_label="Switch between light and dark"),
        _heading(found),
        h("nav", [h("a", name, href=f"#{anchor}") for anchor, name in anchors], aria_label="Contents"),
        h("main", _answer(found), [_section(one) for one in sections]),
    )
    title = f"{found.name} · trialfleet combine"
    return page(title=title, style=asset("style.css"), script=asset("theme.js") + asset("script.js"), body=body)


def _heading(found: Combination) -> Node:
    said = (
        plural(len(found.campaigns), "campaign"),
        plural(found.pooled.strata, "task"),
        plural(found.pooled.trials, "trial"),
        "bundles verified" if found.verified else "bundles not verified",
    )
    return h(
        "header",
        h("p", "trialfleet combine", class_="kicker"),
        h("h1", breakable(found.name)),
        h("ul", [h("li", one, class_="chip") for one in said], class_="chips"),
    )


def _answer(found: Combination) -> Node:
    first, *rest = found.answer
    return section(
        "answer",
        "What was found",
        h("p", unbroken(first), class_="answer"),
        [h("p", unbroken(sentence), class_="size") for sentence in rest],
        _forest(found),
        cautions_list(found.cautions),
    )


def _section(found: ReportSection) -> Node:
    lead = h("p", found.lead, class_="muted") if found.lead else None
    return section(found.anchor, found.title, lead, list(all_shown(found.tables)))


def _forest(found: Combination) -> Node:
    """Every campaign, then all together, under one scale."""
    combined = [one for one in combined_rows(found) if one.difference.estimate is not None]
    intervals = [*(one.difference for one in found.campaigns), *(one.difference for one in combined)]
    if all(one.estimate is None for one in intervals):
        return None
    scale = differences(value for one in intervals for value in (one.estimate, one.low, one.high))
    rows = [
        _row(scale, one.label, plural(one.tasks, "task"), "these", one.difference, one.test)
        for one in found.campaigns
    ]
    rows += [_combined(scale, one) for one in combined]
    caption = (
        "Difference in percentage points with its interval: each campaign on its own tasks, then all of them. "
        "Right of zero the treatment passed more often."
    )
    return forest("Campaigns", rows, scale, caption, keys=KEYS)


def _combined(scale: Scale, one: CombinedRow) -> ForestRow:
    kind = "like" if one.name in LIKE else "these"
    return _row(scale, one.name, "combined", kind, one.difference, one.test)


def _row(scale: Scale, name: str, tag: str, kind: str, of: Interval, test: Test | None) -> ForestRow:
    limits = point_limits(of) or "no interval"
    said = limits if test is None or test.p_value is None else f"{limits}, {p_value(test.p_value)}"
    label = f"{name}: {bare_points(of.estimate)} points, {said}"
    drawing = row(scale, [Mark(kind, of.estimate, of.low, of.high)], label, zero=0.0)
    return ForestRow(name, tag, drawing, lines((bare_points(of.estimate), said)))


def to_markdown(found: Combination) -> str:
    """The same tables as the page. Same combination, same bytes."""
    parts = (_head(found), *(section_lines(one) for one in combination_sections(found) if one.tables))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: Combination) -> Iterator[str]:
    first, *rest = found.answer
    yield f"**{long_text(first)}**"
    for sentence in rest:
        yield from ("", long_text(sentence))
    campaigns = ", ".join(escaped(one.label) for one in found.campaigns)
    yield from ("", f"{escaped(found.name)} in {plural(len(found.campaigns), 'campaign')}: {campaigns}.")
    if found.cautions:
        yield from ("", "Before you rely on it:", "")
        yield from (f"- {long_text(caution)}" for caution in found.cautions)


def show(found: Combination, console: Console) -> None:
    """Print the answer, the campaigns and the cautions; text of others as plain text, never as markup."""
    for part in _parts(found):
        console.print(part)


def _parts(found: Combination) -> Iterator[RenderableType]:
    for number, sentence in enumerate(found.answer):
        yield Text(plain(sentence, longest=2000), style="" if number else "bold")
    yield Text(f"\n{plain(found.name)}, in points", style="italic")
    yield _table(found)
    for caution in found.cautions[:MOST]:
        yield Text(f"! {plain(caution)}", style="yellow")
    if len(found.cautions) > MOST:
        yield Text(f"! and {plural(len(found.cautions) - MOST, 'more caution')} in the files", style="yellow")


def _table(found: Combination) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("campaign", overflow="fold")
    for name in ("points", "interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(one.label, one.difference, one.test) for one in found.campaigns]
    for label, of, test in (*rows, *((one.name, one.difference, one.test) for one in combined_rows(found))):
        p = bare_p(None if test is None else test.p_value)
        table.add_row(Text(plain(label)), bare_points(of.estimate), point_limits(of) or "–", p)
    return table
