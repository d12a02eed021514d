"""The comment on a pull request: short, the answer first, harmless whatever others wrote."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ledgers import MID_RUN, Fate, plan, read, write
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.github import MAX_LINES, to_github
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass

LINK = "https://ci.example/runs/7#artifacts"
EVIL = "<img src=x onerror=alert(1)> @everyone team/repo#12 GH-3 https://e.vil www.e.vil [x](http://e.vil)\n\n# h"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    def fate(trial: Trial) -> Fate:
        evil = Loss(loss=LossClass.SETUP, message=EVIL, agent_started=False)
        return Fate(losses=(evil, MID_RUN), warnings=(EVIL,))

    return read(write(tmp_path_factory.mktemp("hostile"), plan(("a", "b", "c"), reps=2, banner=EVIL), fate))


def test_the_answer_is_first_and_the_link_last(lively: Report) -> None:
    lines = to_github(lively, LINK).splitlines()
    assert lines[0].startswith("**")
    assert lively.answer[0].split()[0] in lines[0]
    assert lines[-1].endswith(f"[Full report]({LINK}).")
    assert "| Declared contrast |" in "\n".join(lines)
    assert len(lines) <= MAX_LINES
    assert "Full report" not in to_github(lively)


@pytest.mark.parametrize("number", [0, 1, 9, 60])
def test_no_comment_is_longer(lively: Report, number: int) -> None:
    many = replace(lively, cautions=tuple(f"caution {n}" for n in range(number)), answer=("Yes.",) * 40)
    lines = to_github(many, LINK).splitlines()
    assert len(lines) <= MAX_LINES
    shown = sum(line.startswith("- caution") for line in lines)
    left = re.search(r"^- … and (\d+) more", "\n".join(lines), re.MULTILINE)
    assert shown + int(left[1] if left else 0) == number


def test_nothing_is_mentioned_linked_or_drawn(hostile: Report) -> None:
    said = to_github(replace(hostile, cautions=(EVIL,), answer=(EVIL, EVIL)), LINK)
    ours = said.replace(f"({LINK})", "")
    assert ours.count("everyone") >= 4, "the control: it is there"
    assert "<" not in ours
    assert re.search(r"@\w|#\d|GH-\d|://|www\.|(?<!\\)\]\(", ours) is None


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://a b", "https://a)b", 'https://a"', "ci.example", ""]
)
def test_what_is_no_address_is_refused(lively: Report, link: str) -> None:
    with pytest.raises(OperatorError, match="no address"):
        to_github(lively, link)


def test_a_campaign_without_a_contrast_lists_its_conditions(tmp_path: Path) -> None:
    report = read(write(tmp_path, plan(reps=2, primary=None), lambda trial: Fate()))
    assert "Declared contrast" not in to_github(report)
    assert len(to_github(report).splitlines()) <= MAX_LINES
