"""axe-core finds nothing serious on any kind of page, in light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.programs import npm_folder
from tests.support.browser import Browser
from tests.support.ledgers import MID_RUN, Fate, lifelike, lifelike_plan, write_plan, write_running, write_trial
from tests.support.real_campaign import ran
from tests.support.viewer import Viewing, viewing
from trialfleet_analysis.report.make import make_report, write_report
from trialfleet_analysis.viewer.embedded import embedded_pairs
from trialfleet_ledger import trial_order
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.store.directory import DirectoryStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.needs("chromium", "chromedriver", "axe-core"),
]
NAME = "preamble-vs-pull"
# Every page in both widths and both schemes, and over the pages every width in every scheme.
SCREENS = (((1280, False), (360, True)), ((1280, True), (360, False)))
SERIOUS = """
return axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + ": " + one.nodes.slice(0, 3)
    .map(node => node.target + " " + node.failureSummary).join(" | ")))
"""
STEPS = b'{"turn": 1, "kind": "read", "tool": "Read", "path": "AGENTS.md", "detail": "a\\nb"}'
PATCH = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 0  # no\n+def f(): return '1'\n"
FILES = {
    "prompt.txt": b"Fix the bug.",
    "patch.diff": PATCH,
    "trajectory.jsonl": STEPS,
    "tests/results.json": b'[{"id": "t::bug", "outcome": "failed"}]',
    "tests/output.log": b"1 test",
}


@pytest.fixture(scope="module")
def axe() -> str:
    return (npm_folder("axe-core") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def order() -> list[Trial]:
    return [one.record() for one in trial_order.trials(lifelike_plan(reps=2))]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, order: list[Trial]) -> DirectoryStore:
    """Runs: one block has ended, with losses; one trial prints."""
    frozen, fate = lifelike_plan(reps=2), lifelike()
    store = write_plan(tmp_path_factory.mktemp("runs"), frozen)
    write_trial(store, frozen, order[0], Fate(losses=(MID_RUN,), files=FILES))
    for trial in order[1:30]:
        write_trial(store, frozen, trial, fate(trial))
    write_running(store, NAME, order[30], 1, b"step 1")
    return store


@pytest.fixture(scope="module")
def running(window: Browser, store: DirectoryStore) -> Iterator[Viewing]:
    """The window has its cookie."""
    with viewing(NAME, "--store", str(store.root)) as viewer:
        window.visit(viewer.address)
        window.wait_for("document.querySelector('main')")
        yield viewer


def serious(window: Browser, axe: str) -> Any:
    window.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    window.run(axe)
    return window.run(SERIOUS)


@pytest.mark.parametrize("page", ["first", "list", "trial", "pair", "running", "nothing"])
def test_nothing_serious_on_a_page_of_the_viewer(
    window: Browser, running: Viewing, axe: str, order: list[Trial], page: str
) -> None:
    paths = {
        "first": "/",
        "list": "/trials",
        "trial": f"/trial/{order[0].id}",
        "pair": f"/pair/{order[0].id}/{order[1].id}",
        "running": f"/trial/{order[30].id}",
        "nothing": "/nothing",
    }
    for width, dark in SCREENS[list(paths).index(page) % 2]:
        window.visit(running.origin + paths[page], width=width, dark=dark)
        if page == "first":
            window.wait_for("document.querySelector('.running')")
            window.wait_for("document.body.dataset.answered === 'yes'")
        assert serious(window, axe) == [], (width, dark)


def test_nothing_serious_while_a_campaign_is_waited_for(window: Browser, axe: str, tmp_path: Path) -> None:
    with viewing(NAME, "--store", str(tmp_path)) as viewer:
        window.visit(viewer.address)
        window.wait_for("document.querySelector('main')")
        for width, dark in SCREENS[0]:
            window.visit(f"{viewer.origin}/", width=width, dark=dark)
            assert window.run("return document.querySelector('h1').textContent") == "Waiting"
            assert serious(window, axe) == [], (width, dark)
        window.leave()


def test_nothing_serious_in_the_folder(
    window: Browser, store: DirectoryStore, axe: str, order: list[Trial], tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    ran("view", NAME, "--store", str(store.root), "--bundle", str(folder), cwd=tmp_path)
    pair = next((folder / "pair").iterdir())
    pages = (folder / "index.html", folder / "trials.html", folder / f"trial/{order[0].id}.html", pair)
    for number, page in enumerate(pages, 1):
        for width, dark in SCREENS[number % 2]:
            window.look_at(page, width=width, dark=dark)
            assert serious(window, axe) == [], (page.name, width, dark)


def test_nothing_serious_in_the_report(window: Browser, store: DirectoryStore, axe: str, tmp_path: Path) -> None:
    report = make_report(store, NAME, verify=False, now=1)
    written = write_report(report, tmp_path, partial(embedded_pairs, store, report))
    assert 'id="pairs"' in written.html.read_text(encoding="utf-8")
    for width, dark in SCREENS[0]:
        window.look_at(written.html, width=width, dark=dark)
        assert serious(window, axe) == [], (width, dark)


def test_the_check_can_fail(window: Browser, axe: str, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text('<!doctype html><p style="color:#ccc;background:#fff">pale<img src="x">')
    window.look_at(tmp_path / "bad.html")
    assert {one.split(":")[0] for one in serious(window, axe)} >= {"color-contrast", "image-alt", "html-has-lang"}
