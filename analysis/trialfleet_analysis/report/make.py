"""From a store to report files: reads, counts the look, writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeAlias

from trialfleet_analysis.kept_answer import keep_answer, versions
from trialfleet_analysis.report.assemble import answer_of, assemble, below_plan
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.html.page import EmbeddedPairs, to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.warnings import emptiest
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_designs.comparison.composition import Arm, checked_contrasts
from trialfleet_designs.halving.finding import refuse_left_out
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.output_files import replace_outputs
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.store.protocol import Store

MOST_HTML = 5_000_000  # bytes of a report with its pairs
PairsInRoom: TypeAlias = Callable[[int], EmbeddedPairs]


@dataclass(frozen=True)
class ReportFiles:
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
    contrasts: Sequence[str] = (),
    packages: bool = False,
    cutoff: date | None = None,
    by: str = "trialfleet report",
) -> Report:
    """The report of a campaign as it stands. While trials are missing the look is recorded first, at `now`, with
    the command that it is made `by`.

    `complete`: refuse a campaign with a cell below the plan instead. `contrasts`: TREATMENT:CONTROL, beyond the
    plan's; `packages`: they may differ in several deliveries.
    `cutoff`: when the model's training data ends. Raises `OperatorError` when the campaign or its
    outcomes do not exist, and for a contrast that cannot be answered (`checked_contrasts`).
    """
    found = open_campaign(store, campaign, verify=verify)
    if not found.terminal:
        raise OperatorError(
            "no trial has an outcome yet",
            where=f"{store.url}/{campaign}/outcomes",
            hint="run the campaign first, or wait for its first trials (`trialfleet status`)",
        )
    plan = found.frame.plan
    arms = {name: Arm(condition, plan.agents[name].spec) for name, condition in plan.conditions.items()}
    pairs = checked_contrasts(contrasts, arms, packages=packages)
    refuse_left_out(pairs, found.frame.decisions)
    if complete:
        _refuse_below(found, f"{store.url}/{campaign}/outcomes")
    found.record_look(store, at=now, by=by)
    made = assemble(found, versions=versions(), requested=pairs, cutoff=cutoff)
    if not pairs and cutoff is None:
        keep_answer(store, found, answer_of(made))
    return made


def _refuse_below(found: CampaignTables, where: str) -> None:
    below = below_plan(found)
    if below:
        cells = "1 cell is" if len(below) == 1 else f"{plural(len(below), 'cell')} are"
        raise OperatorError(
            f"{cells} below the plan: {emptiest(below)}",
            where=where,
            hint=f"{found.way_on}; without --complete only full blocks count",
        )


def write_report(report: Report, folder: Path, pairs: PairsInRoom | None = None) -> ReportFiles:
    """report.html, report.md and report.json in `folder`, replaced if trialfleet wrote them. `OperatorError` when
    they cannot be written or are somebody else's.
    `pairs`: gives pairs of trials that fit so many bytes, for report.html."""
    written = ReportFiles(folder / "report.html", folder / "report.md", folder / "report.json")
    texts = {
        written.html: _html(report, pairs),
        written.markdown: to_markdown(report),
        written.json: to_json(report),
    }
    replace_outputs(folder, {path.name: text.encode() for path, text in texts.items()}, what="report")
    return written


def _html(report: Report, pairs: PairsInRoom | None) -> str:
    alone = to_html(report)
    found = pairs(MOST_HTML - len(alone.encode())) if pairs else None
    return to_html(report, found) if found and found.shown else alone
