"""What every page of the viewer has: head, way back, theme; and blocks of text that is shown as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.etree.ElementTree import Element, tostring

from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.excerpts import excerpt

POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)


def document(
    title: str,
    body: Node,
    to: Addresses,
    *,
    scripts: Sequence[str] = (),
    data: dict[str, str] | None = None,
) -> str:
    """A whole page. `scripts`: beyond the theme's. `data`: values that they read from the body."""
    root = h(
        "html",
        _head(title, to, scripts),
        h(
            "body",
            h("a", "Skip to the content", href="#content", class_="skip"),
            h("button", "Dark", id="theme", type="button", hidden="", aria_label="Switch between light and dark"),
            body,
            **{f"data_{name}": value for name, value in (data or {}).items()},
        ),
        lang="en",
    )
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _head(title: str, to: Addresses, scripts: Sequence[str]) -> Element:
    return h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=POLICY),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="color-scheme", content="light dark"),
        h("title", title),
        [h("link", rel="stylesheet", href=to.asset(name)) for name in ("style.css", "viewer.css")],
        [h("script", src=to.asset(name), defer="") for name in ("theme.js", *scripts)],
    )


def top(kicker: Node, title: Node, *more: Node) -> Element:
    return h("header", h("p", kicker, class_="kicker"), h("h1", title), more)


def way_back(campaign: str, to: Addresses, *more: Node) -> Element:
    """The path from the first screen to this page."""
    return h(
        "nav", h("a", campaign, href=to.home()), h("a", "All trials", href=to.trials({})), more, aria_label="Path"
    )


def main(*content: Node) -> Element:
    return h("main", content, id="content", tabindex=-1)


def text(tag: str, content: str, **attributes: str) -> Element:
    """An element whose text keeps its lines and spaces; `h` makes one line of them."""
    element = h(tag, **attributes)
    element.text = excerpt(content)
    return element


def block(content: str, label: str) -> Element:
    """A text in a frame that a keyboard can scroll."""
    return text("pre", content, class_="block", tabindex="0", role="region", aria_label=label)


def notice(words: str, kind: Literal["bad", "note"] = "note") -> Element:
    return h("p", words, class_=f"banner {kind}", role="note")


def chip(words: str, kind: str = "") -> Element:
    return h("li", words, class_=f"chip {kind}".rstrip())


def message_page(title: str, words: str, to: Addresses, *, campaign: str = "", refresh: bool = False) -> str:
    """A page that says one thing, such as why another page cannot be shown."""
    body = [top("trialfleet view", title), main(h("p", words), way_back(campaign, to) if campaign else None)]
    return document(
        title, body, to, scripts=("live.js",) if refresh else (), data={"stamp": ""} if refresh else None
    )
