"""A patch with the colours of its lines' kinds and of the language's syntax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any, TypeAlias
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import h
from trialfleet_analysis.viewer.differences import DiffKind, patch_lines
from trialfleet_analysis.viewer.pages.parts import shortened
from trialfleet_analysis.viewer.pages.scaffold import text
from trialfleet_ledger.plurals import plural

Lexer: TypeAlias = Any  # pygments has no types
MOST_LINES = 4_000
MOST_COLOURED = 1_500  # lines of a page whose syntax is coloured
LONGEST_COLOURED = 300  # characters; each line is read by itself, so that no text of an agent costs much time
COLOURS = (("Token.Keyword", "kw"), ("Token.Literal.String", "st"), ("Token.Comment", "cm"),
           ("Token.Literal.Number", "nu"), ("Token.Name.Function", "fn"), ("Token.Name.Class", "fn"))  # fmt: skip


def patch(diff: str | None, label: str) -> Element:
    if diff is None:
        return h("p", "The patch is missing.", class_="bad")
    if not diff.strip():
        return h("p", "The agent changed nothing.")
    lines = list(patch_lines(shortened(diff)))
    rest = len(lines) - MOST_LINES
    more = h("p", f"{plural(rest, 'more line')} in patch.diff.") if rest > 0 else None
    shown = list(_runs(lines[:MOST_LINES]))
    return h("div", h("div", shown, class_="block lines patch", tabindex=0, role="region", aria_label=label), more)


def _runs(lines: Sequence[tuple[DiffKind, str]]) -> Iterator[Element]:
    """Neighbouring lines of one kind."""
    lexer, coloured = None, 0
    for kind, run in groupby(lines, lambda one: one[0]):
        some = [line for _, line in run]
        if kind == "head":
            lexer = _lexer(some[-1])
        elif lexer is not None and kind != "hunk" and coloured < MOST_COLOURED:
            coloured += len(some)
            yield _coloured(kind, some, lexer)
            continue
        yield text("span", "\n".join(some), class_=kind)


def _lexer(head: str) -> Lexer | None:
    """Of the file that a head's last line names, as `+++ b/shop/rules.py`; None: of no language that is known."""
    name = head.rpartition("/")[2].split("\t")[0].strip().strip('"')
    return _lexer_of(name.rpartition(".")[2].lower()) if "." in name and len(name) < 200 else None


@cache
def _lexer_of(ending: str) -> Lexer | None:
    lexers: Any = import_module("pygments.lexers")
    try:
        return lexers.get_lexer_for_filename(f"x.{ending}", stripnl=False, ensurenl=False)
    except ValueError:  # what pygments raises for an ending that it does not know is one
        return None


def _coloured(kind: str, lines: Sequence[str], lexer: Lexer) -> Element:
    shown = h("span", class_=kind)
    shown.text = ""
    for n, line in enumerate(lines):
        _add(shown, "", ("\n" if n else "") + line[:1])
        for colour, piece in _pieces(line[1:], lexer):
            _add(shown, colour, piece)
    return shown


def _pieces(line: str, lexer: Lexer) -> Iterator[tuple[str, str]]:
    if len(line) > LONGEST_COLOURED:
        yield "", line
        return
    for token, piece in lexer.get_tokens(line):
        name = str(token)
        yield next((colour for prefix, colour in COLOURS if name.startswith(prefix)), ""), piece


def _add(shown: Element, colour: str, piece: str) -> None:
    if colour:
        child = h("span", class_=colour)
        child.text = piece
        shown.append(child)
    elif len(shown):
        shown[-1].tail = (shown[-1].tail or "") + piece
    else:
        shown.text = (shown.text or "") + piece
