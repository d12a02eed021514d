"""The documentation as a site: built strictly, and read in a real browser without a network."""

from __future__ import annotations

import doctest
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tests.support.browser import Browser

pytestmark = [pytest.mark.needs("make", "npm", "chromium", "chromedriver"), pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"([^\"]+)\"|<link[^>]* href=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site() -> Path:
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build/site"


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    loaded = {(page.name, one or two) for page in pages for one, two in LOADED.findall(page.read_text())}
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    assert [where for where in loaded if re.match(r"\w+:|//", where[1]) and not where[1].startswith("data:")] == []


@pytest.mark.parametrize("page", ["index", "explanation/architecture", "reference/python-api", "reference/cli"])
def test_a_page_is_silent_and_fits_the_screen(site: Path, window: Browser, page: str) -> None:
    for width, dark in ((1280, False), (360, True)):
        window.look_at(site / f"{page}.html", width=width, dark=dark)
        window.wait_for("document.querySelector('.md-search__input')")
        assert window.console() == []
        assert [one for one in window.requested() if not one.startswith(("file:", "data:", "blob:"))] == []
        assert window.run("return document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_picture_of_the_architecture_is_drawn(site: Path, window: Browser) -> None:
    window.look_at(site / "explanation/architecture.html")
    window.wait_for("document.querySelector('.diagram svg')")
    assert "dispatcher" in window.run("return document.querySelector('.diagram svg').textContent")


def test_the_search_works_without_a_server(site: Path, window: Browser) -> None:
    window.look_at(site / "index.html")
    window.wait_for("document.querySelector('.md-search__input')")
    window.run("""
        const field = document.querySelector('.md-search__input');
        field.focus(); field.value = 'Miettinen'; field.dispatchEvent(new Event('input', {bubbles: true}));
        field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))""")
    window.wait_for("document.querySelector('.md-search-result__link')")
    found = window.run("return [...document.querySelectorAll('.md-search-result__link')].map(one => one.href)")
    assert any("explanation/statistics.html" in each for each in found)


def test_functions_are_shown_with_their_examples(site: Path) -> None:
    page = (site / "reference/python-api.html").read_text()
    for name in ("intervals.wilson", "comparisons.fisher.fisher", "sequential.monitor", "power.required_reps"):
        assert f'id="trialfleet_statistics.{name}"' in page
    assert "<blockquote>" not in page


def test_the_repositorys_files_that_pages_name_are_there(site: Path) -> None:
    shown = (site / "repository/examples/agents/goose.yaml.html").read_text()
    assert "goose" in shown
    assert "task-file.json" in (site / "reference/schema/index.html").read_text()


def test_examples_of_the_hooks_hold() -> None:
    hooks = runpy.run_path(str(ROOT / "docs/site/hooks.py"))
    ran = doctest.DocTestRunner()
    for name in ("navigation", "outside"):
        for found in doctest.DocTestFinder().find(hooks[name], name, module=False, globs=hooks):
            ran.run(found)
    assert (ran.failures, ran.tries) == (0, 2)
