"""Regular expressions, as literals near `re` or that look like one (after MutRex)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import Edit, ProposedEdit
from ..scope import callee_name
from .registry import EditSite, operator

_FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_NESTED = re.compile(r"[*+}][^()]*\)[*+{]")  # (a+)+: the match can take exponential time
_LOOKS = re.compile(r"\\[dwsWDSbB.]|\(\?|\[\^|\]\+|\]\*|\.\*|\.\+|^\^|\$$")


def is_pattern(site: EditSite[ast.Constant]) -> bool:
    parent = site.source.parent(site.node)
    if not isinstance(site.node.value, str) or not site.source.editable(site.node):
        return False
    if isinstance(parent, ast.Call) and callee_name(parent) in _FUNCTIONS and parent.args[:1] == [site.node]:
        return True
    return bool(_LOOKS.search(site.node.value)) and not isinstance(parent, ast.Expr)


@operator("regex", ast.Constant, prior=1.6)
def regex(site: EditSite[ast.Constant]) -> Iterator[ProposedEdit]:
    """Edits of the literal's own text, so that its quoting is kept; only patterns that compile."""
    if not is_pattern(site):
        return
    text = site.text(site.node)
    start, _ = site.source.span(site.node)
    raw = text[:2].lower().startswith(("r", "br")) or text[1:2].lower() == "r"
    for at, end, plain, weight in _mutations(text):
        new = plain if raw else plain.replace("\\", "\\\\")
        changed = text[:at] + new + text[end:]
        if _compiles(changed):
            first = start + len(text[:at].encode())
            told = 2.5 if _tells(changed, site.node.value, site.facts.strings) else 0.3
            yield ProposedEdit((Edit(first, first + len(text[at:end].encode()), new.encode()),), weight * told)


def _compiles(literal: str) -> bool:
    try:
        re.compile(ast.literal_eval(literal))
    except (re.error, SyntaxError, ValueError, TypeError, RecursionError, OverflowError):
        return False
    return True


def _tells(literal: str, original: object, strings: tuple[str, ...]) -> bool:
    """Whether the changed pattern treats some string of the failing test in another way; True when unknown."""
    changed = ast.literal_eval(literal)
    if not strings or not isinstance(original, str) or not isinstance(changed, str):
        return True
    if _NESTED.search(changed) or len(changed) > 300:
        return True  # could take for ever
    try:
        old, new = re.compile(original), re.compile(changed)
    except (re.error, RecursionError, OverflowError):
        return True
    return any(_treated(old, text) != _treated(new, text) for text in strings[:12] if len(text) <= 60)


def _treated(pattern: re.Pattern[str], text: str) -> list[object]:
    whole, first = pattern.fullmatch(text), pattern.match(text)
    found = [found.span() for found in pattern.finditer(text)]
    return [whole and whole.groups(), first and (first.span(), first.groups()), found]


def _mutations(text: str) -> Iterator[tuple[int, int, str, float]]:
    """(from, to, replacement, weight) in the literal's source text."""
    opening = re.match(r"[a-zA-Z]*(?:'''|\"\"\"|'|\")", text)
    first = opening.end() if opening else 0
    last = len(text) - (3 if text.endswith(("'''", '"""')) and len(text) >= first + 3 else 1)
    for found in re.finditer(r"(?<!\\)([*+?])(\??)", text[first:last]):
        at, end = first + found.start(), first + found.end()
        if text[at - 1 : at] == "(":
            continue
        for other in ("*", "+", "?", ""):
            if other != found.group(1):
                yield at, at + 1, other, 1.2 if {other, found.group(1)} == {"*", "+"} else 0.7
        yield (at + 1, end, "", 0.7) if found.group(2) else (end, end, "?", 0.8)
    for found in re.finditer(r"(?<!\\)\.(?![*+?{])", text[first:last]):
        yield first + found.start(), first + found.end(), r"\.", 0.7
    for found in re.finditer(r"\[(\^?)((?:\\.|[^\]\\])+)\]", text[first:last]):
        at, end = first + found.start(2), first + found.end(2)
        for extra in ("-", "_", ".", r"\s", r"\d", "/", ":", "+", "@", "~", " "):
            if extra not in found.group(2):
                yield end, end, ("\\" + extra if extra == "-" else extra), 0.6
        yield (at - 1, at, "", 0.4) if found.group(1) else (at, at, "^", 0.3)
    for found in re.finditer(r"\\([dwsDWS])(?![*+?{])", text[first:last]):
        yield first + found.end(), first + found.end(), "+", 0.8
        yield first + found.end(), first + found.end(), "*", 0.6
    for found in re.finditer(r"\)(?![*+?{])", text[first:last]):
        yield first + found.end(), first + found.end(), "?", 0.9
    for found in re.finditer(r"(?<=[A-Za-z/:,\-])(?=[^*+?{A-Za-z]|$)", text[first:last]):
        yield first + found.start(), first + found.start(), "?", 0.5
    yield from _anchors(text, first, last)


def _anchors(text: str, first: int, last: int) -> Iterator[tuple[int, int, str, float]]:
    body = text[first:last]
    yield (first, first + 1, "", 1.0) if body.startswith("^") else (first, first, "^", 0.9)
    if body.endswith("$") and not body.endswith(r"\$"):
        yield last - 1, last, "", 1.0
        yield last - 1, last, r"\Z", 0.8
    else:
        yield last, last, "$", 0.9
    yield first, first, "(?i)", 0.7
    yield first, first, "(?s)", 0.5
    yield first, first, "(?m)", 0.5
    yield first, first, r"\b", 0.4
    yield last, last, r"\b", 0.4
    yield first, first, r"\s*", 0.5
    yield last, last, r"\s*", 0.5
