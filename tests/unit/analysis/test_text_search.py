"""The search for a text among the steps of a campaign's trials, and what the list says of it."""

from __future__ import annotations

import csv
import io
import json
import tarfile

import pytest
from backports import zstd

from tests.support.ledgers import MID_RUN, Fate, plan, trials, write
from tests.unit.analysis.parsed_page import Page
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_analysis.viewer import site as site_module
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.answer_process import computed
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_analysis.viewer.text_search import AT_ONCE, MOST_SEARCHES, TextSearch, TextSearches
from trialfleet_ledger.bundle import UNPACKED_CAP, BundleError, read_member
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.store.directory import DirectoryStore

EVIL = '<img src=x onerror=alert(1)>"\u202e'
FROZEN = plan(reps=5)  # 20 trials
ORDER = trials(FROZEN)


def line(turn: int, **said: str) -> str:
    return json.dumps({"turn": turn, "kind": "message", **said})


def fate(trial: Trial) -> Fate:
    """Trial 0 says it in turn 2, trial 1 in a path, trial 2 next to a line that is no step; 3 has such a line, 4
    no trajectory, 5 a damaged bundle, 6 was abandoned; all others say something else."""
    at = ORDER.index(trial)
    said = {
        0: [line(1, detail="nothing"), line(2, detail=f"a Needle\n{EVIL}"), line(3, detail="needle")],
        1: [line(1, path="src/needle.py")],
        2: ["{", line(1, tool="NEEDLE")],
        3: [line(1, detail="x"), "{"],
    }.get(at, [line(1, detail="hay")])
    files = {"trajectory.jsonl": "\n".join(said).encode(), "zz.txt": b"needle"}
    if at == 6:
        return Fate(verdict=None, losses=(MID_RUN,) * 3)
    if at == 5:
        return Fate(files=files, stored=lambda data: data[:-1])
    return Fate(files={"zz.txt": b"needle"} if at == 4 else files)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    return write(tmp_path_factory.mktemp("searched"), FROZEN, fate)


@pytest.fixture
def site(store: DirectoryStore) -> CampaignSite:
    return CampaignSite(WatchedCampaign(store, "demo", computed), ServedAddresses())


def test_what_is_found_and_what_cannot_be_read(store: DirectoryStore) -> None:
    rows = open_campaign(store, "demo", verify=False).trials
    found = TextSearch("nEEdle").among(store, "demo", rows, None)
    assert found.turns == {ORDER[0].id: 2, ORDER[1].id: 1, ORDER[2].id: 1}
    assert (found.searched, found.total, found.unread, found.complete) == (20, 20, 4, True)


def test_a_search_continues_where_it_stopped(store: DirectoryStore) -> None:
    rows = open_campaign(store, "demo", verify=False).trials
    search = TextSearch("needle")
    reached = [search.among(store, "demo", rows, 0).searched for _ in range(4)]
    assert reached == [AT_ONCE, 2 * AT_ONCE, 20, 20]
    part = search.among(store, "demo", rows.take(slice(2)), 0)
    assert (part.total, part.complete) == (2, True)


def test_few_searches_are_remembered() -> None:
    searches = TextSearches()
    first = searches.of("first")
    assert searches.of("first") is first
    for n in range(MOST_SEARCHES):
        searches.of(str(n))
    assert searches.of("first") is not first


def test_a_part_is_said_to_be_a_part(site: CampaignSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "SEARCH_S", 0)
    asked = {"text": " needle ", "sort": "task"}
    first = site.trials(asked)
    assert "8 of 20 trials searched so far" in first
    assert 'data-refresh="/trials/found?text=needle&amp;sort=task"' in first
    assert "CSV of these" not in first
    assert "16 of 20 trials searched so far" in site.found(asked)
    last = site.found(asked)
    assert "all 20 trials searched" in last
    assert "4 trials without a whole trajectory that can be read" in last
    assert "data-refresh" not in last
    assert "CSV of these" in last


def test_csv_has_all_that_the_whole_search_finds(site: CampaignSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "SEARCH_S", 0)
    read = list(csv.DictReader(io.StringIO(site.table({"text": "needle"}).decode())))
    assert {one["trial"]: one["found_turn"] for one in read} == {
        ORDER[0].id: "2",
        ORDER[1].id: "1",
        ORDER[2].id: "1",
    }
    page = Page(site.trials({"text": "needle"}))
    assert len(page.tables["Trials"]) == 4
    assert f"/trial/{ORDER[0].id}#turn-2" in site.trials({"text": "needle"})


def test_a_hostile_text_is_found_and_harmless(site: CampaignSite) -> None:
    shown = site.trials({"text": EVIL})
    assert "all 20 trials searched" in shown
    assert "img" not in Page(shown).tags
    assert "\u202e" not in shown
    assert len(Page(shown).tables["Trials"]) == 2


def test_one_member_of_a_bundle(store: DirectoryStore) -> None:
    data = store.get(f"demo/attempts/{ORDER[1].id}/1/bundle.tar.zst")
    assert data
    assert read_member(data, sha256(data), "zz.txt") == b"needle"
    assert read_member(data, sha256(data), "nothing") is None
    with pytest.raises(BundleError, match="SHA-256"):
        read_member(data[:-1], sha256(data), "zz.txt")
    for broken in (data[:-200], b"x" * 99):
        with pytest.raises(BundleError, match="broken"):
            read_member(broken, sha256(broken), "zz.txt")


def test_a_bundle_that_grows_without_end_is_refused() -> None:
    """Zeros take next to nothing, and a reader that skips a member unpacks it."""
    info = tarfile.TarInfo("a")
    info.size = 2 * UNPACKED_CAP
    flag = zstd.CompressionParameter.content_size_flag
    zeros = info.tobuf() + bytes(10**6)
    for said, reason in ((1, "more than"), (0, "does not say how many bytes")):
        bomb = zstd.compress(zeros, options={flag: said})
        with pytest.raises(BundleError, match=reason):
            read_member(bomb, sha256(bomb), "zz.txt")
