"""Sections and tables that a keyboard and a narrow screen can reach."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, h


def section(anchor: str, title: str, *content: Node) -> Element:
    return h(
        "section", h("h2", title, id=f"{anchor}-title"), content, id=anchor, aria_labelledby=f"{anchor}-title"
    )


def scrolling(
    caption: str, columns: Sequence[str], rows: Sequence[Element], *, class_: str | None = None
) -> Element:
    """A table in a frame that scrolls sideways; the first column is the row's name."""
    head = h("tr", [h("th", column, scope="col") for column in columns])
    table = h(
        "table",
        h("caption", caption, class_="unseen"),
        h("thead", head),
        h("tbody", rows),
        class_=class_,
    )
    return h("div", table, class_="frame", tabindex=0, role="region", aria_label=caption)
