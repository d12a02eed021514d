"""Elements as values. The standard library's serialiser escapes all text and attributes."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import TypeAlias, cast
from xml.etree.ElementTree import Element, tostring

from trialfleet_analysis.report.hostile import plain

Node: TypeAlias = "Element[str] | str | int | Iterable[Node] | None"


def h(tag: str, *children: Node, **attributes: str | int | float | None) -> Element:
    """An element. Attributes: `class_` is class, other underscores are hyphens, None leaves one out.

    Text is made printable (`hostile.plain` per piece, outer spaces kept).

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
    element.text = " ".join(plain(word) for word in words)
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
    return f"{before}{plain(value, longest=4000)}{after}"
