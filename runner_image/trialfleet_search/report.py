"""The probe's report. It is validated, because project code ran in the process that wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Tuple

from .facts import Kinds

_LARGEST = 50_000_000
TestLines = Dict[str, Dict[str, Tuple[int, ...]]]  # test -> path -> lines


@dataclass(frozen=True)
class FailingTest:
    """One failing test. `frames`: (path, line, function) in the workspace, outermost first."""

    type: str
    message: str
    frames: tuple[tuple[str, int, str], ...]
    pairs: tuple[tuple[object, object], ...]


@dataclass(frozen=True)
class PytestReport:
    """One pytest session. Lines count from 1, by relative path; `imported` are the files loaded as modules;
    `failed_setup` is what fixtures of failing tests executed, `failed_lines` what the tests did themselves."""

    outcomes: dict[str, str] = field(default_factory=lambda: {})
    failures: dict[str, FailingTest] = field(default_factory=lambda: {})
    failed_lines: TestLines = field(default_factory=lambda: {})
    failed_setup: TestLines = field(default_factory=lambda: {})
    passed_counts: dict[str, dict[int, int]] = field(default_factory=lambda: {})
    imported: tuple[str, ...] = ()
    kinds: Kinds = field(default_factory=lambda: {})
    passed_over: int = 0
    modules: tuple[str, ...] = ()

    def named(self, outcome: str) -> set[str]:
        return {name for name, found in self.outcomes.items() if found == outcome}

    @property
    def failing(self) -> set[str]:
        return self.named("failed") | self.named("error")


def load(path: Path) -> PytestReport | None:
    """The report; None when it is absent or malformed."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return _parsed(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parsed(value: dict[str, Any]) -> PytestReport:
    return PytestReport(
        outcomes={str(k): str(v) for k, v in value["outcomes"].items()},
        failures={str(k): _failure(v) for k, v in value["failures"].items()},
        failed_lines=_lines(value["failed_lines"]),
        failed_setup=_lines(value["failed_setup"]),
        passed_counts={
            str(p): {int(n): int(c) for n, c in counts} for p, counts in value["passed_counts"].items()
        },
        imported=tuple(str(p) for p in value["imported"]),
        kinds={
            str(at): {str(name): frozenset(str(k) for k in kinds) for name, kinds in variables.items()}
            for at, variables in value["kinds"].items()
        },
        passed_over=int(value["passed_over"]),
        modules=tuple(str(m) for m in value["modules"]),
    )


def _lines(value: dict[str, Any]) -> TestLines:
    return {
        str(test): {str(path): tuple(int(n) for n in lines) for path, lines in files.items()}
        for test, files in value.items()
    }


def _failure(value: dict[str, Any]) -> FailingTest:
    return FailingTest(
        type=str(value["type"]),
        message=str(value["message"]),
        frames=tuple((str(p), int(n), str(f)) for p, n, f in value["frames"]),
        pairs=tuple((left, right) for left, right in value["pairs"]),
    )
