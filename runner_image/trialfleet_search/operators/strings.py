"""String literals: rewritten towards what the assertion expected."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..facts import middle
from .registry import EditSite, operator


def _value(site: EditSite[ast.Constant]) -> str | None:
    """The text of a literal that may be edited: no docstring, nothing inside an f-string."""
    node = site.node
    parent = site.source.parent(node)
    docstring = isinstance(parent, ast.Expr)
    if isinstance(node.value, str) and site.source.editable(node) and not docstring and len(node.value) <= 400:
        return node.value
    return None


@operator("string_repair", ast.Constant, prior=2.5)
def repair_literal(site: EditSite[ast.Constant]) -> Iterator[ProposedEdit]:
    """The literal rewritten as the assertion's two sides differ."""
    value = _value(site)
    for repaired, weight in _repaired(site, value) if value is not None else ():
        yield site.swap(site.node, repr(repaired), weight)


def _repaired(site: EditSite[ast.Constant], value: str) -> Iterator[tuple[str, float]]:
    for got, expected in site.facts.pairs:
        if not isinstance(got, str) or not isinstance(expected, str):
            continue
        if value == got:
            yield expected, 2.0
            continue
        prefix, lost, gained, suffix = middle(got, expected)
        if lost and len(lost) > 1 and lost in value:
            yield value.replace(lost, gained), 1.5
        if lost and value and value in lost:
            yield gained.strip() or gained, 0.6
        if not lost and prefix and value and prefix.endswith(value[-12:]):
            yield value + gained, 1.2
        if not lost and suffix and value and suffix.startswith(value[:12]):
            yield gained + value, 1.2
        if lost == value[-1:] and len(lost) == 1:
            yield value[:-1] + gained, 0.9
        if lost == value[:1] and len(lost) == 1:
            yield gained + value[1:], 0.9
        word_got, word_expected = _words_around(prefix, lost, suffix), _words_around(prefix, gained, suffix)
        if word_got and word_got in value:
            yield value.replace(word_got, word_expected), 1.3


def _words_around(prefix: str, inner: str, suffix: str) -> str:
    before = re.search(r"\w*$", prefix)
    after = re.match(r"\w*", suffix)
    return (before.group() if before else "") + inner + (after.group() if after else "")
