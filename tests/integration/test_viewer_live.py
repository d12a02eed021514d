"""The viewer on a campaign that runs: in a real browser, while records are written as runners write them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.ledgers import Fate, lifelike_plan, put, write_plan, write_running, write_trial
from tests.support.viewer import Viewing, viewing
from trialfleet_ledger import trial_order
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Amendment
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.needs("chromium", "chromedriver")]

NAME = "preamble-vs-pull"
EVIL = b"<img src=x onerror=\"document.title='owned'\">\x1b]0;owned\x07 \xe2\x80\xaeevil"
TOO_WIDE = "return document.documentElement.scrollWidth - innerWidth"
NOW = "document.querySelector('#now').textContent"


@pytest.fixture
def frozen() -> Plan:
    return lifelike_plan(reps=2)


@pytest.fixture
def order(frozen: Plan) -> list[Trial]:
    return [one.record() for one in trial_order.trials(frozen)]


@pytest.fixture
def store(tmp_path: Path, frozen: Plan, order: list[Trial]) -> DirectoryStore:
    """The first block has ended; one trial of the second runs and has printed something hostile."""
    store = write_plan(tmp_path / "runs", frozen)
    for trial in order[:30]:
        write_trial(store, frozen, trial, Fate(metrics=Metrics(turns=3, cost_usd=0.5)))
    write_running(store, NAME, order[30], 1, b"\n".join([b"step %d" % n for n in range(40)] + [EVIL]))
    return store


@pytest.fixture
def running(store: DirectoryStore) -> Iterator[Viewing]:
    with viewing(NAME, "--store", str(store.root)) as viewer:
        yield viewer


def test_what_runs_is_shown_and_followed(
    window: Browser, running: Viewing, store: DirectoryStore, frozen: Plan, order: list[Trial]
) -> None:
    window.visit(running.address)
    window.wait_for(f"document.querySelector('#now') && {NOW}.includes('30 of 60 trials over')")
    said = window.run(f"return {NOW}")
    for words in (
        "1 running",
        "$15.00 for 30 measured trials",
        "no attempt lost",
        "Newest ends",
        "left at this",
    ):
        assert words in said, words
    first = order[30]
    assert f"{first.task} × {first.condition}, rep {first.rep}" in said.replace("\u200b", "")
    tail = window.run("return document.querySelector('.running pre').textContent")
    assert "step 39" in tail
    assert "step 10" not in tail
    assert "<img src=x" in tail
    assert "⟨U+202E⟩evil" in tail
    write_trial(store, frozen, order[31], Fate(verdict=Verdict.FAILED))
    store.put(f"{NAME}/attempts/{first.id}/1/live.log.zst", b"no log")
    window.wait_for(f"{NOW}.includes('31 of 60 trials over') && {NOW}.includes('the live log cannot be read')")
    window.wait_for("!document.getElementById('newer').hidden")
    assert "60 trials" in window.run("return document.getElementById('counts').textContent")
    for width in (360, 1280):
        window.tell("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False,
        })  # fmt: skip
        assert window.run(TOO_WIDE) <= 0
    assert window.run("return document.title") == f"{NAME} · trialfleet"
    assert [said for said in window.console() if running.origin in said] == []


def test_a_running_trials_page_follows_its_output(window: Browser, running: Viewing, order: list[Trial]) -> None:
    window.visit(running.address)
    window.wait_for("document.querySelector('.running a')")
    window.run("document.querySelector('.running a').click()")
    window.wait_for("location.pathname.startsWith('/trial/') && document.querySelector('#output pre')")
    assert "step 0" in window.run("return document.querySelector('#output pre').textContent")
    assert order[30].task in window.run("return document.title")
    assert window.run("return document.querySelectorAll('main img').length") == 0
    assert [said for said in window.console() if running.origin in said] == []


def test_a_campaign_that_is_extended_while_it_is_watched(
    window: Browser, running: Viewing, store: DirectoryStore
) -> None:
    window.visit(running.address)
    window.wait_for(f"document.querySelector('#now') && {NOW}.includes('30 of 60')")
    put(store, f"{NAME}/amendments/1.json", Amendment(number=1, at=1, reps=3, after_look=True))
    window.wait_for(f"{NOW}.includes('30 of 90 trials over')")
    window.wait_for("!document.getElementById('newer').hidden")
    window.run("document.querySelector('#newer a').click()")
    window.wait_for("document.getElementById('counts').textContent.startsWith('30 of 90')")


def test_a_store_that_goes_away_and_comes_back(window: Browser, running: Viewing, store: DirectoryStore) -> None:
    window.visit(running.address)
    window.wait_for(f"document.querySelector('#now') && {NOW}.includes('30 of 60')")
    away = store.root.with_name("away")
    store.root.rename(away)
    window.wait_for("!document.getElementById('away').hidden")
    assert "asks again" in window.run("return document.getElementById('away').textContent")
    assert "30 of 60" in window.run(f"return {NOW}"), "what was known stays on the page"
    away.rename(store.root)
    window.wait_for("document.getElementById('away').hidden")
    time.sleep(0.1)
    assert running.process.poll() is None
