"""Pairs of trials that differ, side by side inside the report's one file."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, tostring

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.html.markup import h
from trialfleet_analysis.report.html.page import EmbeddedPairs
from trialfleet_analysis.viewer.addresses import FolderAddresses
from trialfleet_analysis.viewer.assets import asset
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.pages.pair_page import compared
from trialfleet_analysis.viewer.pages.trial_page import name_of
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_analysis.viewer.trial_record import TrialRecord
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.store.protocol import Store

MOST_READ = 500  # pairs whose bundles are read; 5 MB hold some 150 of a short agent


def embedded_pairs(store: Store, report: Report, room: int) -> EmbeddedPairs:
    """Pairs of the declared contrast in complete blocks, alternating between tasks, in at most `room` bytes of
    HTML."""
    pairs = list(discordant_ids(report))
    site = CampaignSite(WatchedCampaign(store, report.campaign), FolderAddresses())
    shown: list[Element] = []
    for ids in pairs[:MOST_READ]:
        a, b = (site.record(one) for one in ids)
        if a.parts is None or b.parts is None:
            continue
        made = _pair((a, b), site.watched.tasks().get(a.trial.task) if a.trial else None)
        room -= len(tostring(made, encoding="utf-8", method="html"))
        if room < 0:
            break
        shown.append(made)
    return EmbeddedPairs(shown, len(pairs), asset("viewer.css"))


def discordant_ids(report: Report) -> Iterator[tuple[str, str]]:
    """Trials of treatment and control in one block of which just one passed: the first of each task, then the
    second."""
    declared = report.analysis.declared
    if declared is None:
        return
    cells = {(cell.task, cell.condition): cell for cell in report.cells}
    by_task: list[list[tuple[str, str]]] = []
    for row in report.tasks:
        sides = [cells.get((row.task, name)) for name in (declared.treatment, declared.control)]
        a, b = sides
        if a is None or b is None or len(a.endings) != len(b.endings):
            continue
        ends = zip(a.endings, b.endings, a.trials, b.trials, strict=True)
        by_task.append([(i, j) for x, y, i, j in ends if "-" not in (x, y) and (x == "p") != (y == "p")])
    for place in range(max(map(len, by_task), default=0)):
        yield from (some[place] for some in by_task if place < len(some))


def _pair(pair: tuple[TrialRecord, TrialRecord], task: PlannedTask | None) -> Element:
    title = f"{name_of(pair[0])}, against {pair[1].trial.condition if pair[1].trial else pair[1].id}"
    said = ", ".join(f"{letter} {_outcome(one)}" for letter, one in zip("AB", pair, strict=True))
    content = [(h("h4", name), shown) for name, shown in compared(pair, task).values()]
    made = h("details", h("summary", f"{title}: {said}"), content, class_="pair")
    for element in list(made.iter()):
        element.attrib.pop("id", None)  # of a page by itself
        for form in element.findall("form"):
            element.remove(form)  # its script is not here
    return made


def _outcome(one: TrialRecord) -> str:
    scored = one.outcome.scored if one.outcome else None
    return str(scored.verdict).replace("_", " ") if scored else "has no verdict"
