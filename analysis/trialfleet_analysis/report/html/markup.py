"""Elements as values, and tables that a keyboard and a narrow screen can reach. The standard library's serialiser
escapes all text and attributes."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias, cast
from xml.etree.ElementTree import Element, tostring

from trialfleet_designs.document.tables import ReportTable, Value
from trialfleet_ledger.display_text import one_line

Node: TypeAlias = "Element[str] | str | int | Iterable[Node] | None"


def h(tag: str, *children: Node, **attributes: str | int | float | None) -> Element:
    """An element. Attributes: `class_` is class, other underscores are hyphens, None leaves one out.

    Text is made printable (`one_line` per piece, outer spaces kept).

    >>> tostring(h("p", "a < b", h("b", "!"), class_="x", aria_label='"'), encoding="unicode")
    '<p class="x" aria-label="&quot;">a &lt; b<b>!</b></p>'
    """
    element = Element(
        tag,
        {
            name.rstrip("_").replace("_", "-"): _text(value)
            for name, value in attributes.items()
            if value is not None
        },
    )
    _append(element, children)
    return element


def breakable(name: str) -> list[Node]:
    """A name that may wrap after its hyphens, dots and underscores."""
    pieces = re.findall(r"[^-._]*[-._]*", name)
    return [node for piece in pieces if piece for node in (piece, h("wbr"))][:-1]


def listing(tag: str, words: Iterable[str], **attributes: str) -> Element:
    """An element that holds a long list of words, which `h` would cut."""
    element = h(tag, **attributes)
    element.text = " ".join(one_line(word) for word in words)
    return element


def page(*, title: str, style: str, script: str, body: Iterable[Node]) -> str:
    """A whole document that may load nothing: `style` and `script` run by their hashes and nothing else does.

    They are the only text that is not escaped: never put anything of others into them. Raises `ValueError` where
    they could end their element.
    """
    policy = (
        f"default-src 'none'; style-src {_hashed(style)}; script-src {_hashed(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    root = h(
        "html",
        h(
            "head",
            h("meta", charset="utf-8"),
            h("meta", http_equiv="Content-Security-Policy", content=policy),
            h("meta", name="viewport", content="width=device-width, initial-scale=1"),
            h("meta", name="referrer", content="no-referrer"),
            h("meta", name="color-scheme", content="light dark"),
            h("title", title),
            _verbatim("style", style),
        ),
        h("body", body, _verbatim("script", script)),
        lang="en",
    )
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _verbatim(tag: str, text: str) -> Element:
    if "</" in text or "<!--" in text:
        raise ValueError(f"a {tag} cannot hold markup")
    element = Element(tag)
    element.text = text
    return element


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _append(element: Element, children: Iterable[Node]) -> None:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str | int):
            _append_text(element, _text(child))
        elif isinstance(child, Element):
            element.append(cast("Element[str]", child))
        else:
            _append(element, child)


def _append_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def _text(value: str | int | float) -> str:
    if not isinstance(value, str):
        return str(value)
    before = " " if value[:1].isspace() else ""
    after = " " if value[-1:].isspace() and value.strip() else ""
    return f"{before}{one_line(value, longest=4000)}{after}"


SHORT = 24  # characters of words that are not broken
FEW = 4  # folded tables of one group that stand alone
LEAST_ROWS = 3  # of a table whose constant columns become a sentence
TALL = 14  # rows above which a table scrolls in its frame, below a head that stays


def section(anchor: str, title: str, *content: Node) -> Element:
    return h(
        "section", h("h2", title, id=f"{anchor}-title"), content, id=anchor, aria_labelledby=f"{anchor}-title"
    )


def fold(anchor: str, question: str, *content: Node) -> Element:
    """A part of the page that opens at its question."""
    head = h("summary", h("h2", question, id=f"{anchor}-title"))
    body = h("details", head, h("div", content, class_="inside"))
    return h("section", body, id=anchor, aria_labelledby=f"{anchor}-title")


def all_shown(tables: Sequence[ReportTable]) -> Iterator[Element]:
    """In their order; many of one group are folded away together."""
    for group, members in groupby(tables, lambda one: one.group):
        found = [shown(one) for one in members]
        if group and len(found) > FEW:
            yield h("details", h("summary", f"{group}: {len(found)} tables"), found)
        else:
            yield from found


def shown(table: ReportTable) -> Element:
    """A table with its title; folded away where the table says so."""
    lead = h("p", table.lead, class_="muted") if table.lead else None
    if table.folded:
        return h("details", h("summary", table.title), lead, framed(table))
    return h("div", h("h3", table.title), lead, framed(table), class_="part")


def framed(table: ReportTable, *, whole: bool = False) -> Element:
    """In a frame that scrolls sideways; the first column is the row's name. What is the same in every row is said
    below, once, but of a `whole` table."""
    kept, same = (list(range(len(table.columns))), list[int]()) if whole else _split_columns(table)
    head = h("tr", [_head(table.columns[n], n in table.words) for n in kept])
    body = [h("tr", [_cell(row[n], n, n in table.words) for n in kept]) for row in table.rows]
    drawn = frame(table.title, head, body, class_="tall" if len(body) > TALL else None)
    if not same:
        return drawn
    said = "; ".join(f"{_name_column(table.columns[n])} {_in_words(table.rows[0][n])}" for n in same)
    return h("div", drawn, h("p", f"In every row: {said}.", class_="same"))


def _name_column(head: str) -> str:
    """
    >>> _name_column("Ran alone"), _name_column("ICC"), _name_column("CLAUDE_MD")
    ('ran alone', 'ICC', 'CLAUDE_MD')
    """
    return head[:1].lower() + head[1:] if head[1:2].islower() or head[1:2] == " " else head


def _in_words(value: Value) -> str:
    return f"{value.text} ({value.note})" if value.note else value.text


def _split_columns(table: ReportTable) -> tuple[list[int], list[int]]:
    """Columns to show, and those with one value in all of several rows; what is empty in all is in neither."""
    if len(table.rows) < LEAST_ROWS:
        return list(range(len(table.columns))), []
    constant = [n for n in range(1, len(table.columns)) if len({row[n] for row in table.rows}) == 1]
    constant = [n for n in constant if not table.rows[0][n].alarm]
    shown = [n for n in range(len(table.columns)) if n not in constant]
    if len(shown) < 2:
        return list(range(len(table.columns))), []
    first = table.rows[0]
    return shown, [n for n in constant if first[n].text or first[n].note]


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
