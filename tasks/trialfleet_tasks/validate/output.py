"""The failing test's output, made the same on every machine and run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta

from trialfleet_deliveries.texts import render

CAP = 8_000
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_HEADERS = re.compile(
    r"^(?:platform \w+ -- .*|cachedir: .*|rootdir: .*|configfile: .*|testpaths: .*|plugins: .*|"
    r"asyncio: mode=.*|hypothesis profile .*|Using --randomly-seed=.*|"
    r"-+ generated xml file: .* -+|-* ?[Gg]enerated xml file: .*)\n?",
    re.MULTILINE,
)
_COUNTED = r"passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|tests?|ran|finished|target\(s\)"
_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:(?<=\bat )0x[0-9a-fA-F]{4,16}|\b0x[0-9a-fA-F]{10,16})\b"), "0x0"),
    (re.compile(rf"\b({_COUNTED}) in \d+(?:\.\d+)?s(?: \(\d+:\d{{2}}:\d{{2}}\))?"), r"\1 in 0.00s"),
    (re.compile(r"\b\d+\.\d+s (setup|call|teardown)\b"), r"0.00s \1"),
    (re.compile(r"\bpytest-of-[\w.-]+/pytest-\d+"), "pytest-of-agent/pytest-0"),
    (re.compile(r"(?<![\w/])(/tmp|/var/tmp|/home/agent/tmp)/tmp[\w]{6,10}\b"), r"\1/tmpdir"),
    (re.compile(r"\bpid[ =:]+\d+", re.IGNORECASE), "pid 0"),
)
_TIME = re.compile(r"\b(\d{4}-\d{2}-\d{2})([T ])\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?")


def normalised(output: str, places: Mapping[str, str], today: date) -> str:
    """The output without colours, durations, addresses, temporary names, this machine's clock and its paths: what
    a test compares stays.

    `places`: path as the tests saw it -> name that stands for it; longer paths are replaced first. `today`: when
    the tests ran; times of the days around it are the clock's, others the tests' own.
    """
    text = _ANSI.sub("", output.replace("\r\n", "\n"))
    text = _CONTROL.sub("", text)
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
    text = _HEADERS.sub("", text)
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    days = _days_around(today)
    text = _TIME.sub(lambda time: f"2000-01-01{time[2]}00:00:00" if time[1] in days else time[0], text)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n")) + "\n"


def _days_around(today: date) -> set[str]:
    """In every time zone."""
    return {(today + timedelta(days=n)).isoformat() for n in (-1, 0, 1)}


def tail(text: str, cap: int = CAP) -> str:
    """The last `cap` characters at most, from the beginning of a line.

    >>> tail("one\\n" * 20, cap=42)
    '[... earlier output omitted ...]\\none\\none\\n'
    """
    if len(text) <= cap:
        return text
    note = render("test_output_cut") + "\n"
    kept = text[len(text) - (cap - len(note)) :]
    return note + (kept.partition("\n")[2] or kept)
