"""Pages of the viewer from a campaign in a store: what they say, and that hostile content is harmless."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from threading import Event
from typing import NoReturn

import pytest

from tests.support.ledgers import (
    MID_RUN,
    Fate,
    bundle_bytes,
    plan,
    put,
    put_bytes,
    read,
    replaced,
    trials,
    write,
    write_trial,
)
from tests.support.waiting import wait_until
from tests.unit.analysis.parsed_page import Page
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_analysis.viewer import campaign_state
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.answer_process import computed
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.folder import write_folder
from trialfleet_analysis.viewer.pages import first_screen
from trialfleet_analysis.viewer.site import CampaignSite, NoSuchPage
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\x1b]0;t\x07\u202eevil\u2066\x00\x85\n</pre>"
)
PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 0\n+x = 1"
PRIMARY = Primary(treatment="intent_layer", control="none")


def result(outcome: str, name: str = "tests/test_a.py::test_bug") -> dict[str, str]:
    return {"id": name, "outcome": outcome}


def files(trial: Trial, *, passed: bool, spice: str = "") -> dict[str, bytes]:
    """A bundle as an agent's run leaves it; `spice`: said wherever an agent or a test has a say."""
    steps = [
        {"turn": 1, "kind": "read", "tool": f"Read{spice}", "path": f"a.py{spice}", "detail": None, "at_s": 1.0},
        {"turn": 2, "kind": "edit", "tool": "Edit", "path": "a.py", "detail": f"x = 1{spice}", "at_s": 2.0},
    ]
    added = "\n\nMind the pitfalls." if trial.condition == "intent_layer" else ""
    firing = {"at": 1, "tool": "Read", "path": f"a.py{spice}", "node": "AGENTS.md", "emitted": True, "chars": 9}
    return {
        "prompt.txt": f"Fix the bug.{added}{spice}".encode(),
        "patch.diff": f"{PATCH}{spice}\n".encode(),
        "trajectory.jsonl": "\n".join(map(json.dumps, steps)).encode(),
        "tests/results.json": json.dumps([result("passed" if passed else "failed", f"t::bug{spice}")]).encode(),
        "tests/output.log": f"1 test{spice}".encode(),
        "hook.jsonl": json.dumps(firing).encode(),
        f"agent/{spice and 'x<b>y'}.log": spice.encode(),
    }


def fate(trial: Trial, spice: str = "") -> Fate:
    """The treatment passes, the control fails; in block 1 both pass; one trial of block 2 lost an attempt."""
    passed = trial.condition == "intent_layer" or trial.rep == 1
    lost = (MID_RUN,) if trial.rep == 2 and trial.condition == "none" else ()
    return Fate(
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
        losses=lost,
        metrics=Metrics(turns=2 + trial.rep, cost_usd=0.25, first_edit_turn=2),
        files=files(trial, passed=passed, spice=spice),
    )


def never() -> NoReturn:
    raise AssertionError("not within a minute")


def site_of(store: DirectoryStore, campaign: str = "demo") -> CampaignSite:
    return CampaignSite(WatchedCampaign(store, campaign, computed), ServedAddresses(), answer_wait_s=60)


@pytest.fixture
def frozen() -> Plan:
    return plan(("alpha", "beta"), reps=3, primary=PRIMARY)


@pytest.fixture
def store(tmp_path: Path, frozen: Plan) -> DirectoryStore:
    return write(tmp_path, frozen, fate)


def trial_of(frozen: Plan, condition: str, rep: int, task: str = "alpha") -> Trial:
    return next(t for t in trials(frozen) if (t.task, t.condition, t.rep) == (task, condition, rep))


def harmless(text: str) -> None:
    """No element, attribute or character that acts; the page's own scripts alone."""
    page = Page(text)
    scripts = [one.get("src") for one in page.named("script")]
    assert all(src and src.startswith("/assets/") for src in scripts)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    assert "img" not in page.tags
    assert not [char for char in text if char in "\x1b\x07\x00\x85\u202e\u2066"]


def test_the_first_screen_has_answer_rates_pairs_and_losses(store: DirectoryStore, frozen: Plan) -> None:
    text = site_of(store).home({})
    page = Page(text)
    said = " ".join(page.words)
    assert "intent_layer passed more often than none" in said or "No difference was shown" in said
    rates = page.tables["Pass rate of each task under each condition"]
    assert rates[1] == ["alpha", "1/3", "3/3"]
    pairs = page.tables["Pairs with different outcomes"]
    assert pairs[1] == ["alpha", "0 2 ", "–", "1", "0", "0"]
    a, b = trial_of(frozen, "intent_layer", 0), trial_of(frozen, "none", 0)
    assert f'href="/pair/{a.id}/{b.id}"' in text
    assert page.tables["Lost attempts by condition"][1:] == [["none", "evicted", "mid run", "2"]]


DRY = AgentSpec(kind="nop", dry_run_of="claude-code")
HALTS = {
    "halted condition": Halt(number=1, at=1, condition="none", reason="its agent crashes"),
    "halted campaign": Halt(number=1, at=1, reason="no credit"),
}
NEXT_STEPS = {
    "nothing over": "Wait for what is left: 12 trials. If no controller is running, `trialfleet resume` runs",
    "running": "Wait for what is left: 4 trials. If no controller is running, `trialfleet resume` runs",
    "decided": "This question is answered for these tasks and needs no more trials of them.",
    "undecided": "More reps of the same tasks may change nothing: ",
    "halted condition": "Fix what halted none; `trialfleet resume --lift` then continues the campaign.",
    "halted campaign": "Fix what halted the campaign; `trialfleet resume --lift` then continues the campaign.",
    "dry run": "Run the campaign itself: a dry run answers nothing about its agent or its contexts.",
}


@pytest.mark.parametrize("state", NEXT_STEPS)
def test_the_first_screen_says_what_next_in_every_state(tmp_path: Path, state: str) -> None:
    """The same value as the report has. Of an unfinished campaign it is one look, as any other page."""
    reps = 8 if state == "decided" else 3
    over = {"nothing over": 0, "running": 2, "halted campaign": 1}.get(state, reps)
    asked = plan(("alpha", "beta"), reps=reps, primary=PRIMARY, agent=DRY if state == "dry run" else None)

    def ended(trial: Trial) -> Fate | None:
        passed = trial.condition == "intent_layer" or state == "undecided"
        return Fate(verdict=Verdict.PASSED if passed else Verdict.FAILED) if trial.block < over else None

    store = write(tmp_path, asked, ended)
    if state in HALTS:
        put(store, "demo/halts/1.json", HALTS[state])
    site = site_of(store)
    said = "".join(Page(site.home({})).words)
    answer = site.watched.state().answer.get(None)
    assert answer is not None
    assert f"What next?{answer.next_step}".replace("`", "") in said  # which is code on a page
    assert (answer.next_step or "").startswith(NEXT_STEPS[state])
    assert len(list(store.list("demo/looks/"))) == (0 < over < reps)
    if state != "nothing over":
        assert make_report(store, "demo", now=1).next_step == answer.next_step


def test_before_the_first_complete_block_the_first_screen_says_what_it_waits_for(tmp_path: Path) -> None:
    asked = plan(("alpha", "beta"), reps=3, primary=PRIMARY)
    site = site_of(write(tmp_path, asked, lambda _: None))
    released = Event()
    site.watched.compute = lambda found: computed(found) if released.wait(60) else never()
    said = " ".join(Page(dataclasses.replace(site, answer_wait_s=0).home({})).words)
    released.set()
    assert "No answer yet: 0 of 3 blocks are complete." in said
    assert "No block is complete yet: pairs appear after the first of 3." in said


def test_every_page_of_a_dry_run_says_that_it_is_one(tmp_path: Path) -> None:
    dry = plan(reps=2, primary=PRIMARY, agent=AgentSpec(kind="nop", dry_run_of="claude-code"))
    store, real = write(tmp_path / "dry", dry, fate), write(tmp_path / "real", plan(reps=2, primary=PRIMARY), fate)
    a, b = trial_of(dry, "intent_layer", 0), trial_of(dry, "none", 0)
    for of, labelled in ((store, True), (real, False)):
        site = site_of(of)
        for text in (site.home({}), site.trials({}), site.trial(a.id), site.pair(a.id, b.id)):
            title, _, body = text.partition("</title>")
            assert ("Dry run of demo" in title) is labelled
            assert ("Dry run of demo" in body) is labelled


def test_a_task_with_many_pairs_links_the_first(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_screen, "MOST_LINKS", 1)
    pairs = Page(site_of(store).home({})).tables["Pairs with different outcomes"]
    assert pairs[1] == ["alpha", "0 and 1 more", "–", "1", "0", "0"]


def test_the_answer_is_the_reports(store: DirectoryStore) -> None:
    words = "".join("".join(Page(site_of(store).home({})).words).split())
    assert "".join(read(store).answer[0].split()) in words


def test_a_pair_shows_what_differs(store: DirectoryStore, frozen: Plan) -> None:
    a, b = trial_of(frozen, "intent_layer", 0), trial_of(frozen, "none", 0)
    text = site_of(store).pair(a.id, b.id)
    assert "<mark>\nMind the pitfalls.</mark>" in text
    assert '<span class="added">+x = <span class="nu">1</span></span>' in text
    page = Page(text)
    assert page.tables["Tests with their outcome"][1] == ["t::bug", "passed", "failed"]
    assert [row[0] for row in page.tables["Steps of the agent by turn"][1:]] == ["1", "2"]
    assert ["Cost", "$0.25", "$0.25"] in page.tables["Metrics"]


def test_a_trial_has_a_permanent_address_with_every_attempt(store: DirectoryStore, frozen: Plan) -> None:
    trial = trial_of(frozen, "none", 2)
    page = Page(site_of(store).trial(trial.id))
    attempts = page.tables["Attempts, each with its end"]
    assert [row[3] for row in attempts[1:]] == ["lost: evicted said the controller", "failed"]
    assert attempts[1][4] == "node was drained"
    assert "no start record" not in attempts[1][2] + attempts[2][2]
    assert page.tables["Firings of the hooks"][1] == ["Read", "a.py", "AGENTS.md", "text pushed"]
    names = [row[0] for row in page.tables["Files of the bundle"][1:]]
    assert "tests/output.log" in names
    first = site_of(store).trial(trial.id, 1)
    assert "no bundle: this attempt was lost before one was written" in first
    with pytest.raises(NoSuchPage):
        site_of(store).trial(trial.id, 7)


def test_hostile_content_is_shown_and_does_nothing(tmp_path: Path, frozen: Plan) -> None:
    store = write(tmp_path, frozen, lambda trial: fate(trial, HOSTILE))
    a, b = trial_of(frozen, "intent_layer", 0), trial_of(frozen, "none", 0)
    site = site_of(store)
    for text in (site.home({}), site.trials({}), site.trial(a.id), site.pair(a.id, b.id)):
        harmless(text)
    shown = site.trial(a.id)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "␛[31m" in shown
    assert "⟨U+202E⟩evil" in shown


def test_the_check_of_hostile_content_can_fail() -> None:
    for text in ("<p onclick=x>", "<script>1</script>", "<img src=x>", "\u202e"):
        with pytest.raises(AssertionError):
            harmless(text)


def test_hostile_queries_are_harmless(store: DirectoryStore) -> None:
    site = site_of(store)
    words = {
        "task": HOSTILE,
        "condition": HOSTILE,
        "sort": HOSTILE,
        "start": "-1e9",
        "loss": HOSTILE,
        "outcome": "x",
    }
    text = site.trials(words)
    harmless(text)
    assert "No trial is like this." in text
    harmless(site.home({"a": HOSTILE, "b": HOSTILE}))
    for trial in (HOSTILE, "../../x", "a" * 25):
        with pytest.raises(NoSuchPage):
            site.trial(trial)


def test_a_damaged_bundle_is_named_and_the_rest_is_shown(store: DirectoryStore, frozen: Plan) -> None:
    trial = trial_of(frozen, "none", 0)
    path = store.root / "demo" / "attempts" / trial.id / "1" / "bundle.tar.zst"
    path.write_bytes(path.read_bytes()[:-9])
    text = site_of(store).trial(trial.id)
    assert "the bundle is damaged, and is not counted" in text
    assert "Attempts, each with its end" in text
    path.unlink()
    assert "the bundle is missing from the store" in site_of(store).trial(trial.id)
    with pytest.raises(NoSuchPage):
        site_of(store).file(trial.id, 1, "prompt.txt")


def test_damaged_members_are_named(tmp_path: Path, frozen: Plan) -> None:
    odd = {"prompt.txt": b"x", "tests/results.json": b"[{", "trajectory.jsonl": b'{"turn": -1}\nno step\n'}
    store = write(tmp_path, frozen, lambda trial: dataclasses.replace(fate(trial), files=odd))
    text = site_of(store).trial(trial_of(frozen, "none", 0).id)
    assert "tests/results.json is no list of results" in text
    assert "patch.diff is missing" in text
    assert "2 lines of trajectory.jsonl are no steps" in text


def test_a_quarantined_bundle_is_shown_as_such_with_why(store: DirectoryStore, frozen: Plan) -> None:
    trial = trial_of(frozen, "none", 0)
    record = {
        "schema_version": 1,
        "trial": trial.id,
        "attempt": 1,
        "reason": "its pod ran another image",
        "at": 1.0,
        "expected": "0" * 64,
        "found": None,
    }
    put_bytes(store, f"demo/quarantine/{trial.id}/1.json", json.dumps(record).encode())
    text = site_of(store).trial(trial.id)
    assert "Quarantined: this bundle is missing data and is never counted: its pod ran another image" in text


def test_a_record_of_another_version_is_named(store: DirectoryStore, frozen: Plan) -> None:
    trial = trial_of(frozen, "none", 0)
    end = store.root / "demo" / "attempts" / trial.id / "1" / "end.json"
    replaced(end, '"schema_version":1', '"schema_version":9')
    text = site_of(store).trial(trial.id)
    assert "A record cannot be read" in text
    assert f"attempts/{trial.id}/1/end.json" in text


def test_another_trials_bundle_is_refused(store: DirectoryStore, frozen: Plan) -> None:
    mine, other = trial_of(frozen, "none", 0), trial_of(frozen, "none", 1)
    folder = store.root / "demo" / "attempts" / mine.id / "1"
    old = sha256((folder / "bundle.tar.zst").read_bytes())
    data = bundle_bytes(frozen, other, 1)
    (folder / "bundle.tar.zst").write_bytes(data)
    replaced(folder / "end.json", old, sha256(data))
    assert f"the bundle belongs to attempt 1 of {other.id}" in site_of(store).trial(mine.id)


def test_an_interim_campaign_says_so_and_the_look_is_recorded(tmp_path: Path, frozen: Plan) -> None:
    store = write(tmp_path, frozen, lambda trial: fate(trial) if trial.block == 0 else None)
    site = site_of(store)
    text = site.home({})
    assert "Interim: rates, pairs and the answer are made of complete blocks alone." in text
    site.home({})
    assert [path.name for path in (tmp_path / "demo" / "looks").iterdir()] == ["1.json"]
    assert "Make no rates of them" in site.trials({})


def test_a_page_that_waits_for_its_answer_gets_it_while_trials_end(
    tmp_path: Path, frozen: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page asks again once its answer is there: a newer state must not begin the wait, and a look, again."""
    monkeypatch.setattr(campaign_state, "CHECKED_EVERY_S", 0)
    store, go_on = write(tmp_path, frozen, lambda trial: fate(trial) if trial.block == 0 else None), Event()
    watched = WatchedCampaign(store, "demo", lambda found: computed(found) if go_on.wait(60) else never())
    site = CampaignSite(watched, ServedAddresses(), answer_wait_s=0)
    assert "is being computed" in site.home({})
    write_trial(store, frozen, trial_of(frozen, "none", 1), fate(trial_of(frozen, "none", 1)))
    go_on.set()
    wait_until(lambda: watched.progress()["answered"])
    assert "is being computed" not in site.home({})
    assert {path.name for path in (tmp_path / "demo" / "looks").iterdir()} == {"1.json"}
    assert watched.state().stamp == watched.progress()["stamp"], "newer results, once the answer was shown"


def test_an_answer_that_no_page_came_back_for_keeps_no_newer_results_away(
    tmp_path: Path, frozen: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_state, "CHECKED_EVERY_S", 0)
    monkeypatch.setattr(campaign_state, "RELOADED_WITHIN_S", 0)
    store = write(tmp_path, frozen, lambda trial: fate(trial) if trial.block == 0 else None)
    watched = WatchedCampaign(store, "demo", computed)
    before = watched.state()
    wait_until(lambda: watched.progress()["answered"])
    write_trial(store, frozen, trial_of(frozen, "none", 1), fate(trial_of(frozen, "none", 1)))
    assert watched.state().stamp != before.stamp


def test_the_first_screen_lists_the_outcomes_once(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    open_campaign(store, "demo")  # keeps the tables
    listed: list[str] = []
    plain = DirectoryStore.list
    monkeypatch.setattr(DirectoryStore, "list", lambda self, prefix: listed.append(prefix) or plain(self, prefix))
    site = site_of(store)
    assert site.watched.state().tables.source == "tables"
    assert "passed more often" in site.home({})
    assert [prefix for prefix in listed if prefix.startswith("demo/outcomes")] == ["demo/outcomes/"]


def test_a_slow_listing_is_made_less_often(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_state, "CHECKED_EVERY_S", 0.001)
    monkeypatch.setattr(campaign_state, "QUICK_S", 1e-9)
    watched = WatchedCampaign(store, "demo", computed)
    first = watched.counts()
    time.sleep(0.01)
    assert watched.counts() is first


def test_a_campaign_that_does_not_exist_is_waited_for(tmp_path: Path, frozen: Plan) -> None:
    site = site_of(DirectoryStore(tmp_path))
    assert "There is no campaign demo" in site.home({})
    assert site.watched.progress()["exists"] is False
    write(tmp_path, frozen, fate)
    fresh = site_of(DirectoryStore(tmp_path))
    assert "Pass rates" in fresh.home({})
    assert fresh.watched.progress() == {
        "exists": True,
        "terminal": 12,
        "planned": 12,
        "stamp": fresh.watched.counts().stamp,
        "answered": True,
    }


def test_a_folder_has_every_page_and_every_link_of_it_leads_somewhere(
    store: DirectoryStore, tmp_path: Path
) -> None:
    out = tmp_path / "pages"
    number = write_folder(WatchedCampaign(store, "demo", computed), out)
    written = {path for path in out.rglob("*") if path.is_file()}
    assert len(written) == number
    assert len([path for path in written if path.parent.name == "trial"]) == 12
    assert len([path for path in written if path.parent.name == "pair"]) == 4
    links = 0
    for path in written:
        if path.suffix == ".html":
            page = Page(path.read_text())
            for name, value in page.attributes:
                if name in ("href", "src"):
                    links += 1
                    assert value is not None
                    place = (
                        (path.parent / value.partition("#")[0]).resolve() if not value.startswith("#") else path
                    )
                    assert place in written, f"{path}: {value}"
    assert links > 100
    assert "passed more often" in (out / "index.html").read_text()
    with pytest.raises(OperatorError, match="not empty"):
        write_folder(WatchedCampaign(store, "demo", computed), out)


def test_a_folder_of_no_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no such campaign"):
        write_folder(WatchedCampaign(DirectoryStore(tmp_path), "demo", computed), tmp_path / "pages")
    assert not (tmp_path / "pages").exists()
