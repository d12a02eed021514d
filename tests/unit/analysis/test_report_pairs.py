"""Pairs of trials inside report.html: which ones, how many fit, and that hostile content is harmless."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import tostring

import pytest

from tests.support.ledgers import plan, read, write
from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.test_viewer_pages import HOSTILE, PRIMARY, fate, trial_of
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.make import MOST_HTML, write_report
from trialfleet_analysis.viewer.embedded import discordant_ids, embedded_pairs
from trialfleet_ledger.store.directory import DirectoryStore

FROZEN = plan(("alpha", "beta"), reps=3, primary=PRIMARY)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """The treatment passes and the control fails, but for rep 1, in which both pass."""
    return write(tmp_path_factory.mktemp("runs"), FROZEN, lambda trial: fate(trial, HOSTILE))


@pytest.fixture(scope="module")
def report(store: DirectoryStore) -> Report:
    return read(store)


def written(store: DirectoryStore, report: Report, folder: Path, most: int = MOST_HTML) -> str:
    files = write_report(report, folder, lambda room: embedded_pairs(store, report, min(room, most)))
    return files.html.read_text(encoding="utf-8")


def test_pairs_of_the_declared_contrast_alternate_between_tasks(report: Report) -> None:
    expected = [
        tuple(trial_of(FROZEN, condition, rep, task).id for condition in ("intent_layer", "none"))
        for rep in (0, 2)
        for task in ("alpha", "beta")
    ]
    assert list(discordant_ids(report)) == expected


def test_both_trials_are_in_the_file(store: DirectoryStore, report: Report, tmp_path: Path) -> None:
    text = written(store, report, tmp_path)
    page = Page(text)
    assert "4 of 4 pairs" in " ".join(page.words)
    assert page.tags.count("details") >= 4
    said = "".join(page.words)
    assert "alpha × intent_layer, rep 0, against none: A passed, B failed" in said.replace("\u200b", "")
    assert "Mind the pitfalls." in said


def test_as_many_as_fit(store: DirectoryStore, report: Report, tmp_path: Path) -> None:
    one = embedded_pairs(store, report, 10**9).shown[0]
    size = len(tostring(one, encoding="utf-8", method="html"))
    assert len(embedded_pairs(store, report, size + 10).shown) == 1
    assert embedded_pairs(store, report, size - 10).shown == []
    assert 'id="pairs"' not in written(store, report, tmp_path, most=10)


def test_hostile_content_is_text(store: DirectoryStore, report: Report, tmp_path: Path) -> None:
    text = written(store, report, tmp_path)
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [char for char in text if char in "\x1b\x07\x00\x85\u202e\u2066"]
    assert "⟨U+202E⟩evil" in text


def test_ids_are_unique(store: DirectoryStore, report: Report, tmp_path: Path) -> None:
    ids = [value for name, value in Page(written(store, report, tmp_path)).attributes if name == "id"]
    assert len(ids) == len(set(ids))
