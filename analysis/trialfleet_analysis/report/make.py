"""From a store to report files: reads, counts the look, writes."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from trialfleet_analysis.asked import NOTHING, Asked
from trialfleet_analysis.ledger import record_look
from trialfleet_analysis.plan_of_analysis.asked import checked_contrasts
from trialfleet_analysis.plan_of_analysis.reading import refuse_negative
from trialfleet_analysis.report.assemble import assemble, below_plan
from trialfleet_analysis.report.document import Report, to_json
from trialfleet_analysis.report.html.document import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.warnings import emptiest
from trialfleet_analysis.tables.read import Campaign, open_campaign
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store


@dataclass(frozen=True)
class Written:
    """Where the report is."""

    html: Path
    markdown: Path
    json: Path


def make_report(
    store: Store,
    campaign: str,
    *,
    verify: bool = True,
    complete: bool = False,
    now: float,
    asked: Asked = NOTHING,
) -> Report:
    """The report of a campaign as it stands. While trials are missing the look is recorded first, at `now`.

    `complete`: a cell below the plan is refused instead. `asked`: contrasts beyond the plan's. Raises
    `OperatorError` when the campaign or its outcomes are not there, for a contrast that cannot be answered
    (`checked_contrasts`), and for a metric below 0 (`refuse_negative`).
    """
    found = open_campaign(store, campaign, verify=verify)
    if not found.terminal:
        raise OperatorError(
            "no trial has an outcome yet",
            where=f"{store.url}/{campaign}/outcomes",
            hint="run the campaign first, or wait for its first trials (`trialfleet status`)",
        )
    refuse_negative(found.trials, campaign)
    plan = found.frame.plan
    pairs = checked_contrasts(asked.contrasts, plan.conditions, packages=asked.packages)
    if complete:
        _refuse_below(found, f"{store.url}/{campaign}/outcomes")
    if found.interim:
        record_look(store, found.ledger, complete_blocks=found.blocks, at=now, by="trialfleet report")
    return assemble(found, versions=_versions(), asked=pairs)


def _refuse_below(found: Campaign, where: str) -> None:
    below = below_plan(found)
    if below:
        cells = "1 cell is" if len(below) == 1 else f"{len(below):,} cells are"
        raise OperatorError(
            f"{cells} below the plan: {emptiest(below)}",
            where=where,
            hint="`trialfleet resume` runs what is missing; without --complete only full blocks count",
        )


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
    return {name: importlib.metadata.version(name) for name in ("trialfleet", "numpy", "scipy", "pyarrow")}
