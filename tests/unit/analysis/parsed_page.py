"""What a browser would make of a page: elements, text, tables, and the trials below each anchor."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """`tables`: by caption, rows of texts. `listed`: ids of trials below each anchor."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.listed: dict[str, list[str]] = {}
        self._inside, self._anchor, self._caption = "", "", ""
        self._rows: list[list[str]] = []
        self.feed(text)

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.all]

    @property
    def attributes(self) -> list[tuple[str, str | None]]:
        return [pair for _, attributes in self.all for pair in attributes.items()]

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.all if found == tag]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))
        anchor = dict(attrs).get("id") or ""
        if re.fullmatch(r"t\d+-\d+", anchor):
            self._anchor = anchor
        if tag == "table":
            self._caption, self._rows = "", []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        if tag in ("td", "th", "caption"):
            self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""
        if tag == "table":
            self.tables[self._caption] = self._rows

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._inside == "caption":
            self._caption += data
        elif self._inside:
            self._rows[-1][-1] += data
        ids = data.split()
        if ids and all(re.fullmatch(r"[a-z2-7]{26}", one) for one in ids):
            self.listed.setdefault(self._anchor, []).extend(ids)
