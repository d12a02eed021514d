"""Sections and tables that a keyboard and a narrow screen can reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.numbers import Table, Value

SHORT = 24  # characters of words that are not broken
FEW = 4  # folded tables of one group that stand alone
TALL = 14  # rows above which a table scrolls in its frame, below a head that stays


def section(anchor: str, title: str, *content: Node) -> Element:
    return h(
        "section", h("h2", title, id=f"{anchor}-title"), content, id=anchor, aria_labelledby=f"{anchor}-title"
    )


def all_shown(tables: Sequence[Table]) -> Iterator[Element]:
    """In their order; many of one group are folded away together."""
    for group, members in groupby(tables, lambda one: one.group):
        found = [shown(one) for one in members]
        if group and len(found) > FEW:
            yield h("details", h("summary", f"{group}: {len(found)} tables"), found)
        else:
            yield from found


def shown(table: Table) -> Element:
    """A table with its title; folded away where the table says so."""
    lead = h("p", table.lead, class_="muted") if table.lead else None
    if table.folded:
        return h("details", h("summary", table.title), lead, framed(table))
    return h("div", h("h3", table.title), lead, framed(table), class_="part")


def framed(table: Table) -> Element:
    """In a frame that scrolls sideways; the first column is the row's name."""
    head = h("tr", [_head(name, n in table.words) for n, name in enumerate(table.columns)])
    body = [h("tr", [_cell(value, n, n in table.words) for n, value in enumerate(row)]) for row in table.rows]
    return frame(table.title, head, body, class_="tall" if len(body) > TALL else None)


def frame(caption: str, head: Element, body: list[Element], *, class_: str | None = None) -> Element:
    """The frame is a region that a keyboard can reach and scroll."""
    table = h("table", h("caption", caption, class_="unseen"), h("thead", head), h("tbody", body))
    kinds = "frame" if class_ is None else f"frame {class_}"
    return h("div", table, class_=kinds, tabindex=0, role="region", aria_label=caption)


def _head(name: str, words: bool) -> Element:
    return h("th", breakable(name), scope="col", class_="text" if words else None)


def _cell(value: Value, place: int, words: bool) -> Element:
    note: Node = [" ", h("small", value.note)] if value.note else None
    kinds = " ".join(_kinds(value, words)) or None
    if place == 0:
        return h("th", breakable(value.text), note, scope="row", class_=kinds)
    return h("td", value.text, note, class_=kinds)


def _kinds(value: Value, words: bool) -> Iterator[str]:
    if words:
        yield "text"
    if words and len(value.text) > SHORT:
        yield "long"
    if value.note and len(value.note) > SHORT // 2:
        yield "noted"
    if value.alarm:
        yield "bad"
