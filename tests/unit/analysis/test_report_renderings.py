"""HTML, Markdown, JSON and terminal: the same numbers, safe against what others wrote."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support.ledgers import MID_RUN, NOW, Fate, lifelike, lifelike_plan, plan, put, read, write
from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.html.markup import h, page
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>"
    + "\x1b]0;owned\x07\x1b[2J|`_*[x](http://e.vil)\u202eabc\n# h"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    evil = Loss(loss=LossClass.SETUP, message=EVIL, agent_started=False)

    def fate(trial: Trial) -> Fate:
        return Fate(losses=(evil, MID_RUN), warnings=(EVIL,))

    store = write(tmp_path_factory.mktemp("hostile"), plan(("a", "b", "c"), reps=2, banner=EVIL), fate)
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="a", reason=EVIL))
    return read(store)


def test_html_asks_for_nothing_and_runs_only_its_own_script(lively: Report) -> None:
    text = to_html(lively)
    parsed = Page(text)
    assert not {"link", "iframe", "img", "object", "embed", "form", "base"} & set(parsed.tags)
    assert parsed.tags.count("script") == parsed.tags.count("style") == 1
    assert all(not name.startswith("on") and name != "style" for name, _ in parsed.attributes)
    links = [value for name, value in parsed.attributes if name in ("href", "src", "srcset", "action")]
    assert links
    assert all(value is not None and value.startswith("#") for value in links)
    assert "url(" not in text
    assert "@import" not in text


def test_the_policy_names_its_style_and_its_script_by_hash(lively: Report) -> None:
    text = to_html(lively)
    contents = [value or "" for name, value in Page(text).attributes if name == "content"]
    [policy] = [value for value in contents if "default-src" in value]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        [inside] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        assert f"'sha256-{b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'" in policy


def test_html_links_lead_somewhere(lively: Report) -> None:
    parsed = Page(to_html(lively))
    anchors = {value for name, value in parsed.attributes if name == "id"}
    assert {value.removeprefix("#") for name, value in parsed.attributes if name == "href" and value} <= anchors
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_hostile_text_stays_text_in_html(hostile: Report) -> None:
    text = to_html(hostile)
    parsed = Page(text)
    assert parsed.tags.count("script") == 1  # its own
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
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert any("alert" in rows for rows in tables)
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1
    assert not any(line.startswith("# h") for line in text.splitlines())


def test_hostile_text_cannot_steer_the_terminal(hostile: Report) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", on_terminal(hostile, width=100))


def test_same_report_same_bytes(tmp_path: Path) -> None:
    texts: set[tuple[str, str, str]] = set()
    for name in ("one", "two"):
        report = read(write(tmp_path / name, lifelike_plan(reps=1), lifelike()), "preamble-vs-pull")
        texts.add((to_html(report), to_markdown(report), to_json(report)))
    assert len(texts) == 1


def test_json_carries_every_trial_unrounded(lively: Report) -> None:
    plain_json = json.loads(to_json(lively))
    listed = [trial for cell in plain_json["cells"] for trial in cell["trials"]]
    assert len(set(listed)) == len(listed) == 120
    assert all(len(cell["trials"]) == len(cell["endings"]) == 4 for cell in plain_json["cells"])
    estimate = plain_json["conditions"][0]["these_tasks"]["estimate"]
    assert estimate == lively.conditions[0].these_tasks.estimate
    assert all("trials" not in cell for cell in json.loads(to_json(lively, trials=False))["cells"])


def test_all_renderings_show_the_same_rates(lively: Report) -> None:
    html, markdown, terminal = (
        "".join(Page(to_html(lively)).words),
        to_markdown(lively),
        on_terminal(lively, width=140),
    )
    for result in lively.conditions:
        rate = f"{100 * result.these_tasks.estimate:.1f}%"
        assert rate in html
        assert re.search(rf"\| {re.escape(result.condition)} \| {rate}", markdown)
        assert re.search(rf"{re.escape(result.condition)} +{rate}", terminal)
    for text in (html, markdown, terminal):
        assert lively.banner[:40] in text
        assert lively.answer[0] in " ".join(text.split())


def test_every_loss_is_shown(lively: Report) -> None:
    assert lively.losses
    terminal, markdown = on_terminal(lively, width=200), to_markdown(lively)
    for entry in lively.losses:
        loss, stage = (name.replace("_", " ") for name in (entry.loss.value, entry.stage.value))
        assert re.search(rf"{loss} +{stage} .*\b{entry.condition} {entry.attempts}\b", terminal)
    total = sum(entry.attempts for entry in lively.losses if entry.loss is LossClass.EVICTED)
    assert re.search(rf"evicted +mid run +{total}\b", terminal)
    assert "| Condition | evicted, while the agent ran: informative |" in markdown


def test_fits_eighty_columns(lively: Report) -> None:
    assert max(len(line) for line in on_terminal(lively, width=80).splitlines()) <= 80


def test_a_report_of_nothing_complete_renders(tmp_path: Path) -> None:
    store = write(tmp_path, plan(), lambda trial: Fate() if trial.position == 0 and trial.block == 0 else None)
    report = read(store)
    assert "Interim" in to_markdown(report)
    assert "Nothing to count" in " ".join(Page(to_html(report)).words)
    assert "nan" not in (to_html(report) + to_markdown(report) + on_terminal(report, width=100)).lower().split()


def test_one_task_one_condition_one_rep(tmp_path: Path) -> None:
    report = read(write(tmp_path, plan(("a",), ("none",), reps=1), lambda trial: Fate()))
    for text in (to_html(report), to_markdown(report), on_terminal(report, width=100), to_json(report)):
        assert text
    assert report.conditions[0].these_tasks.estimate == 1.0


def test_only_the_style_sheet_is_not_escaped() -> None:
    with pytest.raises(ValueError, match="markup"):
        page(title="t", style="</style><script>", script="", body=[h("p")])
    with pytest.raises(ValueError, match="markup"):
        page(title="t", style="", script="</script>", body=[h("p")])
