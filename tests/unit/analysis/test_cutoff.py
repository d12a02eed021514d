"""Tasks before and since a model's training cut-off, in the analysis and in every format of the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from tests.support.ledgers import Fate, write
from tests.support.ledgers import plan as plan_of
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict

CUTOFF = date(2025, 1, 31)
OLD, SAME_DAY, NEW = date(2025, 1, 30), date(2025, 1, 31), date(2025, 6, 1)


def reported(root: Path, days: Mapping[str, date | None], cutoff: date | None = CUTOFF) -> Report:
    """Tasks whose name begins with "old" always pass; of the others, only the treatment's first two reps do."""
    frozen = plan_of(tuple(days), reps=4, primary=Primary(treatment="intent_layer", control="none"))
    dated = [task.model_copy(update={"committed": days[task.order.id]}) for task in frozen.tasks]
    frozen = frozen.model_copy(update={"tasks": tuple(dated)})

    def fate(trial: Trial) -> Fate:
        passed = trial.task.startswith("old") or (trial.condition == "intent_layer" and trial.rep < 2)
        return Fate(verdict=Verdict.PASSED if passed else Verdict.FAILED)

    return make_report(write(root, frozen, fate), "demo", now=0.0, cutoff=cutoff)


def test_tasks_are_split_and_both_sides_have_their_rates(tmp_path: Path) -> None:
    found = reported(tmp_path, {"old-1": OLD, "old-2": OLD, "new-1": SAME_DAY, "new-2": NEW})
    split = found.cutoff
    assert split is not None
    assert (split.before, split.since, split.undated) == (("old-1", "old-2"), ("new-1", "new-2"), ())
    rates = {(one.side, one.condition): (one.tasks, one.rate.estimate) for one in split.rates}
    assert rates == {
        ("before 2025-01-31", "none"): (2, 1.0),
        ("before 2025-01-31", "intent_layer"): (2, 1.0),
        ("since 2025-01-31", "none"): (2, 0.0),
        ("since 2025-01-31", "intent_layer"): (2, 0.5),
    }
    (factor,) = [one for one in found.analysis.subgroups if one.factor == "training cut-off"]
    assert {one.level: one.difference.estimate for one in factor.levels} == {
        "before 2025-01-31": 0.0, "since 2025-01-31": 0.5,
    }  # fmt: skip
    said = "2 of 4 tasks were fixed before the training cut-off 2025-01-31"
    assert sum(said in caution for caution in found.cautions) == 1
    for shown in (to_markdown(found), to_html(found), on_terminal(found, width=300)):
        assert said in " ".join(shown.split())
    assert "Before and since the training cut-off" in to_markdown(found)
    assert json.loads(to_json(found))["cutoff"]["before"] == ["old-1", "old-2"]


@pytest.mark.parametrize(
    ("days", "said"),
    [
        ({"old-1": OLD, "old-2": OLD}, ["Every compared task was fixed before the training cut-off 2025-01-31"]),
        (
            {"old-1": OLD, "b": None},
            ["Every task with a known date was fixed before", "a known date of their fix, in neither group: 1."],
        ),
        ({"a": None, "b": None}, ["No compared task has a known date of its fix"]),
        ({"a": NEW, "b": NEW}, []),
    ],
)
def test_what_cannot_be_told_is_said(tmp_path: Path, days: Mapping[str, date | None], said: list[str]) -> None:
    found = reported(tmp_path, days)
    about = [caution for caution in found.cautions if "cut-off" in caution or "known date" in caution]
    assert len(about) == len(said)
    assert all(words in caution for words, caution in zip(said, about, strict=True))
    assert found.cutoff is not None
    assert all(one.tasks for one in found.cutoff.rates), "a side without a task has no rate, and no 0"
    (factor,) = [one for one in found.analysis.subgroups if one.factor == "training cut-off"]
    assert factor.interaction is None
    assert factor.reason


def test_nothing_is_split_unless_it_is_asked_for(tmp_path: Path) -> None:
    found = reported(tmp_path, {"old-1": OLD, "new-1": NEW}, cutoff=None)
    assert found.cutoff is None
    assert "training cut-off" not in to_markdown(found) + to_html(found)
    assert [str(row.committed) for row in found.tasks] == ["2025-01-30", "2025-06-01"]
