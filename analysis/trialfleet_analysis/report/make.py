"""From a store to report files: reads, counts the look, writes."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from trialfleet_analysis.evidence import read_evidence
from trialfleet_analysis.ledger import read_ledger, record_look
from trialfleet_analysis.report.assemble import assemble
from trialfleet_analysis.report.document import Report, to_json
from trialfleet_analysis.report.html.document import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store


@dataclass(frozen=True)
class Written:
    """Where the report is."""

    html: Path
    markdown: Path
    json: Path


def make_report(store: Store, campaign: str, *, verify: bool = True, now: float) -> Report:
    """The report of a campaign as it stands. While trials are missing the look is recorded first, at `now`.

    Raises `OperatorError` when the campaign or its outcomes are not there.
    """
    ledger = read_ledger(store, campaign)
    if not ledger.outcomes:
        raise OperatorError(
            "no trial has an outcome yet",
            where=f"{store.url}/{campaign}/outcomes",
            hint="run the campaign first, or wait for its first trials (`trialfleet status`)",
        )
    report = assemble(ledger, read_evidence(store, ledger, verify=verify), verified=verify, versions=_versions())
    if report.progress.interim:
        blocks = report.progress.complete_blocks
        record_look(store, ledger, complete_blocks=blocks, at=now, by="trialfleet report")
    return report


def write_report(report: Report, folder: Path) -> Written:
    """report.html, report.md and report.json in `folder`, replaced. `OperatorError` when it cannot be written."""
    written = Written(folder / "report.html", folder / "report.md", folder / "report.json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written.html.write_text(to_html(report), encoding="utf-8")
        written.markdown.write_text(to_markdown(report), encoding="utf-8")
        written.json.write_text(to_json(report), encoding="utf-8")
    except OSError as error:
        raise OperatorError(
            f"cannot write the report: {error.strerror}", where=str(folder), hint="give a folder with --out"
        ) from error
    return written


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("trialfleet", "numpy", "scipy")}
