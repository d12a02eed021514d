"""A kept answer is shown only while tables, records and programs are those that it was made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import ledgers as made
from tests.support.ledgers import Fate
from trialfleet_analysis import kept_answer as of
from trialfleet_analysis.kept_answer import CampaignAnswer, kept_answer
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.answer_process import AnswerError, AnswerProcess
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.store.directory import DirectoryStore


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    """A finished campaign that was reported."""
    store = made.write(tmp_path / "store", made.plan(reps=3), lambda _: Fate())
    make_report(store, "demo", now=1)
    return store


def kept(store: DirectoryStore) -> CampaignAnswer | None:
    return kept_answer(store, open_campaign(store, "demo"))


def never(_: CampaignTables) -> CampaignAnswer:
    raise AssertionError("computed again")


def test_the_viewer_shows_what_the_report_kept(store: DirectoryStore) -> None:
    said = CampaignSite(WatchedCampaign(store, "demo", never), ServedAddresses(), answer_wait_s=60).home({})
    answer = kept(store)
    assert answer is not None
    assert answer.sentences == make_report(store, "demo", now=2).answer
    assert 'data-answered="yes"' in said
    assert "cannot be computed" not in said


def test_a_report_of_more_contrasts_or_unread_bundles_keeps_none(tmp_path: Path) -> None:
    store = made.write(tmp_path, made.plan(reps=2), lambda _: Fate())
    make_report(store, "demo", now=1, verify=False)
    assert kept(store) is None
    make_report(store, "demo", now=1, contrasts=["intent_layer:none"], packages=True)
    assert kept(store) is None


def test_other_records_have_no_kept_answer(store: DirectoryStore) -> None:
    made.put(store, "demo/halts/1.json", Halt(number=1, at=1, task="alpha", reason="broken"))
    assert kept(store) is None


def test_other_programs_have_no_kept_answer(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, "_sources", lambda: "other files")
    assert kept(store) is None


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff", b'{"made_of":"x","answer":{}}'])
def test_a_damaged_one_is_computed_again(store: DirectoryStore, raw: bytes) -> None:
    (store.root / "demo/tables/answer.json").write_bytes(raw)
    assert kept(store) is None


def test_words_that_were_edited_are_not_read(store: DirectoryStore) -> None:
    path = store.root / "demo/tables/answer.json"
    held = json.loads(path.read_bytes())
    assert kept(store) is not None
    for name, value in (("sentences", ["The treatment passes more often."]), ("cautions", ["x"]), ("banner", "x")):
        assert held["answer"][name] != value
        path.write_text(json.dumps(held | {"answer": held["answer"] | {name: value}}))
        assert kept(store) is None


def test_a_process_computes_it_and_names_its_failure(store: DirectoryStore) -> None:
    found, process = open_campaign(store, "demo"), AnswerProcess()
    assert process(found) == kept(store)
    with pytest.raises(AnswerError, match="AttributeError"):
        process(object())  # type: ignore[arg-type]
    process.close()
    with pytest.raises(AnswerError, match="killed"):
        process(found)
