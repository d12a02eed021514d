"""What texts say about where and how to look: paths, symbols, words that hint at operators.

The prompt, context files and hook texts are heard alike. A text that names few things counts more for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*(?:\(\))?")
_PATH = re.compile(r"[\w./-]+\.py\b")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_HEADING = re.compile(r"^#+\s+(.*)$", re.M)
_FEW = 12  # as many names as keep their full weight
_LONGEST = 200_000

HINTS: dict[str, tuple[str, ...]] = {
    r"\bnone\b|\bnull\b|missing|absent|optional": ("none_truth", "none_guard", "or_default", "literal_default"),
    r"fals(?:e?y|iness)|truthi|truth value|\bzero\b|empty": (
        "none_truth",
        "or_default",
        "early_exit",
        "default_assign",
    ),
    r"default": ("or_default", "subscript_get", "parameter_default", "literal_default", "default_assign"),
    r"off.by.one|boundar|inclusive|exclusive|range": ("relational", "slice", "index", "unary", "number"),
    r"regex|regular expression|pattern": ("regex",),
    r"encod|unicode|utf-?8|bytes": ("keyword_common", "method_insert", "convert"),
    r"strip|whitespace|blank|trailing|leading": ("method_insert", "method_sibling", "string"),
    r"case.(?:in)?sensitive|lower.?case|upper.?case|casefold": ("method_insert", "method_sibling"),
    r"order|sort": ("convert", "loop", "keyword_common", "move", "argument_swap"),
    r"copy|mutat|alias|shared": ("copy", "method_insert", "loop"),
    r"escap|quot|saniti": ("entry_add", "call_wrap", "string", "element_add"),
    r"exception|raise|catch|handler": ("exception_widen", "exception_raise", "try_wrap", "early_exit"),
    r"forward|pass(?:ed|es)? (?:on|through|down|along)|propagat|keyword": ("argument_add", "argument_drop"),
    r"await|async|coroutine": ("await",),
    r"isinstance|subclass|type": ("isinstance_widen", "convert", "annotation"),
    r"flag|boolean|toggle": ("boolean", "negate"),
    r"return": ("return_value", "early_exit"),
    r"duplicate|dedup|unique": ("convert", "comprehension", "condition_refine"),
}


class Guidance:
    """Grows as texts are heard. Weights lie between 0 and 1."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        self.paths: dict[str, float] = {}
        self.symbols: dict[str, float] = {}
        self.operators: dict[str, float] = {}

    def hear(self, text: str, near: str = "") -> None:
        """Take in a text; `near` is the folder that its relative paths start from."""
        text = text[:_LONGEST]
        prose = _FENCE.sub("", text)
        fenced = "\n".join(found.group() for found in _FENCE.finditer(text))
        self._keep(self.paths, self._named_paths(prose, near), 1.0)
        self._keep(self.symbols, _named_symbols(prose), 1.0)
        self._keep(self.symbols, _quoted(fenced), 0.15)
        for pattern, names in HINTS.items() if _directs(prose) else ():
            if re.search(pattern, prose, re.IGNORECASE):
                self.operators.update(dict.fromkeys(names, 1.35))

    def symbol(self, name: str) -> float:
        return self.symbols.get(name, 0.0)

    def path(self, path: str) -> float:
        return self.paths.get(path, 0.0)

    @staticmethod
    def _keep(known: dict[str, float], found: Iterator[tuple[str, float]], scale: float) -> None:
        named: dict[str, float] = {}
        for name, weight in found:
            named[name] = max(named.get(name, 0.0), weight)
        share = scale * min(1.0, _FEW / max(1, len(named)))
        for name, weight in named.items():
            known[name] = max(known.get(name, 0.0), weight * share)

    def _named_paths(self, text: str, near: str) -> Iterator[tuple[str, float]]:
        for found in dict.fromkeys(_PATH.findall(text)):
            tail = found.lstrip("./")
            inside = (PurePosixPath(near) / tail).as_posix() if near else tail
            exact = [path for path in self._files if path in (inside, tail)]
            ending = [path for path in self._files if path.endswith("/" + tail)]
            for path in exact or ending[:3]:
                yield path, 1.0 if exact or len(ending) == 1 else 0.5


def _directs(prose: str) -> bool:
    """A text long enough to give advice; a task's one sentence is not."""
    return len(prose) > 60


def _named_symbols(text: str) -> Iterator[tuple[str, float]]:
    for quoted in re.findall(r"`([^`\n]{1,120})`", text):
        for name in _parts(quoted):
            yield name, 1.0
    for found in _WORD.findall(re.sub(r"`[^`\n]*`|https?://\S+", " ", text)):
        if "_" in found.strip("_") or found.endswith("()") or re.search(r"[a-z][A-Z]", found):
            for name in _parts(found):
                yield name, 0.7


def _quoted(text: str) -> Iterator[tuple[str, float]]:
    for found in dict.fromkeys(_WORD.findall(text)):
        for name in _parts(found):
            if "_" in name or re.search(r"[a-z][A-Z]", name):
                yield name, 1.0


def _parts(text: str) -> Iterator[str]:
    if text.endswith(".py"):
        return
    for found in _WORD.findall(text):
        for part in found.removesuffix("()").split("."):
            if len(part) > 2 and not part.startswith("test_"):
                yield part
