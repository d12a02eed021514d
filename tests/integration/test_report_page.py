"""The report's page in a real browser: silent, offline, in both schemes, on wide and narrow screens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.browser import Browser
from tests.support.ledgers import Fate, lifelike, lifelike_plan, plan, read, write
from tests.unit.analysis.combining_fixture import ONE, TWO
from tests.unit.analysis.combining_fixture import made as made_campaign
from tests.unit.analysis.report_fixture import made
from tests.unit.analysis.test_report_halving import campaign as halved_campaign
from trialfleet_analysis.combining.make import make_combination
from trialfleet_analysis.combining.render import to_html as combined_html
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.viewer.answer_process import computed
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.embedded import embedded_pairs
from trialfleet_analysis.viewer.folder import write_folder
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.records.verdicts import Verdict

pytestmark = pytest.mark.needs("chromium", "chromedriver")

PRIMARY = Primary(treatment="flat_llm", control="none", effect=0.2)


@dataclass(frozen=True)
class Screen:
    width: int
    dark: bool = False
    paper: bool = False

    @property
    def name(self) -> str:
        return f"{'paper' if self.paper else self.width}-{'dark' if self.dark else 'light'}"


SCREENS = (
    *(Screen(width, dark) for width in (1440, 390) for dark in (False, True)),
    Screen(718, paper=True),
)
# Headings, cells, figures' titles and short labels: what is wider than its place. A `.unseen` one is 1 px wide.
SPILLING = """[...document.querySelectorAll(
        'h1, h2, h3, h4, summary, figcaption, th, td, dt, dd, p, li, .chip, .name, .count, td small, label')]
    .filter(one => one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1)
    .filter(one => getComputedStyle(one).display !== 'inline')
    .filter(one => !['auto', 'scroll'].includes(getComputedStyle(one).overflowX))
    .map(one => one.tagName + ': ' + one.textContent.slice(0, 80))"""
# On a screen a table may scroll, in a frame that does.
CUT_ON_SCREEN = f"""
const wide = document.documentElement.scrollWidth - innerWidth;
const tables = [...document.querySelectorAll('table')].filter(one => one.offsetParent).filter(one => {{
    const frame = one.parentElement, scrolls = ['auto', 'scroll'].includes(getComputedStyle(frame).overflowX);
    return one.scrollWidth > frame.clientWidth + 1 && !scrolls;
}});
return [...(wide > 0 ? ['the page: ' + wide + ' px too wide'] : []),
    ...tables.map(one => 'table: ' + (one.caption || one).textContent.slice(0, 80)), ...{SPILLING}]"""
# Where the heat map of many conditions turns the page, A4 less its margins is 1047 px wide, else 718.
CUT_ON_PAPER = f"""
const tables = [...document.querySelectorAll('table, pre')].filter(one => one.offsetParent)
    .filter(one => one.getBoundingClientRect().right > (one.closest('.dense') ? 1047 : innerWidth) + 1);
return [...tables.map(one => 'table: ' + (one.caption || one).textContent.slice(0, 80)), ...{SPILLING}]"""
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true })"
PAPER = "return getComputedStyle(document.body).backgroundColor"
CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function luminance(color) {
    canvas.fillStyle = '#000'; canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    const part = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(value => value / 255)
        .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
}
function behind(one) {
    const color = getComputedStyle(one).backgroundColor;
    return color === 'rgba(0, 0, 0, 0)' && one.parentElement ? behind(one.parentElement) : color;
}
let least = 21;
const texts = 'main p, main small, main td, main th, .chip, nav a, .count, figcaption';
document.querySelectorAll(texts).forEach(one => {
    const [a, b] = [luminance(getComputedStyle(one).color), luminance(behind(one))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
});
return least"""


def emulate_screen(window: Browser, screen: Screen) -> None:
    """Without loading the page anew."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if screen.dark else "light"}
    size = {"width": screen.width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.tell("Emulation.setDeviceMetricsOverride", size)
    window.tell("Emulation.setEmulatedMedia", {"media": "print" if screen.paper else "", "features": [scheme]})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    fate = lifelike()
    demo = write(folder / "demo", lifelike_plan(reps=3), fate)
    begun = write(folder / "begun", lifelike_plan(reps=3), lambda trial: fate(trial) if trial.block == 0 else None)
    empty = write(
        folder / "empty", lifelike_plan(reps=3), lambda t: fate(t) if t.block + t.position == 0 else None
    )
    plain = plan(("pluggy", "sqlparse", "tomlkit", "wcwidth"), ("none", "flat_llm"), reps=10, primary=PRIMARY)
    passes = write(
        folder / "plain", plain, lambda trial: Fate(Verdict.PASSED if trial.rep % 3 else Verdict.FAILED)
    )
    reports = {
        "plain": read(passes),
        "demo": read(demo, "preamble-vs-pull"),
        "interim": read(begun, "preamble-vs-pull"),
        "empty": read(empty, "preamble-vs-pull"),
        "halved": read(halved_campaign(folder / "halved")),
        "one task": made(1, 2, 5),
        "1,000 cells": made(40, 25, 5),
    }
    written: dict[str, Path] = {}
    for name, report in reports.items():
        written[name] = folder / f"{re.sub(r'[^a-z0-9]', '-', name)}.html"
        written[name].write_text(to_html(report), encoding="utf-8")
    pairs = embedded_pairs(demo, reports["demo"], 2_000_000)
    several = [made_campaign(folder, f"c{number}", passes) for number, passes in enumerate((ONE, TWO))]
    others = {
        "pairs": to_html(reports["demo"], pairs),
        "combined": combined_html(make_combination(several)),
    }
    for name, text in others.items():
        written[name] = folder / f"{name}.html"
        written[name].write_text(text, encoding="utf-8")
    write_folder(WatchedCampaign(demo, "preamble-vs-pull", computed), folder / "viewer")
    return written


def every_page(pages: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """The reports, and those of the viewer's folder: of each kind one."""
    yield from pages.items()
    folder = pages["demo"].parent / "viewer"
    for kind in ("index.html", "trials.html", "trial/*.html", "pair/*.html"):
        yield kind, next(folder.glob(kind))


@pytest.mark.timeout(600)
def test_no_text_is_cut_off_on_any_page_and_files_ask_for_nothing(window: Browser, pages: dict[str, Path]) -> None:
    """Every page in both schemes, on a desk, on a phone and on paper, which does not scroll."""
    found = list[tuple[str, object]]()
    for name, page in every_page(pages):
        window.look_at(page)
        window.run(OPEN)
        for screen in SCREENS:
            emulate_screen(window, screen)
            script = CUT_ON_PAPER if screen.paper else CUT_ON_SCREEN
            found += [(f"{name}, {screen.name}", one) for one in window.run(script)]
        emulate_screen(window, Screen(1280))
        found += [(name, message) for message in window.console()]
        if name in pages:
            found += [(name, asked) for asked in {*window.requested()} - {page.as_uri()}]
    assert found == []


@pytest.mark.parametrize(
    "style", ["table { width: 2000px }", "h1 { padding: 0; width: 9px; white-space: nowrap }"]
)
def test_the_check_for_cut_text_can_fail(
    window: Browser, pages: dict[str, Path], tmp_path: Path, style: str
) -> None:
    """On a screen a table scrolls in its frame."""
    page = without_policy(pages["plain"].read_text()).replace("</head>", f"<style>{style}</style></head>")
    (tmp_path / "cut.html").write_text(page)
    window.look_at(tmp_path / "cut.html")
    window.run(OPEN)
    emulate_screen(window, Screen(390))
    assert bool(window.run(CUT_ON_SCREEN)) == style.startswith("h1")
    emulate_screen(window, Screen(718, paper=True))
    assert window.run(CUT_ON_PAPER) != []
    emulate_screen(window, Screen(1280))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["demo", "1,000 cells"])
def test_text_stands_out_from_its_ground(window: Browser, pages: dict[str, Path], name: str, dark: bool) -> None:
    """At least 4.5 to 1, as WCAG 2 wants it for text of any size."""
    window.look_at(pages[name], dark=dark)
    window.run(OPEN)
    assert window.run(CONTRAST) >= 4.5


def test_the_scheme_is_the_systems_until_one_is_chosen(window: Browser, pages: dict[str, Path]) -> None:
    window.look_at(pages["demo"], dark=True)
    night = window.run(PAPER)
    window.look_at(pages["demo"])
    day = window.run(PAPER)
    assert night != day
    window.run("document.getElementById('theme').click()")
    assert window.run(PAPER) == night
    assert window.run("return document.getElementById('theme').textContent") == "Light"
    window.look_at(pages["one task"])
    assert window.run(PAPER) == night, "the choice holds for the next report"
    window.run("localStorage.clear()")


def test_a_count_leads_to_its_trials_and_these_to_their_command(window: Browser, pages: dict[str, Path]) -> None:
    window.look_at(pages["demo"])
    window.run("document.querySelector('a.count').click()")
    window.wait_for("location.hash && document.querySelector(location.hash).closest('details').open")
    window.wait_for("document.querySelector(`${location.hash} .ids button`)")
    button = "document.querySelector(`${location.hash} .ids button`)"
    trial = window.run(f"return {button}.textContent")
    assert re.fullmatch(r"[a-z2-7]{26}", trial)
    window.run(f"{button}.click()")
    assert window.run("return document.getElementById('said').hidden") is False
    command = window.run("return document.getElementById('command').textContent")
    assert command == f"trialfleet show preamble-vs-pull {trial}"
    assert window.console() == []


def test_the_first_key_reaches_the_way_past_the_contents(window: Browser, pages: dict[str, Path]) -> None:
    window.look_at(pages["demo"])
    window.press("Tab", 9)
    assert window.run("return document.activeElement.className") == "skip"
    assert window.run("return document.activeElement.getBoundingClientRect().top") >= 0


def test_heads_stay_in_sight_while_the_heat_map_scrolls(window: Browser, pages: dict[str, Path]) -> None:
    window.look_at(pages["1,000 cells"], width=900)
    window.run(OPEN)
    moved = window.run(
        """const frame = document.querySelector('.heat'), edge = frame.getBoundingClientRect();
        frame.scrollTop = 300; frame.scrollLeft = 40;
        const head = frame.querySelector('thead th:last-child').getBoundingClientRect();
        const name = frame.querySelector('tbody tr:last-child th').getBoundingClientRect();
        return [frame.scrollTop, head.top - edge.top, frame.scrollLeft, name.left - edge.left]"""
    )
    assert moved[0] == 300
    assert abs(moved[1]) <= 2
    assert moved[2] > 0
    assert abs(moved[3]) <= 2


PLACE = "return document.querySelector('{}').getBoundingClientRect().{} + scrollY"


def test_the_answer_is_on_the_first_screen(window: Browser, pages: dict[str, Path]) -> None:
    """Of a desk, and on two of a phone. Where there is much to doubt, the figures are."""
    for width, height in ((1440, 900), (390, 1800)):
        window.look_at(pages["plain"], width=width)
        assert window.run(PLACE.format(".questions", "top")) <= height, f"at {width} px"
        tall = "return Math.max(...[...document.querySelectorAll('.screen .name')].map(one => one.offsetHeight))"
        assert window.run(tall) <= 60, f"a name is squeezed at {width} px"
    for name in ("demo", "interim"):
        window.look_at(pages[name], width=1440)
        assert window.run(PLACE.format("#figure-helped", "bottom")) <= 900, name
        window.look_at(pages[name], width=390)
        assert window.run(PLACE.format(".doubts li", "bottom")) <= 1800, name


def test_a_link_opens_its_question(window: Browser, pages: dict[str, Path]) -> None:
    for anchor in ("losses", "t0-1"):
        window.look_at(pages["demo"])
        window.run(f"location.hash = '{anchor}'")
        window.wait_for(f"document.getElementById('{anchor}').querySelector('p, figure, table').checkVisibility()")


def test_words_of_statistics_are_explained(window: Browser, pages: dict[str, Path]) -> None:
    window.look_at(pages["demo"])
    said = """return [...document.querySelectorAll('#answer .term')].map(one => {
        one.focus();
        const shown = getComputedStyle(one, '::after').content;
        return [one.textContent, shown, document.getElementById(one.getAttribute('aria-describedby')).textContent];
    })"""
    explained = window.run(said)
    assert any(term.startswith("p ") for term, _, _ in explained)
    assert all(shown.strip('"') == meaning for _, shown, meaning in explained)


def test_a_figure_is_saved_as_it_is_seen(window: Browser, pages: dict[str, Path]) -> None:
    """Its text and shapes, in a file that needs no style sheet."""
    window.look_at(pages["demo"])
    window.run(
        """URL.createObjectURL = blob => {
            blob.text().then(text => { window.saved = text });
            return 'data:,';
        };
        document.querySelector('#figure-difference .save').click()"""
    )
    window.wait_for("window.saved")
    saved = ElementTree.fromstring(window.run("return window.saved"))
    texts = "".join(one.text or "" for one in saved.iter("{http://www.w3.org/2000/svg}text"))
    assert "these tasks" in texts
    assert "better →" in texts
    assert "Save as" not in texts
    dots = list(saved.iter("{http://www.w3.org/2000/svg}circle"))
    assert dots
    assert all(one.get("fill", "").startswith("rgb") and one.get("class") is None for one in dots)
    assert window.console() == []


def test_a_request_would_have_been_seen(window: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    """The control of the test above: a page that asks, without and with the policy."""
    pixel = "http://tracker.example/pixel"
    asking = pages["demo"].read_text().replace("</body>", f'<img src="{pixel}"></body>')
    for name, text in (("open", without_policy(asking)), ("closed", asking)):
        (tmp_path / f"{name}.html").write_text(text)
        window.look_at(tmp_path / f"{name}.html")
        said = window.console()
        assert (pixel in window.requested()) is (name == "open")
        assert any("Content Security Policy" in message for message in said) is (name == "closed")


def test_the_policy_stops_every_other_script(window: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    """The escaping has a second line behind it."""
    script = "<script>document.title = 'owned'</script>"
    injected = pages["demo"].read_text().replace("</body>", f"{script}</body>")
    for text, owned in ((injected, False), (without_policy(injected), True)):
        (tmp_path / "injected.html").write_text(text)
        window.look_at(tmp_path / "injected.html")
        assert (window.run("return document.title") == "owned") is owned
    window.console()


def without_policy(text: str) -> str:
    bare, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert found == 1
    return bare


def test_without_its_script_the_page_still_lists_every_trial(window: Browser, pages: dict[str, Path]) -> None:
    window.tell("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        window.look_at(pages["demo"])
        assert window.run("return document.getElementById('theme').hidden") is True
        listed = window.run("return [...document.querySelectorAll('.ids')].map(one => one.textContent).join(' ')")
    finally:
        window.tell("Emulation.setScriptExecutionDisabled", {"value": False})
    assert len(set(listed.split())) == 90
