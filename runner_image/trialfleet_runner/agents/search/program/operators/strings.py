"""String literals: rewritten towards what the assertion expected, blanks, affixes, formats."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from ..edit import Change
from ..facts import middle
from ..source import string_literal
from .registry import Site, operator


def _value(site: Site[ast.Constant]) -> str | None:
    """The text of a literal that may be edited: no docstring, nothing inside an f-string."""
    node = site.node
    parent = site.source.parent(node)
    docstring = isinstance(parent, ast.Expr)
    if isinstance(node.value, str) and site.source.editable(node) and not docstring and len(node.value) <= 400:
        return node.value
    return None


def _put(site: Site[ast.Constant], value: str, weight: float) -> Change:
    return site.swap(site.node, string_literal(value, site.text(site.node)), weight)


@operator("string_repair", ast.Constant, prior=2.5)
def repair(site: Site[ast.Constant]) -> Iterator[Change]:
    """The literal rewritten as the assertion's two sides differ."""
    value = _value(site)
    if value is None:
        return
    for repaired, weight in repaired_texts(site, value):
        yield _put(site, repaired, weight)


def repaired_texts(site: Site[ast.AST], value: str) -> Iterator[tuple[str, float]]:
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


@operator("string_repair", ast.JoinedStr, prior=2.0)
def repair_fstring(site: Site[ast.JoinedStr]) -> Iterator[Change]:
    """The fixed parts of an f-string, rewritten in its text."""
    if not site.source.editable(site.node):
        return
    text = site.text(site.node)
    for part in site.node.values:
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and text.count(part.value) == 1:
            for repaired, weight in repaired_texts(site, part.value):
                if "\n" not in repaired and '"' not in repaired and "'" not in repaired:
                    escaped = repaired.replace("{", "{{").replace("}", "}}")
                    yield site.swap(site.node, text.replace(part.value, escaped), weight)


@operator("string", ast.Constant, prior=0.7)
def string(site: Site[ast.Constant]) -> Iterator[Change]:
    value = _value(site)
    if value is None:
        return
    variants = [
        (value.strip(), 0.8),
        (value + " ", 0.4),
        (" " + value, 0.4),
        (value.lower(), 0.6),
        (value.upper(), 0.5),
    ]
    variants += [(value + "\n", 0.4), (value.rstrip("\n"), 0.5), (value.lstrip("."), 0.4), (value[1:], 0.4)]
    variants += [(value[:-1], 0.5), (value.replace("-", "_"), 0.7), (value.replace("_", "-"), 0.7), ("", 0.5)]
    variants += [
        (value + "s", 0.3),
        (value + "/", 0.4),
        ("." + value, 0.3),
        (value + ":", 0.2),
        (value + "_", 0.2),
    ]
    for other, weight in variants:
        if other != value:
            yield _put(site, other, weight)


@operator("string", ast.Constant, prior=0.9)
def seeded(site: Site[ast.Constant]) -> Iterator[Change]:
    """Strings of the failing test and of the file, most alike first."""
    value = _value(site)
    if value is None:
        return
    for other in [s for s in site.facts.strings if s != value][:8]:
        yield _put(site, other, 0.5 + likeness(value, other))
    alike = sorted(site.scope.strings, key=lambda s: -likeness(value, s))[:6]
    for other in [s for s in alike if s != value][:4]:
        yield _put(site, other, 0.2 + likeness(value, other) * 0.6)


@lru_cache(maxsize=50_000)
def likeness(one: str, other: str) -> float:
    """Shared character pairs (Dice), 0 to 1: cheap and good enough to order.

    >>> likeness("night", "nacht")
    0.25
    """
    a, b = _pairs(one), _pairs(other)
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0


@lru_cache(maxsize=5_000)
def _pairs(text: str) -> frozenset[str]:
    return frozenset(text[i : i + 2] for i in range(len(text) - 1))


@operator("string_format", ast.FormattedValue, prior=0.7)
def conversion(site: Site[ast.FormattedValue]) -> Iterator[Change]:
    """`{x}` ↔ `{x!r}` in an f-string, found by its text."""
    whole = site.source.parent(site.node)
    if not isinstance(whole, ast.JoinedStr) or not site.source.editable(whole):
        return
    text, inner = site.text(whole), ast.unparse(site.node.value)
    for old, new in [("}", "!r}"), ("!r}", "}"), ("!s}", "}"), ("!r}", "!s}"), (":", "!r:")]:
        if text.count("{" + inner + old) == 1:
            yield site.swap(whole, text.replace("{" + inner + old, "{" + inner + new))


@operator("string_format", ast.Constant, prior=0.7)
def percent(site: Site[ast.Constant]) -> Iterator[Change]:
    value = _value(site)
    if value is None:
        return
    pairs = [
        ("%s", "%r"),
        ("%r", "%s"),
        ("%d", "%s"),
        ("%s", "%d"),
        ("{}", "{!r}"),
        ("{!r}", "{}"),
        ("'%s'", "%s"),
    ]
    for old, new in [*pairs, ("%s", "'%s'"), ("{}", "'{}'"), ("'{}'", "{}")]:
        if old in value:
            yield _put(site, value.replace(old, new), 0.8)


@operator("string_format", ast.Constant, prior=0.4)
def string_prefix(site: Site[ast.Constant]) -> Iterator[Change]:
    """A literal becomes raw, bytes or an f-string."""
    value = _value(site)
    if value is None:
        return
    text = site.text(site.node)
    if text[:1] in "'\"":
        if "{" in value and "}" in value:
            yield site.swap(site.node, "f" + text, 1.5)
        if value.isascii() and site.facts.raised("TypeError"):
            yield site.swap(site.node, "b" + text, 1.0)
