"""The parsers and resolvers, as far as they are here already. Goes when they are."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from trialfleet_targets.facts import Definition, DefinitionKind, Edge, FileFacts, Language
from trialfleet_targets.snapshot import SourceFile

_DEFINED = re.compile(
    r"^\s*(?:export\s+|pub\s+|public\s+|async\s+)*(def|class|func|fn|function|struct|interface)\s+(\w+)", re.M
)
_LANGUAGES = {
    ".py": "python",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".ts": "typescript",
    ".tsx": "typescript",
}


def _of(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"trialfleet_targets.{module}"), name, None)
    except ImportError:
        return None


def parse(path: str, data: bytes) -> FileFacts | None:
    real = _of("parsing", "parse")
    if real:
        return real(path, data)
    text = data.decode("utf-8", "replace")
    found = []
    for one in _DEFINED.finditer(text):
        line = text.count("\n", 0, one.start(2)) + 1
        kind = DefinitionKind.CLASS if one[1] in ("class", "struct", "interface") else DefinitionKind.FUNCTION
        found.append(Definition(one[2], kind, line, line, exported=True))
    language = Language(_LANGUAGES.get(PurePosixPath(path).suffix, "javascript"))
    return FileFacts(language, tuple(found), lines=text.count("\n") + 1)


def is_test(path: str) -> bool:
    real = _of("testfiles", "is_test")
    return (
        real(path)
        if real
        else bool(re.search(r"(^|/)(tests?|__tests__)/|(^|/)test_|_test\.|\.(test|spec)\.", path))
    )


def is_barrel(facts: FileFacts) -> bool:
    for module in ("resolve", "resolve.barrels", "barrels"):
        if real := _of(module, "is_barrel"):
            return bool(real(facts))
    return False


def edges(files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> tuple[Edge, ...]:
    real = _of("resolve", "edges")
    return real(files, others) if real else ()
