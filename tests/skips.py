"""How many tests were skipped for each reason: what this machine lacks, with the command that gets it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

SUFFIX = ".skips"  # beside the table of a pool's costs


def count_skips(reports: Iterable[pytest.TestReport]) -> Counter[str]:
    """By the reason."""
    reasons = (report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple))
    return Counter(reason.removeprefix("Skipped: ") for reason in reasons)


def describe_skips(counts: Counter[str]) -> list[str]:
    """Lines, the most frequent reason first; none where nothing was skipped.

    >>> describe_skips(Counter({"needs root": 2, "needs bash (apt install bash)": 11}))
    ['skipped: 13 tests', '    11  needs bash (apt install bash)', '     2  needs root']
    """
    lines = [f"{count:6}  {reason}" for reason, count in counts.most_common()]
    return [f"skipped: {counts.total()} tests", *lines] if counts else []


def write_skips(counts: Counter[str], costs: Path) -> None:
    """Beside a pool's table of costs, for the run of all pools."""
    costs.with_suffix(SUFFIX).write_text(json.dumps(counts), encoding="utf-8")


def read_skips(costs: Iterable[Path]) -> Counter[str]:
    """Of all pools that wrote theirs."""
    added = Counter[str]()
    for file in (path.with_suffix(SUFFIX) for path in costs):
        if file.exists():
            added.update(json.loads(file.read_bytes()))
    return added
