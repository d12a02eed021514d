"""The store's key is revoked while agents run: their finished work is kept until a resume with another key.

Presigned addresses are refused together with the key that signed them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import done, kubectl, on_cluster, read_pod
from tests.cluster.faults import inflict
from tests.cluster.minimal import GATED, Minimal, Ran, minimal
from tests.support.audit import audit
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.trial_order import trials

pytestmark = on_cluster("faults")

KEPT, UNSAVED = 2, 2  # trials; two that are lost to the store would stop a controller that began them


@dataclass(frozen=True)
class Key:
    """Another key of the store's user."""

    access: str
    secret: str

    @staticmethod
    def made() -> Key:
        key = Key(f"tested{secrets.token_hex(4)}", secrets.token_hex(16))
        inflict("key", key.access, key.secret)
        return key

    def revoke(self) -> None:
        inflict("revoke", self.access)

    @property
    def env(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret}


@dataclass(frozen=True)
class Revoked:
    """The campaign after its resume. `stopped`: how the controller ended whose key was revoked."""

    place: Minimal
    file: Path
    ledger: Ledger
    stopped: Ran
    resumed: Ran


@pytest.fixture(scope="module")
def revoked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Revoked]:
    with minimal(tmp_path_factory.mktemp("revoked")) as place:
        yield revoke_and_resume(place)


def revoke_and_resume(place: Minimal) -> Revoked:
    old = Key.made()
    limits = {"cpu": 0.1, "memory": "256Mi", "disk": "256Mi", "parallel": KEPT + UNSAVED, "stop_grace_s": 1}
    graces = {"graces": {"termination_s": 10}}
    file = place.campaign(campaign="revoked", reps=KEPT + UNSAVED, agent=GATED, limits=limits, kubernetes=graces)
    ledger = from_file(file).ledger
    with place.controller("run", str(file), env=old.env) as controller:
        wait_until(lambda: ledger.exists() or controller.poll() is not None, within_s=200)
        pods = [names.pod(ledger.plan().uid, trial.id, 1) for trial in trials(ledger.plan())]
        for pod in pods:
            wait_until(lambda pod=pod: place.begun(pod), within_s=200)
        old.revoke()
        printed, _ = controller.communicate(timeout=120)
        stopped = Ran(controller.returncode, printed, "")
    for pod in pods:
        place.let_go(pod)
    for pod in pods:
        wait_until(lambda pod=pod: "keeping the patch" in said_by(place, pod), within_s=100)
    for pod in pods[KEPT:]:
        ends_now = '{"spec":{"activeDeadlineSeconds":1}}'
        done(kubectl("patch", "pod", pod, "-n", place.namespace, "--type=merge", "-p", ends_now))
    for pod in pods[KEPT:]:
        wait_until(lambda pod=pod: phase(place, pod) == "Failed", within_s=100)
    new = Key.made()
    try:
        with place.controller("resume", str(file), env=new.env) as controller:
            for trial in trials(ledger.plan())[KEPT:]:
                again = names.pod(ledger.plan().uid, trial.id, 2)
                wait_until(lambda pod=again: place.begun(pod) or controller.poll() is not None, within_s=200)
                place.let_go(again)
            printed, _ = controller.communicate(timeout=200)
            resumed = Ran(controller.returncode, printed, "")
    finally:
        new.revoke()
    return Revoked(place, file, ledger, stopped, resumed)


def said_by(place: Minimal, pod: str) -> str:
    return kubectl("logs", pod, "-n", place.namespace, "-c", names.RUNNER).stdout


def phase(place: Minimal, pod: str) -> str:
    phase: str = read_pod(place.namespace, pod)["status"]["phase"]
    return phase


def test_the_campaign_stops_at_once_and_says_whose_key(revoked: Revoked) -> None:
    assert revoked.stopped.code == 2, revoked.stopped.out
    assert "may not" in revoked.stopped.out
    assert "InvalidAccessKeyId" in revoked.stopped.out


def test_the_first_resume_completes_and_no_kept_patch_is_paid_twice(revoked: Revoked) -> None:
    assert revoked.resumed.code == 0, revoked.resumed.out
    plan = revoked.ledger.plan()
    outcomes = {one.trial.id: one for one in audit(revoked.ledger.store, plan, verdict=Verdict.FAILED)}
    losses = [outcomes[trial.id].losses for trial in trials(plan)]
    assert losses == [()] * KEPT + [(LossClass.UNSAVED,)] * UNSAVED


def test_what_could_not_be_stored_is_counted_and_named(revoked: Revoked) -> None:
    status = revoked.place.trialfleet("status", str(revoked.file), "--json", env=dict(os.environ))
    assert status.code == 0, status.err
    assert json.loads(status.out)["losses"] == {"unsaved": UNSAVED}
    for trial in trials(revoked.ledger.plan())[KEPT:]:
        lost = revoked.ledger.attempts.attempt(trial.id, 1)
        assert lost is not None
        assert lost.end is not None
        assert lost.end.loss is not None
        assert lost.end.loss.message.startswith("the agent had ended, and its patch could not be stored")
