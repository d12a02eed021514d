"""The viewer in a real browser on what is large: 10,000 trials, and lines of 16 MB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.bench_tables import keep_only, planned
from tests.support.browser import Browser
from tests.support.ledgers import Fate, plan, trials, write
from tests.support.viewer import Viewing, viewing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.needs("chromium", "chromedriver")]
ROWS = "[...document.querySelectorAll('#rows tbody tr')]"
TOTAL = "document.querySelector('#rows [role=status]').textContent"


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewing]:
    """20 tasks under 5 conditions, 100 reps, with kept tables and no answer yet."""
    root = tmp_path_factory.mktemp("large")
    keep_only(root, planned(tasks=20, conditions=5, trials=10_000))
    with viewing(str(root / "demo")) as running:
        yield running


def test_from_the_first_screen_to_a_trial_and_back(window: Browser, viewer: Viewing) -> None:
    window.visit(viewer.address)
    window.wait_for("document.querySelectorAll('td.cell a').length === 100")
    assert window.run("return document.getElementById('counts').textContent") == "10,000 of 10,000 trials over"
    window.wait_for("document.body.dataset.answered === 'yes'")
    assert "condition-1" in window.run("return document.querySelector('.answer').textContent")

    window.run("document.querySelector('td.cell a').click()")
    window.wait_for(f"location.pathname === '/trials' && {ROWS}.length === 100")
    window.run("document.querySelector('[name=outcome]').value = 'passed'")
    window.run("document.querySelector('form.filters').requestSubmit()")
    window.wait_for("location.search.includes('outcome=passed') && document.getElementById('rows')")
    passed = window.run(f"return {ROWS}.length")
    assert 0 < passed < 100
    assert passed == len(viewer.get("/trials.csv" + window.run("return location.search"))[2].splitlines()) - 1
    listed = window.run("return location.href")

    window.run("document.querySelector('#rows tbody a').click()")
    window.wait_for("location.pathname.startsWith('/trial/') && document.querySelector('h1')")
    window.run("history.back()")
    window.wait_for(f"location.pathname === '/trials' && {ROWS}.length === {passed}")
    assert window.run("return location.href") == listed
    window.run("history.go(-2)")
    window.wait_for("location.pathname === '/' && document.querySelectorAll('td.cell a').length === 100")

    window.run("document.querySelector('nav a[href=\"/trials\"]').click()")
    window.wait_for(f"{ROWS}.length === 500 && {TOTAL}.startsWith('10,000 trials')")
    window.run("document.querySelector('.pages a').click()")
    window.wait_for(f"location.search === '?start=500' && {ROWS}.length === 500")
    window.run("history.go(-2)")
    window.wait_for("location.pathname === '/' && document.querySelectorAll('td.cell a').length === 100")
    assert window.console() == []
    assert all(url.startswith(f"{viewer.origin}/") for url in window.requested() if not url.startswith("data:"))


LINE = b"<u>x\x1b[31m" * (16 * 2**20 // 9)
LONG = {
    "prompt.txt": LINE[: 2**20],
    "patch.diff": b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+" + LINE,
    "trajectory.jsonl": b'{"turn": 1, "kind": "run", "tool": "Bash", "detail": "%s"}' % LINE.replace(b"\x1b", b""),
    "tests/results.json": b'[{"id": "%s", "outcome": "failed"}]' % LINE[: 2**20].replace(b"\x1b", b""),
}


def test_lines_of_16_mb_are_cut(window: Browser, tmp_path: Path) -> None:
    frozen = plan(reps=1)
    a, b = (trial for trial in trials(frozen) if trial.task == "alpha")
    write(tmp_path / "runs", frozen, lambda trial: Fate(files=LONG if trial.id == a.id else {}))
    with viewing(str(tmp_path / "runs" / "demo")) as viewer:
        window.visit(viewer.address)
        window.wait_for("document.querySelector('.answer')")
        for path, shown in ((f"/pair/{a.id}/{b.id}", "<u>x␛[31m"), ("/trials?text=xyz", "all 4 trials searched")):
            assert len(viewer.get(path)[2]) < 8 * 2**20, path
            window.visit(viewer.origin + path, width=360)
            assert shown in window.run("return document.querySelector('main').textContent")
            assert window.run("return document.documentElement.scrollWidth - innerWidth") <= 0
            assert window.run("return document.querySelectorAll('main u').length") == 0
            assert window.console() == []
        window.leave()
