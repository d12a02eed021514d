"""`status` and `report` say the same of one ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit.analysis.ledger_fixture import BEFORE_AGENT, MID_RUN, NOW, Fate, plan, put, read, trials, write
from trialfleet_controller.commands.status import status
from trialfleet_runner.campaign import Cancel, Halt, Plan, Quarantine
from trialfleet_runner.canonical import sha256
from trialfleet_runner.contract import Loss, LossClass, Trial, Verdict
from trialfleet_runner.store.directory import DirectoryStore

LOST = Fate(verdict=None, losses=(MID_RUN,))
CANCELLED = Fate(verdict=None, losses=(Loss(loss=LossClass.CANCELLED, message="", agent_started=True),))


def uneven(trial: Trial) -> Fate | None:
    """alpha mostly passes and is often lost under `none`; beta never passes; gamma has no oracle and passes."""
    if trial.block == 4:
        return Fate() if trial.task == "alpha" else None
    if trial.task == "alpha" and trial.condition == "none" and trial.block < 3:
        return LOST
    losses = (BEFORE_AGENT,) if trial.block == 1 else ()
    return Fate(verdict=Verdict.FAILED if trial.task == "beta" else Verdict.PASSED, losses=losses)


def broken(trial: Trial) -> Fate | None:
    """beta stopped early: with its halt, it holds nobody up."""
    return None if trial.task == "beta" and trial.block > 0 else Fate()


def unmeasured(trial: Trial) -> Fate | None:
    """beta was never measured under `none`: it is compared nowhere."""
    if trial.task == "beta":
        return LOST if trial.condition == "none" else Fate(verdict=Verdict.FAILED)
    return Fate()


def cut(trial: Trial) -> Fate | None:
    """`cancel --now` while block 1 ran: the quick ones had passed."""
    if trial.block == 0:
        return Fate(verdict=Verdict.FAILED)
    return Fate() if trial.task == "alpha" else CANCELLED


CASES = {
    "uneven": (plan(("alpha", "beta", "gamma"), no_oracle=("gamma",)), uneven, 4),
    "broken": (plan(("alpha", "beta")), broken, 5),
    "unmeasured": (plan(("alpha", "beta")), unmeasured, 5),
    "cut": (plan(("alpha", "beta"), reps=2), cut, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_status_and_report_agree(tmp_path: Path, name: str) -> None:
    frozen, fate, blocks = CASES[name]
    store = write(tmp_path, frozen, fate)
    if name == "broken":
        put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="beta", reason="set-up"))
    if name == "cut":
        put(store, "demo/cancel.json", Cancel(at=NOW, now=True, by="somebody"))
    shown, report = standing(store, frozen), read(store)
    assert shown["complete_blocks"] == report.progress.complete_blocks == blocks
    for result in report.conditions:
        counts = shown["conditions"][result.condition]
        assert counts["interim_rate"] == pytest.approx(result.these_tasks.estimate)
        assert (counts["interim_passed"], counts["interim_measured"]) == (result.passes, result.valid)
    if name == "uneven":
        assert shown["conditions"]["none"]["interim_rate"] == 0.5  # pooled it would be 1 of 5
    if name == "cut":
        assert (shown["state"], shown["conditions"]["none"]["interim_rate"]) == ("cancelled", 0)


def test_a_bundle_that_was_quarantined_later_counts_for_neither(tmp_path: Path) -> None:
    frozen = plan(("alpha",), conditions=("none",), reps=3)
    store = write(tmp_path, frozen, lambda trial: Fate())
    victim = next(trial for trial in trials(frozen) if trial.block == 1)
    record = Quarantine(
        trial=victim.id, attempt=1, at=NOW, expected=sha256(b""), found=None, reason="the bundle is missing"
    )
    put(store, f"demo/quarantine/{victim.id}/1.json", record)
    shown, report = standing(store, frozen), read(store)
    counts = shown["conditions"]["none"]
    (result,) = report.conditions
    assert (counts["measured"], counts["abandoned"], shown["losses"]) == (2, 1, {"quarantined": 1})
    assert (counts["interim_passed"], counts["interim_measured"]) == (result.passes, result.valid) == (2, 2)
    assert "report" in shown["bundles"]


def standing(store: DirectoryStore, frozen: Plan) -> dict[str, Any]:
    words = [str(store.root / frozen.campaign), "--json"]
    ran = CliRunner().invoke(status, words, catch_exceptions=False, standalone_mode=False)
    return json.loads(ran.output)
