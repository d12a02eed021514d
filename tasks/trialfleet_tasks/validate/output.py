"""The failing test's output, made the same on every machine and run."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]{4,16}\b"), "0x0"),
    (re.compile(r"\bin \d+(?:\.\d+)?s(?: \(\d+:\d{2}:\d{2}\))?"), "in 0.00s"),
    (re.compile(r"\b\d+\.\d+s (setup|call|teardown)\b"), r"0.00s \1"),
    (re.compile(r"\bpytest-of-[\w.-]+/pytest-\d+"), "pytest-of-agent/pytest-0"),
    (re.compile(r"(?<![\w/])(/tmp|/var/tmp|/home/agent/tmp)/tmp[\w]{6,10}\b"), r"\1/tmpdir"),
    (
        re.compile(r"\b\d{4}-\d{2}-\d{2}([T ])\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"),
        r"2000-01-01\g<1>00:00:00",
    ),
    (re.compile(r"\bpid[ =:]+\d+", re.IGNORECASE), "pid 0"),
)


def normalised(output: str, places: Mapping[str, str]) -> str:
    """The output without colours, durations, addresses, temporary names, times and this machine's paths.

    `places`: path as the tests saw it -> name that stands for it; longer paths are replaced first.
    """
    text = _ANSI.sub("", output.replace("\r\n", "\n"))
    text = _CONTROL.sub("", text)
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
    text = _HEADERS.sub("", text)
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n")) + "\n"


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
