"""Regular expressions, as literals near `re` or that look like one (after MutRex)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import Edit, ProposedEdit
from ..source import last_name
from .registry import EditSite, operator

_FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_LOOKS = re.compile(r"\\[dwsWDSbB.]|\(\?|\[\^|\]\+|\]\*|\.\*|\.\+|^\^|\$$")
# What is replaced, by what, and the weights. An empty match is a place where something is inserted.
_RULES: dict[str, dict[str, float]] = {
    r"(?<![\\(])[*+?]": {"*": 1.0, "+": 1.0, "?": 0.7, "": 0.7},
    r"(?<=[*+?])(?![*+?])": {"?": 0.8},
    r"(?<=\\[dwsDWS])(?![*+?{])": {"+": 0.8, "*": 0.6},
    r"(?<=\))(?![*+?{])": {"?": 0.9},
    r"(?<=[A-Za-z/:,\-])(?=[^*+?{A-Za-z]|$)": {"?": 0.5},
}


def _is_pattern(site: EditSite[ast.Constant]) -> bool:
    parent = site.source.parent(site.node)
    if not isinstance(site.node.value, str) or not site.source.editable(site.node):
        return False
    if isinstance(parent, ast.Call) and last_name(parent.func) in _FUNCTIONS and parent.args[:1] == [site.node]:
        return True
    return bool(_LOOKS.search(site.node.value)) and not isinstance(parent, ast.Expr)


@operator("regex", ast.Constant, prior=1.6)
def change_pattern(site: EditSite[ast.Constant]) -> Iterator[ProposedEdit]:
    """Edits of the literal's own text, so that its quoting is kept; only patterns that compile."""
    text = site.text(site.node) if _is_pattern(site) else ""
    opening = re.match(r"([a-zA-Z]*)('''|\"\"\"|'|\")", text)
    if opening is None:
        return
    first, last = opening.end(), len(text) - len(opening.group(2))
    start, _ = site.source.span(site.node)
    for at, end, pattern, weight in _mutations(text[first:last]):
        new = pattern if "r" in opening.group(1).lower() else pattern.replace("\\", "\\\\")
        before, old = text[: first + at], text[first + at : first + end]
        if _compiles(before + new + text[first + end :]):
            offset = start + len(before.encode())
            yield ProposedEdit((Edit(offset, offset + len(old.encode()), new.encode()),), weight)


def _mutations(body: str) -> Iterator[tuple[int, int, str, float]]:
    """(from, to, replacement, weight) in a pattern's text."""
    for place, replacements in _RULES.items():
        for found in re.finditer(place, body):
            for text, weight in replacements.items():
                if text != found.group():
                    yield found.start(), found.end(), text, weight


def _compiles(literal: str) -> bool:
    try:
        re.compile(ast.literal_eval(literal))
    except (re.error, SyntaxError, ValueError, TypeError, RecursionError, OverflowError):
        return False
    return True
