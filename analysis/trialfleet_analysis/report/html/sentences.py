"""The answer's sentences with their words explained, and the cautions below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, h, section
from trialfleet_designs.document.terms import TERMS, Term, split_terms

OPEN = 5  # cautions that are not folded away
IN_ONE_MINUTE = "In one minute"
NEXT = "What next?"


def in_one_minute(
    sentences: Sequence[str], *below: Node, label: str | None = None, lists_words: bool = False
) -> Element:
    """The first section: the decision, then its size and its cost. `label`: the decision in a word or two;
    `lists_words`: the page has the words' meanings elsewhere, else they stand here unseen."""
    first, *rest = sentences
    size = [h("p", explain(sentence), class_="size") for sentence in rest]
    verdict = h("p", label, class_="verdict", data_verdict=label.lower()) if label else None
    words = None if lists_words else h("div", list_words(), hidden="")
    return section("answer", IN_ONE_MINUTE, verdict, h("p", explain(first), class_="answer"), size, below, words)


def explain(sentence: str) -> list[Node]:
    """Terms show their meaning where a pointer rests on them, and when they are tapped or reached by keyboard.
    What stands in backquotes is code."""
    said = set[str]()
    parts = enumerate(re.split(r"`([^`]+)`", sentence))
    return [node for n, part in parts for node in ([h("code", part)] if n % 2 else _explained(part, said))]


def _explained(words: str, said: set[str]) -> Iterator[Node]:
    for piece, term in split_terms(words):
        if term is None or term.anchor in said:
            yield from unbroken(piece)
        else:
            said.add(term.anchor)
            yield _shown_term(piece, term)


def _shown_term(piece: str, term: Term) -> Element:
    return h(
        "span",
        piece,
        class_="term whole" if len(piece) < 24 else "term",
        tabindex=0,
        aria_describedby=f"word-{term.anchor}",
        data_meaning=term.meaning,
    )


def list_words() -> Element:
    """What the marked words of the page mean."""
    entries = [(h("dt", term.name), h("dd", term.meaning, id=f"word-{term.anchor}")) for term in TERMS]
    return h("dl", entries, class_="words")


def unbroken(sentence: str) -> list[Node]:
    """No line ends inside a p-value or before a limit."""
    pieces = re.split(r"(p [=<] [\d.]+|[+−][\d.]+ to [+−]?[\d.]+)", sentence)
    return [h("span", piece, class_="whole") if n % 2 else piece for n, piece in enumerate(pieces)]


def below_title(title: str, sentence: str | None) -> Node:
    """None without a sentence."""
    return h("div", h("h3", title), h("p", explain(sentence))) if sentence else None


def cautions_list(found: Sequence[str]) -> Node:
    """The weightiest are always open; a campaign with many conditions has many of the others."""
    if not found:
        return None
    rest = found[OPEN:]
    more = h("details", h("summary", f"{len(rest)} more"), _list(rest)) if rest else None
    return h("div", h("h3", "Before you rely on it"), _list(found[:OPEN]), more, class_="doubts")


def _list(sentences: Sequence[str]) -> Element:
    return h("ul", [h("li", explain(one)) for one in sentences], class_="cautions")
