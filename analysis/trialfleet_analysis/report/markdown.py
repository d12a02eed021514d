"""The report as Markdown: the same tables as the page, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_analysis.report.arrivals import arrival_line
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.record import declared_contrast
from trialfleet_analysis.report.findings.sections import sections
from trialfleet_analysis.report.html.sentences import IN_ONE_MINUTE, NEXT
from trialfleet_analysis.report.methods_text import LEAD, TITLE, methods_text
from trialfleet_designs.document.tables import ReportSection, ReportTable, Value
from trialfleet_ledger.display_text import markdown as text
from trialfleet_ledger.plurals import plural


def to_markdown(report: Report) -> str:
    """Same report, same bytes."""
    parts = (
        _head(report),
        _contrast(report),
        *(section_lines(found) for found in sections(report) if found.tables),
        _methods(report),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(report: Report) -> Iterator[str]:
    first, *rest = report.answer
    yield f"# {text(report.title)}"
    if report.banner:
        yield from ("", f"> **{text(report.banner)}**")
    yield from ("", f"## {IN_ONE_MINUTE}", "", f"**{long_text(first)}**")
    for sentence in rest:
        yield from ("", long_text(sentence))
    if report.next_step:
        yield from ("", f"{NEXT} {long_text(report.next_step)}")
    if line := arrival_line(report):
        yield from ("", long_text(line))
    yield from ("", _state(report))
    if report.cautions:
        yield from ("", "Before you rely on it:", "")
        yield from (f"- {long_text(caution)}" for caution in report.cautions)


def _contrast(report: Report) -> Iterator[str]:
    if found := declared_contrast(report):
        yield from ("", f"## {text(found.title)}", *table_lines(found, titled=False))


def _state(report: Report) -> str:
    progress = report.progress
    return (
        f"{report.state.capitalize()}: {progress.counted_trials}, {progress.complete_blocks:,} of "
        f"{plural(progress.blocks, 'block')} complete; bundles {'' if report.verified else 'not '}verified."
    )


def section_lines(found: ReportSection) -> Iterator[str]:
    """A heading, its lead and its tables."""
    yield from ("", f"## {text(found.title)}")
    if found.lead:
        yield from ("", long_text(found.lead))
    for one in found.tables:
        yield from table_lines(one, titled=len(found.tables) > 1)


def table_lines(found: ReportTable, *, titled: bool) -> Iterator[str]:
    """A table, below its title and its lead."""
    if titled:
        yield from ("", f"### {text(found.title)}")
    if found.lead:
        yield from ("", long_text(found.lead))
    yield ""
    yield f"| {' | '.join(text(name) for name in found.columns)} |"
    yield "|" + "".join("---|" if n in found.words else "--:|" for n in range(len(found.columns)))
    yield from (f"| {' | '.join(_value(value) for value in row)} |" for row in found.rows)


def _value(value: Value) -> str:
    return long_text(f"{value.text} ({value.note})" if value.note else value.text)


def long_text(sentence: str) -> str:
    """A whole sentence, escaped."""
    return text(sentence, longest=4000)


def _methods(report: Report) -> Iterator[str]:
    found = methods_text(report)
    yield from ("", f"## {TITLE}", "", LEAD)
    for one in found.paragraphs:
        yield from ("", long_text(one))
    yield from ("", "```bibtex", found.entries, "```")
