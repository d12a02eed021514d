"""A declared question in a campaign file: how its margin is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.errors import OperatorError

HEAD = """\
campaign: c
seed: 1
tasks: [t.yaml]
reps: 10
agent: {kind: nop}
store: store
conditions: {none: , short: {inline: {source: nearest}}}
"""


def declared(folder: Path, primary: str) -> object:
    (folder / "t.yaml").write_text("{}")
    file = folder / "campaign.yaml"
    file.write_text(f"{HEAD}primary: {{treatment: short, control: none, {primary}}}\n")
    return load_campaign(file).spec.primary


@pytest.mark.parametrize(("written", "share"), [("10", 0.1), ("0.1", 0.1), ("1", 0.01), ("7.5", 0.075)])
def test_a_margin_is_written_in_points_or_as_a_share(tmp_path: Path, written: str, share: float) -> None:
    found = declared(tmp_path, f"question: not_worse, margin: {written}")
    assert isinstance(found, QuestionPrimary)
    assert found.margin == pytest.approx(share)
    contrast = declared(tmp_path, f"margin: {written}")
    assert isinstance(contrast, Primary)
    assert contrast.margin == pytest.approx(share)


def test_its_looks_are_those_of_a_contrast(tmp_path: Path) -> None:
    found = declared(tmp_path, "question: equivalent, margin: 10, stop: {looks: 2}")
    assert isinstance(found, QuestionPrimary)
    assert found.schedule is not None
    assert found.schedule.blocks_at(10, 10, ()) == (5, 10)


@pytest.mark.parametrize(
    ("primary", "words"),
    [
        ("question: not_worse", "margin"),
        ("question: better, margin: 10", "not_worse"),
        ("question: not_worse, margin: 100", "margin"),
        ("question: not_worse, margin: 0", "margin"),
        ("question: not_worse, margin: 10, effect: 0.1", "effect"),
        ("question: not_worse, margin: 10, halve: true", "halve"),
        ("question: not_worse, margin: 10, stop: {looks: [5, 9]}", "the last look is after block 9"),
        ("question: not_worse, margin: 10, stop: {anytime: mixture}", "anytime"),
        ("question: not_worse, margin: 10, stop: {drop_saturated: 2}", "drop_saturated"),
        ("question: not_worse, margin: 10, stop: {futility: {predictive: 0.1, side: gain}}", "predictive"),
        ("question: not_worse, margin: 10, estimand: tasks_like_these, stop: {looks: 2}", "these_tasks"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Path, primary: str, words: str) -> None:
    with pytest.raises(OperatorError) as error:
        declared(tmp_path, primary)
    assert words in f"{error.value.where}: {error.value.message}\n{error.value.hint}"
