"""What the viewer says of a campaign's pace: only while trials start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.ledgers import ZERO, Fate, plan, put, put_bytes, trials, write
from tests.unit.analysis.test_report_halving import campaign as halved_campaign
from trialfleet_analysis.viewer.activity import ActivityReader, CampaignActivity
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.pages.activity_section import activity_section
from trialfleet_ledger.designs.looks import Decision, LookResult
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import Planned

FROZEN = plan(reps=4)
TRIALS = trials(FROZEN)


def activity(store: DirectoryStore) -> CampaignActivity:
    planned = {t.id: Planned(t.id, t.task, t.condition, t.rep, t.seed, t.block, t.position) for t in TRIALS}
    return ActivityReader(store, FROZEN.campaign).read(planned, len(planned))


def written(root: Path, ended: int) -> DirectoryStore:
    done = {trial.id for trial in TRIALS[:ended]}
    return write(root, FROZEN, lambda trial: Fate() if trial.id in done else None)


def beat(state: str) -> Callable[[DirectoryStore], object]:
    def write_beat(store: DirectoryStore) -> None:
        put_bytes(store, "demo/epochs/1.json", b"{}")
        put_bytes(store, "demo/epochs/1.beat", json.dumps({"count": 1, "state": state}).encode())

    return write_beat


def cancel(store: DirectoryStore) -> None:
    Ledger(store, "demo").directives.cancel(now=False, by="somebody")


def halt(store: DirectoryStore) -> None:
    Ledger(store, "demo").directives.halt(None, "the image is gone")


def halt_open_tasks(store: DirectoryStore) -> None:
    for task in ("alpha", "beta"):
        Ledger(store, "demo").directives.halt(task, "its image is gone")


def halt_one_task(store: DirectoryStore) -> None:
    Ledger(store, "demo").directives.halt("alpha", "its image is gone")


def decided(verdict: Literal["benefit", "continue"]) -> Callable[[DirectoryStore], object]:
    result = LookResult(
        total=3,
        mean=1,
        variance=1,
        p_value=0.01,
        p_treatment=0.005,
        p_control=1,
        level=0.02,
        lower=None,
        upper=2,
        chance=None,
        verdict=verdict,
    )

    def write_decision(store: DirectoryStore) -> None:
        fields: dict[str, Any] = {
            "number": 1,
            "at": 1.0,
            "epoch": 1,
            "blocks": 2,
            "stage": (),
            "outcomes": ZERO,
            "amendments": 0,
        }
        put(store, "demo/decisions/1.json", Decision(**fields, result=result))

    return write_decision


def nothing(store: DirectoryStore) -> None:
    del store


@pytest.mark.parametrize("prepare", [nothing, beat("driving"), halt_one_task, decided("continue")])
def test_a_campaign_that_goes_on_has_a_pace(tmp_path: Path, prepare: Callable[[DirectoryStore], object]) -> None:
    store = written(tmp_path, ended=8)
    prepare(store)
    shown = activity(store)
    assert shown.per_hour is not None
    assert shown.left_s is not None
    assert "left at this rate" in activity_section(shown, ServedAddresses())


@pytest.mark.parametrize("prepare", [cancel, halt, halt_open_tasks, beat("ended"), decided("benefit")])
def test_a_campaign_that_starts_nothing_more_has_none(
    tmp_path: Path, prepare: Callable[[DirectoryStore], object]
) -> None:
    """Cancelled, halted, or left by its controller: interrupted, decided, out of money or time."""
    store = written(tmp_path, ended=8)
    prepare(store)
    shown = activity(store)
    assert (shown.per_hour, shown.left_s) == (None, None)
    section = activity_section(shown, ServedAddresses())
    assert "an hour" not in section
    assert "left" not in section


def test_neither_has_one_whose_trials_have_all_ended(tmp_path: Path) -> None:
    shown = activity(written(tmp_path, ended=len(TRIALS)))
    assert (shown.per_hour, shown.left_s) == (None, None)


def test_trials_that_a_halving_has_left_out_are_not_waited_for(tmp_path: Path) -> None:
    store = halved_campaign(tmp_path)
    for trial in WatchedCampaign(store, "demo").planned():
        put_bytes(store, f"demo/outcomes/{trial}.json", b"{}")
    shown = WatchedCampaign(store, "demo").activity()
    assert (shown.terminal, shown.planned) == (152, 152)
    assert "Every trial has ended" in activity_section(shown, ServedAddresses())


def test_an_outcome_without_a_place_in_the_plan_is_not_counted(tmp_path: Path) -> None:
    store = written(tmp_path, ended=8)
    put_bytes(store, f"demo/outcomes/{'b' * 26}.json", b"{}")
    assert activity(store).terminal == 8
