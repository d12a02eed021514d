"""Fault localisation: suspicious lines by spectrum and traceback.

Source: Abreu, Zoeteweij & van Gemund 2007 (Ochiai) for the spectrum.
"""

from __future__ import annotations

import math
import re
from typing import Dict

from .probe import is_test_path
from .report import FailingTest, PytestReport

Lines = Dict[str, Dict[int, float]]

IMPORTED = 0
_FIXTURE = 0.3  # factor for lines that only fixtures executed
_IMPORTED = 0.12  # weight of a line that only the import executed
_FRAMES = (1.2, 0.6, 0.4, 0.3)  # added to a traceback's lines, deepest first
_AROUND = 0.15  # added to executed lines next to a traceback's line


def suspicious(report: PytestReport, targets: set[str]) -> Lines:
    """Weights, about 0 to 2.5, of all lines that a target executed. Line 0 represents code that runs on import:
    constants, classes, signatures."""
    scores = _ochiai(report, report.failed_lines, targets)
    for path, lines in _ochiai(report, report.failed_setup, targets).items():
        own = scores.setdefault(path, {})
        for line, score in lines.items():
            own.setdefault(line, score * _FIXTURE)
    for path in report.imported:
        scores.setdefault(path, {})[IMPORTED] = _IMPORTED
    for target in sorted(targets):
        if failure := report.failures.get(target):
            _add_frames(scores, failure)
    return scores


def _ochiai(report: PytestReport, executed: dict[str, dict[str, tuple[int, ...]]], targets: set[str]) -> Lines:
    """ef / sqrt(F · (ef + ep)): ef, ep failing and passing tests that execute the line, F all failing."""
    failed: dict[str, dict[int, int]] = {}
    for target in targets:
        for path, lines in executed.get(target, {}).items():
            counts = failed.setdefault(path, {})
            for line in lines:
                counts[line] = counts.get(line, 0) + 1
    return {
        path: {
            line: ef / math.sqrt(len(targets) * (ef + report.passed_counts.get(path, {}).get(line, 0)))
            for line, ef in counts.items()
        }
        for path, counts in failed.items()
    }


def _add_frames(scores: Lines, failure: FailingTest) -> None:
    own = [(path, line) for path, line, _ in failure.frames if not is_test_path(path)]
    for (path, line), extra in zip(dict.fromkeys(reversed(own)), _FRAMES):
        lines = scores.setdefault(path, {})
        lines[line] = lines.get(line, 0.0) + extra
        for near in range(line - 3, line + 3):
            if near in lines and near != line:
                lines[near] += _AROUND


def from_prompt(prompt: str, files: list[str]) -> Lines:
    """Lines named by tracebacks in a text, for tests that cannot be traced.

    >>> from_prompt('File "pkg/a.py", line 3, in f', ["pkg/a.py"])
    {'pkg/a.py': {3: 1.0}}
    """
    scores: Lines = {}
    known = set(files)
    found = re.findall(r'File "([^"\n]+)", line (\d+)', prompt) + re.findall(
        r"^([\w./-]+\.py):(\d+)", prompt, re.M
    )
    for name, line in found:
        path = next((p for p in known if name == p or name.endswith("/" + p)), None)
        if path and not is_test_path(path):
            scores.setdefault(path, {})[int(line)] = 1.0
    return scores
