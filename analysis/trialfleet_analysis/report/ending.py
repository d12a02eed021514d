"""The end of `trialfleet run` on a terminal: the answer, the conditions as a plot, and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from trialfleet_analysis.rates import ConditionResult
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import NOTHING, limits, percent
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Interval

WIDEST = 100  # columns: longer lines are hard to read
MOST = 12  # conditions that are drawn
PLOT = 41  # columns of the scale, at most
LEAST_PLOT = 15  # below this, a condition's name gets a line of its own
GAP = "  "
_ASCII = str.maketrans({"−": "-", "–": "-", "≤": "<=", "≥": ">=", "±": "+-", "×": "x", "…": "...", "’": "'"})


class NextStep(NamedTuple):
    """A command or a file, and what it is for."""

    purpose: str
    command: str


def show_ending(report: Report, steps: Sequence[NextStep], console: Console) -> None:
    """Print it, in the characters that the console has."""
    console.width = min(console.width, WIDEST)
    for text in _lines(report, steps, console.width):
        if not (console.encoding or "").startswith("utf"):
            text = Text(to_ascii(text.plain), style=text.style, no_wrap=text.no_wrap)
        console.print(text, soft_wrap=bool(text.no_wrap))


def to_ascii(text: str) -> str:
    """
    >>> to_ascii("−12.5 points, p ≤ 0.05, größer")
    '-12.5 points, p <= 0.05, gr??er'
    """
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def _lines(report: Report, steps: Sequence[NextStep], width: int) -> Iterator[Text]:
    """What wraps, and what does not: a plot, and a command that is copied."""
    yield Text("")
    if report.banner:
        yield Text(one_line(report.banner, longest=2000), style="bold yellow")
    first, *rest = report.answer
    yield Text(one_line(first, longest=2000), style="bold")
    yield from (Text(one_line(sentence, longest=2000)) for sentence in rest)
    yield Text("")
    for line in condition_plot(report.conditions, width):
        yield Text(line, no_wrap=True)
    yield Text("")
    if report.cautions:
        yield Text(
            f"Before you rely on it: {plural(len(report.cautions), 'caution')}, in the report.", style="yellow"
        )
    longest = max((len(step.purpose) for step in steps), default=0)
    for step in steps:
        yield Text(f"{step.purpose:{longest}}{GAP}{one_line(step.command, longest=2000)}", no_wrap=True)


def condition_plot(conditions: Sequence[ConditionResult], width: int) -> list[str]:
    """One row a condition: its rate, its interval, and both on a scale of `width` columns less the words.

    [---o----] is the interval with the rate inside. Names stand above their rows where the width is small.
    """
    shown = [(one_line(one.condition), one.these_tasks) for one in conditions[:MOST]]
    words = [_words(rate) for _, rate in shown]
    longest, numbers = max((len(name) for name, _ in shown), default=0), max(map(len, words), default=0)
    beside = width - longest - numbers - 2 * len(GAP) >= LEAST_PLOT
    lead = longest + len(GAP) if beside else 0
    columns = max(len("0%100%"), min(PLOT, width - lead - numbers - len(GAP)))
    lines = [f"{'pass rate':>{lead + numbers}}{GAP}{_scale(columns)}".rstrip()]
    for (name, rate), said in zip(shown, words, strict=True):
        lines += [] if beside else [name]
        lines.append(f"{name if beside else '':{lead}}{said:>{numbers}}{GAP}{_bar(rate, columns)}".rstrip())
    left = len(conditions) - len(shown)
    return [*lines, f"and {left:,} more in the report"] if left else lines


def _words(rate: Interval) -> str:
    return f"{percent(rate.estimate)} ({limits(rate)})" if rate.low is not None else percent(rate.estimate)


def _scale(columns: int) -> str:
    """0%, 50% where it fits, and 100% above the columns that they mark.

    >>> _scale(21)
    '0%       50%     100%'
    """
    middle = "50%" if columns >= LEAST_PLOT else ""
    start = f"0%{middle:>{columns // 2 + 2 - len('0%')}}" if middle else "0%"
    return f"{start}{'100%':>{columns - len(start)}}"


def _bar(rate: Interval, columns: int) -> str:
    """
    >>> _bar(Interval(0.5, 0.25, 0.75, 0.95, 4, "Wilson"), 21)
    '|    [----o----]    |'
    """
    if rate.estimate is None:
        return NOTHING
    cells = ["|", *" " * (columns - 2), "|"]

    def place(value: float) -> int:
        return round(value * (columns - 1))

    if rate.low is not None and rate.high is not None:
        low, high = place(rate.low), place(rate.high)
        cells[low : high + 1] = ["[", *"-" * (high - low - 1), "]"] if high > low else ["o"]
    cells[place(rate.estimate)] = "o"
    return "".join(cells)
