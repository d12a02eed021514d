"""A dry run is labelled in the first line of every form of its report, and is no evidence for others."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.ledgers import Fate, plan, read, write
from trialfleet_analysis.combining.evidence import campaign_evidence
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.ending import show_ending
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.terminal import show
from trialfleet_analysis.side_by_side.rows import side_by_side
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.store.directory import DirectoryStore

PRIMARY = Primary(treatment="intent_layer", control="none")
BANNER = "Dry run: the agent nop runs in place of codex."


def campaign(folder: Path, *, dry: bool) -> DirectoryStore:
    agent = AgentSpec(kind="nop", dry_run_of="codex" if dry else None)
    banner = BANNER if dry else None
    frozen = plan(reps=2, primary=PRIMARY, agent=agent, banner=banner)
    return write(folder, frozen.model_copy(update={"uid": f"{dry}"}), lambda trial: Fate())


@pytest.fixture(scope="module")
def dry(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read(campaign(tmp_path_factory.mktemp("dry"), dry=True))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read(campaign(tmp_path_factory.mktemp("real"), dry=False))


def first_lines(report: Report) -> list[str]:
    """Of the page (title and heading), Markdown, JSON, the comment, and the two forms on a terminal."""
    html, stream, end = to_html(report), io.StringIO(), io.StringIO()
    show(report, Console(file=stream, width=80))
    show_ending(report, (), Console(file=end, width=80))
    texts = [
        html.split("<title>")[1],
        html.split("<h1>")[1],
        to_markdown(report),
        to_json(report).removeprefix("{\n"),
        to_github(report),
        stream.getvalue(),
        end.getvalue().lstrip(),
    ]
    return [text.splitlines()[0].split("</h1>")[0] for text in texts]


def test_every_form_says_it_first(dry: Report, real: Report) -> None:
    for line in first_lines(dry):
        assert "dry run" in line.lower() or line == ' "dry_run": true,'
    for line in first_lines(real):
        assert "dry run" not in line.lower()
    assert json.loads(to_json(real))["dry_run"] is False


def test_it_is_not_combined(tmp_path: Path) -> None:
    store = campaign(tmp_path, dry=True)
    with pytest.raises(OperatorError, match="this is a dry run"):
        campaign_evidence(open_campaign(store, "demo"), "demo")


def test_side_by_side_names_it(tmp_path: Path) -> None:
    one = open_campaign(campaign(tmp_path / "dry", dry=True), "demo")
    other = open_campaign(campaign(tmp_path / "real", dry=False), "demo")
    assert side_by_side(one, other).campaigns == ("Dry run of demo", "demo")
