"""The report's last section: sentences with the campaign's numbers, and what they cite."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.support.ledgers import lifelike, lifelike_plan, write
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.methods_text import CITED, bibliography, methods_text


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    store = write(tmp_path_factory.mktemp("runs"), lifelike_plan(reps=3), lifelike())
    return make_report(store, "preamble-vs-pull", now=1)


def keys(entries: str) -> list[str]:
    return re.findall(r"@\w+\{(\w+),", entries)


def test_the_campaigns_numbers_are_in_its_sentences(report: Report) -> None:
    design, analysis, found = methods_text(report).paragraphs
    assert "6 tasks went to search 1 (model none) under 5 conditions (none, placebo, flat_llm," in design
    assert "90 trials in 3 blocks" in design
    progress = report.progress
    assert f"{progress.measured} trials ended with a verdict, {progress.missing} without one" in design
    assert "interim" not in design
    assert "intent_layer_preamble against intent_layer on these tasks, α = 0.05" in analysis
    assert "stratified Miettinen-Nurminen interval" in analysis
    assert found == " ".join(report.answer)


def test_an_interim_report_says_so(report: Report) -> None:
    changed = {"interim": True, "complete_blocks": 2, "looks": 1, "extended_after_look": True}
    progress = dataclasses.replace(report.progress, **changed)
    design = methods_text(dataclasses.replace(report, progress=progress)).paragraphs[0]
    assert "interim, of 2 complete blocks. Results were looked at 1 time before the end." in design
    assert "added after a look" in design


def test_each_method_that_is_used_has_its_entry_and_no_other(report: Report) -> None:
    cited = keys(methods_text(report).entries)
    assert cited[:3] == ["wilson1927", "clopper1934", "mehta1985"]
    assert "ville1939" not in cited, "the campaign has a fixed end"
    assert "lan1983" not in cited, "the campaign declares no looks"
    assert len(cited) == len(set(cited))


def test_every_entry_is_complete_and_named_by_a_word() -> None:
    assert {key for _, key in CITED} == set(bibliography())
    for entry in bibliography().values():
        assert entry.count("{") == entry.count("}")
        assert all(f"{name} = " in entry for name in ("author", "title", "year"))


def test_it_ends_both_renderings(report: Report) -> None:
    page, text = to_html(report), to_markdown(report)
    assert page.index('id="cite"') > page.index('id="trials"')
    assert "author = {Wilson, Edwin B.}" in page
    assert "## For the methods section" in text
    assert text.rstrip().endswith("```")


def test_hostile_names_are_text(report: Report) -> None:
    manifest = tuple(
        dataclasses.replace(line, value="<script>\u202e`") if line.name == "model" else line
        for line in report.manifest
    )
    hostile = dataclasses.replace(report, manifest=manifest)
    assert "(model <script>" not in to_html(hostile)
    assert "(model <script>" not in to_markdown(hostile)
