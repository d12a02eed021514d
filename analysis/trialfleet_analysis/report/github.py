"""The report as a comment on a pull request: the answer first, at most `MAX_LINES` lines of GitHub Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.record import declared_contrast
from trialfleet_analysis.report.html.sentences import NEXT
from trialfleet_designs.document.tables import Value
from trialfleet_ledger.display_text import markdown
from trialfleet_ledger.errors import OperatorError

MAX_LINES = 40
_SENTENCES = 6  # after the first
_ROWS = 12
_LONGEST = 1000  # characters of one sentence
# GitHub links these after Markdown is rendered, so that a backslash before them changes nothing.
_LINKED = re.compile(r"[@#]|:(?=//)|\b(?:www(?=\.)|GH(?=-\d))", re.IGNORECASE)
_BREAK = "\u200b"  # a space of no width
_URL = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'*+,;=%]+")  # no blank, bracket of Markdown's links, or quote


def to_github(report: Report, link: str | None = None) -> str:
    """Same report, same bytes. `link`: address of the full report. Raises `OperatorError` for one that is none."""
    before = list(_head(report))
    after = list(_tail(report, link))
    cautions = _cautions(report.cautions, MAX_LINES - len(before) - len(after))
    return "\n".join([*before, *cautions, *after]) + "\n"


def text(value: str, longest: int = _LONGEST) -> str:
    """Text that mentions nobody and links nothing.

    >>> text("@all see #1 <b>").replace("\u200b", "!")
    '@!all see \\\\#!1 &lt;b&gt;'
    """
    return _LINKED.sub(rf"\g<0>{_BREAK}", markdown(value, longest))


def _head(report: Report) -> Iterator[str]:
    first, *rest = report.answer
    label = "Dry run. " if report.dry_run else ""
    yield f"**{label}{text(first)}**"
    if report.banner:
        yield from ("", f"> {text(report.banner)}")
    for sentence in rest[:_SENTENCES]:
        yield from ("", text(sentence))
    if report.next_step:
        yield from ("", f"{NEXT} {text(report.next_step)}")
    found = declared_contrast(report)
    if found is not None:
        yield ""
        yield f"| {' | '.join(text(name) for name in found.columns)} |"
        yield "|" + "---|" * len(found.columns)
        yield from (f"| {' | '.join(map(_value, row))} |" for row in found.rows[:_ROWS])


def _value(value: Value) -> str:
    shown = text(value.text)
    return f"{shown} ({text(value.note)})" if value.note else shown


def _cautions(cautions: Sequence[str], room: int) -> list[str]:
    """As many as fit into `room` lines; how many do not."""
    if not cautions:
        return []
    most = room - 3  # an empty line, the title, an empty line
    shown = cautions if len(cautions) <= most else cautions[: most - 1]
    left = len(cautions) - len(shown)
    lines = [f"- {text(caution)}" for caution in shown]
    return ["", "Before you rely on it:", "", *lines, *([f"- … and {left} more in the report"] if left else [])]


def _tail(report: Report, link: str | None) -> Iterator[str]:
    trials = f"{report.state.capitalize()}: {report.progress.counted_trials}"
    full = "" if link is None else f" [Full report]({checked_link(link)})."
    yield from ("", f"Campaign {text(report.title)}. {trials}.{full}")


def checked_link(link: str) -> str:
    """Raises `OperatorError` unless it is an address that Markdown takes as a whole."""
    if urlsplit(link).scheme not in ("http", "https") or not _URL.fullmatch(link):
        raise OperatorError(
            "this is no address of a page",
            where="--link",
            hint="give an address that begins with https:// and has no blanks, quotes or round brackets",
        )
    return link
