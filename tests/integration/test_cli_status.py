"""`status` and `report` say the same of one ledger."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.ledgers import (
    BEFORE_AGENT,
    MID_RUN,
    NOW,
    Fate,
    plan,
    put,
    read,
    trials,
    write,
    write_running,
)
from trialfleet_controller.backends.local import machine
from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.commands.plan import plan as plan_command
from trialfleet_controller.commands.status import status
from trialfleet_controller.dispatch.epochs import Heartbeat
from trialfleet_controller.status.campaign_status import read_status
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.deliveries import PlannedDeliveries
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.machine import boot_id
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import Quarantine
from trialfleet_ledger.records.directives import Amendment, Cancel, Epoch, Halt
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials as planned_trials

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
        assert shown["conditions"]["none"]["interim_rate"] == 0  # alpha is thin, and gamma has no oracle
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


def test_records_that_cannot_be_read_are_named_and_take_nothing_else_away(tmp_path: Path) -> None:
    frozen = plan(("alpha",), reps=2)
    store = write(tmp_path, frozen, lambda trial: Fate() if trial.block == 0 else None)
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, reason="a bill that nobody paid"))
    put(store, "demo/amendments/1.json", Amendment(number=1, at=NOW, reps=3))
    broken = {
        "demo/halts/2.json": b'{"number": 2}',
        "demo/halts/notes.txt": b"somebody's notes",
        "demo/amendments/2.json": b"\x1b[31m{",
        "demo/epochs/1.json": b"[]",
        "demo/epochs/1.beat": b"{}",
        "demo/cancel.json": b"null",
    }
    for key, content in broken.items():
        assert store.create(key, content)
    shown = standing(store, frozen)
    assert (shown["reps"], shown["halts"]) == (3, ["the campaign: a bill that nobody paid"])
    assert shown["controller"]["host"] is None
    named = "\n".join(shown["unreadable"])
    assert [key for key in broken if key not in named] == []
    assert "not a Halt record of this version" in named
    said = CliRunner().invoke(status, [str(store.root / "demo")], catch_exceptions=False).output
    assert said.count("cannot be read: ") == len(broken)


def test_deliveries_that_were_measured_otherwise_or_not_at_all_are_said(tmp_path: Path) -> None:
    frozen = plan(("alpha",), reps=1)
    (agent,) = {own.digest for own in frozen.agents.values()}
    deliveries = PlannedDeliveries(kind="codex", version="9", declared={"hook": True, "system channel": True})
    unmeasured = frozen.model_copy(update={"deliveries": {agent: deliveries}})
    otherwise = deliveries.model_copy(update={"measured": {"hook": False, "system channel": True}})
    differing = frozen.model_copy(update={"deliveries": {agent: otherwise}})
    shown = {}
    for name, made in (("unmeasured", unmeasured), ("differing", differing)):
        store = write(tmp_path / name, made, lambda _: Fate())
        said = CliRunner().invoke(status, [str(store.root / "demo")], catch_exceptions=False).output
        shown[name] = said, read(store), standing(store, made)["deliveries"]
    said, report, told = shown["unmeasured"]
    assert [line for line in said.splitlines() if line.startswith("codex 9")] == told
    assert "was not measured before the campaign was planned" in told[0]
    values = {line.name: line.value for line in report.manifest if line.group == "Agent"}
    assert values["deliveries"] == "as declared; not measured in this version"
    assert not any("codex 9" in caution for caution in report.cautions)
    said, report, told = shown["differing"]
    assert told == ["codex 9: hook: declared to reach the model, measured not to"]
    assert told[0] in said.splitlines()
    values = {line.name: line.value for line in report.manifest if line.group == "Agent"}
    assert values["deliveries"] == "measured in this version: 1 of 2 as declared"
    assert [caution for caution in report.cautions if caution.startswith("codex 9")] == [
        "codex 9, checked before the campaign was planned: hook: declared to reach the model, measured not to."
    ]


def test_what_best_effort_left_out_is_in_the_plan_and_before_the_results(tmp_path: Path) -> None:
    frozen = plan(("alpha",), conditions=("none", "intent_layer"), reps=1)
    lost = "the on-read hook (hook: on_read)"
    cells = tuple(
        cell.model_copy(update={"condition": cell.condition.model_copy(update={"undelivered": (lost,)})})
        if cell.condition.name == "intent_layer"
        else cell
        for cell in frozen.cells
    )
    store = write(tmp_path, frozen.model_copy(update={"cells": cells}), lambda _: Fate())
    said = f"intent_layer: its agent cannot be given {lost}; left out (delivery: best_effort)."
    assert [caution for caution in read(store).cautions if "cannot be given" in caution] == [said]
    shown = CliRunner().invoke(plan_command, [str(store.root / "demo")], catch_exceptions=False).output
    assert f"left out    intent_layer: {lost}" in shown.splitlines()


def test_a_damaged_plan_is_the_operators_to_fix(tmp_path: Path) -> None:
    store = write(tmp_path, plan(("alpha",)), lambda _: None)
    (tmp_path / "demo/campaign.json").write_bytes(b"{")
    with pytest.raises(OperatorError, match="not a Plan record of this version"):
        read_status(store, "demo")


ELSEWHERE = Epoch(number=1, at=NOW, host="another-host", boot_id="b", pid=7, nonce="n")
HERE = Epoch(number=1, at=time.time(), host=machine.host(), boot_id=boot_id(), pid=os.getpid(), nonce="n")
NOBODY = HERE.model_copy(update={"pid": 2**22 + 1})  # above every pid
ABANDONED = Fate(verdict=None, losses=(MID_RUN,))


@pytest.mark.parametrize(
    ("epoch", "beat_age_s", "fate", "state"),
    [
        (None, None, None, "planned"),
        (HERE, 0, None, "running"),
        (NOBODY, 0, None, "stalled"),
        (ELSEWHERE, 20, None, "running"),
        (ELSEWHERE, 600, None, "stalled"),
        (ELSEWHERE, None, None, "incomplete"),  # it said that it ended
        (ELSEWHERE, None, ABANDONED, "incomplete"),
        (ELSEWHERE, None, Fate(), "complete"),
    ],
)
def test_the_state_is_one_of_seven_words(
    tmp_path: Path, epoch: Epoch | None, beat_age_s: float | None, fate: Fate | None, state: str
) -> None:
    frozen = plan(("alpha",), reps=2)
    store = write(tmp_path, frozen, lambda trial: Fate() if trial.block == 0 and epoch else fate)
    if epoch is not None:
        put(store, "demo/epochs/1.json", epoch)
        put(store, "demo/epochs/1.beat", Heartbeat(count=3, state="ended" if beat_age_s is None else "driving"))
        then = time.time() - (beat_age_s or 0)
        os.utime(tmp_path / "demo/epochs/1.beat", (then, then))
    shown = standing(store, frozen)
    assert shown["state"] == state
    assert (shown["controller"] is None) is (epoch is None)
    if epoch is not None:
        assert shown["controller"]["alive"] is (state == "running")
    if state not in ("running", "complete"):
        return
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="alpha", reason="set-up"))
    assert standing(store, frozen)["state"] == state, "a halted task stops neither"


@pytest.mark.parametrize("record", ["halts/1.json", "cancel.json"])
def test_a_stopped_campaign_says_why_in_one_word(tmp_path: Path, record: str) -> None:
    frozen = plan(("alpha",), reps=2)
    store = write(tmp_path, frozen, lambda trial: Fate() if trial.block == 0 else None)
    put(store, "demo/epochs/1.json", ELSEWHERE)
    put(store, "demo/epochs/1.beat", Heartbeat(count=3, state="ended"))
    if record == "cancel.json":
        put(store, f"demo/{record}", Cancel(at=NOW, now=False, by="somebody"))
    else:
        put(store, f"demo/{record}", Halt(number=1, at=NOW, reason="set-up"))
    assert standing(store, frozen)["state"] == ("cancelled" if record == "cancel.json" else "halted")


def standing(store: DirectoryStore, frozen: Plan) -> dict[str, Any]:
    words = [str(store.root / frozen.campaign), "--json"]
    ran = CliRunner().invoke(status, words, catch_exceptions=False, standalone_mode=False)
    return json.loads(ran.output)


def driven(root: Path, *, pending: dict[Wait, int], cancelled: bool = False) -> str:
    """What `status` prints of a campaign that asks for 40 attempts at once and is being driven."""
    frozen = plan(("alpha",), reps=30).model_copy(update={"parallel": 40, "blocks_ahead": 4})
    store = write(root, frozen, lambda trial: Fate(metrics=Metrics(cost_usd=1.0)) if trial.block == 0 else None)
    running = next(one.record() for one in planned_trials(frozen) if one.block == 1)
    write_running(store, "demo", running, 1, b"")
    put(store, "demo/epochs/1.json", HERE)
    put(store, "demo/epochs/1.beat", Heartbeat(count=1, state="driving", pending=pending))
    if cancelled:
        Ledger(store, "demo").directives.cancel(now=False, by="somebody")
    return CliRunner().invoke(status, [str(store.root / "demo")], catch_exceptions=False).output


def test_why_fewer_attempts_run_than_asked_for_is_said_while_it_is_so(tmp_path: Path) -> None:
    lines = driven(tmp_path / "short", pending={Wait.NO_CPU: 3, Wait.STARTING: 1}).splitlines()
    assert "pending: 3 because no node has the CPU, 1 starting" in lines
    (unplaced,) = (line for line in lines if line.startswith("3 attempts wait because no node has the CPU: "))
    assert "Where 2 have a place, up to 5 would with limits.cpu: 0.38, in a campaign of another name" in unplaced
    assert (
        "at most 10 attempts at once: limits.blocks_ahead: 4 lets the 5 oldest open blocks run, of 2 trials "
        "each; 40 with limits.blocks_ahead: 19 (these fields are part of the plan: another value needs a campaign "
        "of another name)"
    ) in lines
    assert "attempts wait" not in driven(tmp_path / "placed", pending={})


def test_a_cancelled_campaign_has_neither_a_width_nor_a_projected_cost(tmp_path: Path) -> None:
    going, cancelled = (driven(tmp_path / str(n), pending={}, cancelled=bool(n)) for n in range(2))
    assert "about $60.00 for all" in going
    assert "at most 10 attempts at once" in going
    assert "cost: $2.00 for measured trials\n" in cancelled
    assert "run at once" not in cancelled
