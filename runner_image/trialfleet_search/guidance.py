"""Guidance from texts: named paths, named symbols, and words that suggest operators.

The prompt, context files and hook texts have the same effect. The fewer names a text has, the more each counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*(?:\(\))?")
_PATH = re.compile(r"[\w./-]+\.py\b")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_FEW = 12  # names with full weight; more names share it
_LONGEST = 200_000

HINTS: dict[str, tuple[str, ...]] = {
    r"\bnone\b|\bnull\b|missing|absent|optional": ("none_truth", "or_default"),
    r"fals(?:e?y|iness)|truthi|truth value|\bzero\b|empty": (
        "none_truth",
        "or_default",
        "early_exit",
    ),
    r"default": ("or_default", "get_default", "parameter_default"),
    r"off.by.one|boundar|inclusive|exclusive|range": ("relational", "number"),
    r"regex|regular expression|pattern": ("regex",),
    r"strip|whitespace|blank|trailing|leading": ("method_sibling",),
    r"case.(?:in)?sensitive|lower.?case|upper.?case|casefold": ("method_sibling",),
    r"order|sort": ("argument_swap",),
    r"escap|quot|saniti": ("element_add",),
    r"exception|raise|catch|handler": ("exception_widen", "exception_raise", "early_exit"),
    r"forward|pass(?:ed|es)? (?:on|through|down|along)|propagat|keyword": ("argument_add",),
    r"flag|boolean|toggle": ("boolean", "negate"),
    r"return": ("early_exit",),
    r"duplicate|dedup|unique": ("condition_refine",),
}


class Guidance:
    """Weights of paths and symbols, between 0 and 1, and factors of operators. Grows with each text."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        self.paths: dict[str, float] = {}
        self.symbols: dict[str, float] = {}
        self.operators: dict[str, float] = {}

    def add_text(self, text: str, near: str = "") -> None:
        """Add the names and hints of a text. `near`: the folder that its relative paths start from."""
        text = text[:_LONGEST]
        prose = _FENCE.sub("", text)
        fenced = "\n".join(found.group() for found in _FENCE.finditer(text))
        self._merge(self.paths, self._named_paths(prose, near), 1.0)
        self._merge(self.symbols, _named_symbols(prose), 1.0)
        self._merge(self.symbols, _quoted(fenced), 0.15)
        for pattern, names in HINTS.items() if _directs(prose) else ():
            if re.search(pattern, prose, re.IGNORECASE):
                self.operators.update(dict.fromkeys(names, 1.35))

    def symbol(self, name: str) -> float:
        return self.symbols.get(name, 0.0)

    def path(self, path: str) -> float:
        return self.paths.get(path, 0.0)

    @staticmethod
    def _merge(known: dict[str, float], found: Iterator[tuple[str, float]], scale: float) -> None:
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
    """Whether a text is long enough to contain advice; one sentence of a task is not."""
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
        for part in found.replace("()", "").split("."):
            if len(part) > 2 and not part.startswith("test_"):
                yield part
