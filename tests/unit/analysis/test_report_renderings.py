"""HTML, Markdown, JSON and terminal: the same numbers, safe against what others wrote."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.analysis.ledger_fixture import (
    MID_RUN,
    NOW,
    Fate,
    lifelike,
    lifelike_plan,
    plan,
    put,
    read,
    write,
)
from trialfleet_analysis.report.document import Report, to_json
from trialfleet_analysis.report.hostile import plain
from trialfleet_analysis.report.html.document import to_html
from trialfleet_analysis.report.html.markup import h, page
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.terminal import show
from trialfleet_runner.campaign import Halt
from trialfleet_runner.contract import Loss, LossClass, Trial

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>"
    + "\x1b]0;owned\x07\x1b[2J|`_*[x](http://e.vil)\u202eabc\n# h"
)


class Page(HTMLParser):
    """What a browser would make of it: tags, attributes, text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def lively(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("lively")
    return read(write(folder, lifelike_plan(reps=4), lifelike()), "preamble-vs-pull")


@pytest.fixture
def hostile(tmp_path: Path) -> Report:
    evil = Loss(loss=LossClass.SETUP, message=EVIL, agent_started=False)

    def fate(trial: Trial) -> Fate:
        return Fate(losses=(evil, MID_RUN), warnings=(EVIL,))

    store = write(tmp_path, plan(("a", "b", "c"), banner=EVIL), fate)
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="a", reason=EVIL))
    return read(store)


def shown(report: Report, *, width: int = 100) -> str:
    stream = io.StringIO()
    show(report, Console(file=stream, width=width, force_terminal=False))
    return stream.getvalue()


def test_html_has_no_script_and_asks_for_nothing(lively: Report) -> None:
    parsed = Page(to_html(lively))
    assert not {"script", "link", "iframe", "img", "object", "embed", "form", "base"} & set(parsed.tags)
    assert all(not name.startswith("on") for name, _ in parsed.attributes)
    links = [value for name, value in parsed.attributes if name in ("href", "src", "srcset", "action")]
    assert links
    assert all(value is not None and value.startswith("#") for value in links)
    assert "url(" not in to_html(lively)
    assert "@import" not in to_html(lively)
    contents = [value or "" for name, value in parsed.attributes if name == "content"]
    [policy] = [value for value in contents if "default-src" in value]
    assert policy.startswith("default-src 'none'")


def test_html_links_lead_somewhere(lively: Report) -> None:
    parsed = Page(to_html(lively))
    anchors = {value for name, value in parsed.attributes if name == "id"}
    assert {value.removeprefix("#") for name, value in parsed.attributes if name == "href" and value} <= anchors
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_hostile_text_stays_text_in_html(hostile: Report) -> None:
    text = to_html(hostile)
    parsed = Page(text)
    assert "script" not in parsed.tags
    assert "img" not in parsed.tags
    assert not any(name == "onerror" for name, _ in parsed.attributes)
    assert "<script>alert(1)</script>" in "".join(parsed.words)  # shown, not run
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)


def test_hostile_text_stays_text_in_markdown(hostile: Report) -> None:
    text = to_markdown(hostile)
    assert "<script" not in text
    assert "<img" not in text
    assert "[x](" not in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    rows = [line for line in text.splitlines() if line.startswith("| Warnings of the bundles")]
    assert rows
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)
    assert not any(line.startswith("# h") for line in text.splitlines())


def test_hostile_text_cannot_steer_the_terminal(hostile: Report) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", shown(hostile))


def test_same_report_same_bytes(tmp_path: Path) -> None:
    texts = set()
    for name in ("one", "two"):
        report = read(write(tmp_path / name, lifelike_plan(reps=2), lifelike()), "preamble-vs-pull")
        texts.add((to_html(report), to_markdown(report), to_json(report)))
    assert len(texts) == 1


def test_json_carries_every_trial_unrounded(lively: Report) -> None:
    plain_json = json.loads(to_json(lively))
    assert len(plain_json["trials"]) == len(lively.trials) == 120
    first = plain_json["trials"][0]
    assert re.fullmatch(r"[0-9a-f]{64}", first["bundle_sha256"])
    assert first["bundle"].endswith("bundle.tar.zst")
    listed = {trial for cell in plain_json["cells"] for trial in cell["trials"]}
    assert listed == {row["trial"] for row in plain_json["trials"]}
    estimate = plain_json["conditions"][0]["rate"]["estimate"]
    assert estimate == lively.conditions[0].rate.estimate
    assert "trials" not in json.loads(to_json(lively, trials=False))


def test_all_renderings_show_the_same_rates(lively: Report) -> None:
    html, markdown, terminal = " ".join(Page(to_html(lively)).words), to_markdown(lively), shown(lively, width=140)
    for result in lively.conditions:
        assert result.rate.estimate is not None
        rate = f"{100 * result.rate.estimate:.1f}%"
        assert rate in html
        assert re.search(rf"\| {re.escape(result.condition)} \| {rate}", markdown)
        assert re.search(rf"{re.escape(result.condition)} +{rate}", terminal)
    for text in (html, markdown, terminal):
        assert lively.banner is not None
        assert lively.banner[:40] in text
        assert lively.answer[0] in " ".join(text.split())


def test_every_loss_is_shown(lively: Report) -> None:
    assert lively.losses
    terminal = shown(lively, width=140)
    for entry in lively.losses:
        stage = entry.stage.value.replace("_", " ")
        assert re.search(rf"{entry.condition} +{entry.loss.value} +{stage} +{entry.attempts}\b", terminal)
        kind = entry.loss.value.replace("_", " ")
        assert f"| {entry.condition} | {kind} | {stage} | {entry.attempts} |" in to_markdown(lively)


def test_fits_eighty_columns(lively: Report) -> None:
    assert max(len(line) for line in shown(lively, width=80).splitlines()) <= 80


def test_a_report_of_nothing_complete_renders(tmp_path: Path) -> None:
    store = write(tmp_path, plan(), lambda trial: Fate() if trial.position == 0 and trial.block == 0 else None)
    report = read(store)
    assert "Interim" in to_markdown(report)
    assert "Nothing to count" in " ".join(Page(to_html(report)).words)
    assert "nan" not in (to_html(report) + to_markdown(report) + shown(report)).lower().split()


def test_one_task_one_condition_one_rep(tmp_path: Path) -> None:
    report = read(write(tmp_path, plan(("a",), ("none",), reps=1), lambda trial: Fate()))
    for text in (to_html(report), to_markdown(report), shown(report), to_json(report)):
        assert text
    assert report.conditions[0].rate.estimate == 1.0


def test_only_the_style_sheet_is_not_escaped() -> None:
    with pytest.raises(ValueError, match="markup"):
        page(title="t", style="</style><script>", body=[h("p")])


def test_plain_keeps_ordinary_text() -> None:
    assert plain("ünï → “text” 日本語") == "ünï → “text” 日本語"
    assert plain("a\u200bb\x00c\u2066d\ud800") == "a�b�c�d�"
