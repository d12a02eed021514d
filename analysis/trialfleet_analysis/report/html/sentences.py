"""The answer's sentences, and the cautions below them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, h, section

OPEN = 8  # cautions that are not folded away
IN_ONE_MINUTE = "In one minute"


def in_one_minute(sentences: Sequence[str], *below: Node) -> Element:
    """The first section: the decision, then its size and its cost."""
    first, *rest = sentences
    size = [h("p", unbroken(sentence), class_="size") for sentence in rest]
    return section("answer", IN_ONE_MINUTE, h("p", unbroken(first), class_="answer"), size, below)


def unbroken(sentence: str) -> list[Node]:
    """No line ends inside a p-value or before a limit."""
    pieces = re.split(r"(p [=<] [\d.]+|[+−][\d.]+ to [+−]?[\d.]+)", sentence)
    return [h("span", piece, class_="whole") if n % 2 else piece for n, piece in enumerate(pieces)]


def cautions_list(found: Sequence[str]) -> Node:
    """The weightiest are always open; a campaign with many conditions has many of the others."""
    if not found:
        return None
    rest = found[OPEN:]
    more = h("details", h("summary", f"{len(rest)} more"), _list(rest)) if rest else None
    return [h("h3", "Before you rely on it"), _list(found[:OPEN]), more]


def _list(sentences: Sequence[str]) -> Element:
    return h("ul", [h("li", one) for one in sentences], class_="cautions")
