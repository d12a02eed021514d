"""The search for a text in the agents' steps: by HTTP, and in a real browser while it continues."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.browser import Browser
from tests.support.ledgers import Fate, plan, trials, write
from tests.support.viewer import Viewing, viewing
from trialfleet_ledger.records.trial import Trial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EVIL = "<img src=x onerror=\"document.title='owned'\">"
FROZEN = plan(reps=50)  # 200 trials
ORDER = trials(FROZEN)
STEPS = 1_500  # so many that one request does not search all trials
ROWS = "document.querySelectorAll('#rows tbody tr').length"


def fate(trial: Trial) -> Fate:
    """The last trial says it, and so does the first, in its last turn."""
    said = [{"turn": n, "kind": "run", "tool": "Bash", "detail": "all is well " * 20} for n in range(1, STEPS)]
    if trial in (ORDER[0], ORDER[-1]):
        said.append({"turn": STEPS, "kind": "message", "tool": "", "detail": f"and then: {EVIL}"})
    return Fate(files={"trajectory.jsonl": "\n".join(map(json.dumps, said)).encode()})


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewing]:
    root = tmp_path_factory.mktemp("searched")
    write(root, FROZEN, fate)
    with viewing(str(root / "demo")) as running:
        yield running


def test_by_http_a_part_is_named_and_the_csv_is_whole(viewer: Viewing) -> None:
    first = viewer.get("/trials?text=ALL+IS+WELL")[2].decode()
    assert "of 200 trials searched so far" in first
    assert "CSV of these" not in first
    assert len(viewer.get("/trials.csv?text=ALL+IS+WELL")[2].splitlines()) == 201
    assert "all 200 trials searched" in viewer.get("/trials?text=ALL+IS+WELL")[2].decode()
    assert viewer.get("/trials/found?text=%00%1b%22")[0] == 200


@pytest.mark.needs("chromium", "chromedriver")
def test_in_a_browser_the_search_continues_to_its_end(window: Browser, viewer: Viewing) -> None:
    window.visit(viewer.address)
    window.wait_for("document.querySelector('.answer')")
    window.visit(f"{viewer.origin}/trials")
    window.run("document.querySelector('[name=text]').value = arguments[0]".replace("arguments[0]", repr(EVIL)))
    window.run("document.querySelector('form.filters').requestSubmit()")
    window.wait_for("document.querySelector('#rows').textContent.includes('searched so far')")
    window.wait_for("document.querySelector('#rows').textContent.includes('all 200 trials searched')")
    assert window.run(f"return {ROWS}") == 2
    assert EVIL in window.run("return document.querySelector('#rows').textContent")
    assert "owned" not in window.run("return document.title")
    window.run("document.querySelector('#rows tbody td a').click()")
    window.wait_for(f"location.hash === '#turn-{STEPS}' && document.querySelector(':target')")
    window.run("history.back()")
    window.wait_for("document.querySelector('[name=text]')")
    assert window.run("return document.querySelector('[name=text]').value") == EVIL
    assert window.console() == []
