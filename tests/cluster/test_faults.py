"""Whatever is killed, stands still or answers falsely while a campaign runs: every trial is accounted once, no end
is lost or doubled. The pods are simulated, so that there are many; all else is real."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Iterator

import pytest

from tests.cluster.chaos import storm
from tests.cluster.cluster import done, kubectl
from tests.cluster.faults import CAMPAIGN, Victim, inflict, standing_still, victim
from tests.cluster.front import front
from tests.support.audit import records
from tests.support.waiting import wait_until
from trialfleet_ledger.records.verdicts import LossClass

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "s3"), pytest.mark.slow]

STEPS = ("epoch", "intent", "grants", "launch", "outcome", "end", "quarantine")
LATER = ("beat.before:1", "finish.before:1", "finish.before:3", "launch.after:5", "outcome.after:4")
PLACES = (*(f"{step}.{when}:1" for step in STEPS for when in ("before", "after")), *LATER)


@pytest.fixture
def fast() -> Iterator[Victim]:
    with victim("--run-s", "1", "--spread", "0.5", "--patch") as made:
        yield made


# --- the controller ---------------------------------------------------------------------------------


@pytest.mark.timeout(900)  # twenty controllers, one after the other
def test_the_controller_is_killed_at_each_step_of_one_campaign() -> None:
    """Each kills its process the first time that it is reached; the next one goes on from there."""
    faults = ("--fault", "killed=0.15", "--fault", "torn=0.1", "--patch", "--run-s", "0.5")
    with victim(*faults, tasks=2, reps=8, width=8) as made:
        before: dict[str, bytes] = {}
        for place in ("plan.before:1", "plan.after:1", *PLACES):
            controller = made.controller(crash=place)
            printed, _ = controller.communicate(timeout=120)
            assert controller.returncode == -signal.SIGKILL, f"{place} was not reached: {printed}"
            now = records(made.store, CAMPAIGN)
            assert before.items() <= now.items(), f"{place}: a record was changed"
            before = now
        made.complete(made.controller())
        outcomes, played = made.audited(before)
        lost = [loss for outcome in outcomes for loss in outcome.losses]
        assert lost.count(LossClass.QUARANTINED) == played["torn"]
        assert lost.count(LossClass.TERMINATED) == played["killed"]
        assert set(lost) == {LossClass.QUARANTINED, LossClass.TERMINATED}


def test_two_controllers_at_once(fast: Victim) -> None:
    """Without epochs and heartbeats: the contended keys and the pods' names alone keep them apart."""
    both = [fast.controller("--no-beat") for _ in range(2)]
    for controller in both:
        fast.complete(controller)
    outcomes, _ = fast.audited()
    assert all(outcome.scored is not None and outcome.losses == () for outcome in outcomes)


# --- the store --------------------------------------------------------------------------------------


def test_answers_that_are_not_true(fast: Victim) -> None:
    """500 for what was stored, 409 for what was not: retries find 412 and know their own record again."""
    with front(
        fast.rig.env["S3_ENDPOINT"],
        stored=("end.json", "start.json", "intent.json"),
        conflict=("patch.json", "bundle.tar.zst"),
    ) as between:
        fast.complete(fast.controller(env={"AWS_ENDPOINT_URL_S3": between.address}))
        outcomes, _ = fast.audited()
    assert all(outcome.scored is not None and outcome.attempts == 1 for outcome in outcomes)
    assert between.seen["stored"] == 3 * fast.trials <= between.seen["412 on retry"]
    assert between.seen["conflict"] == 2 * fast.trials


@pytest.mark.needs("faketime")
@pytest.mark.parametrize("skew_s", [300, -300])
def test_a_controller_whose_clock_is_wrong(fast: Victim, skew_s: int) -> None:
    """Its requests are five minutes off; servers take fifteen. The grants it signs are the store's time."""
    with front(fast.rig.env["S3_ENDPOINT"]) as between:
        env = {"AWS_ENDPOINT_URL_S3": between.address, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        fast.complete(fast.controller(under=("faketime", "-f", f"{skew_s:+}s"), env=env))
        outcomes, _ = fast.audited()
    assert all(outcome.scored is not None and outcome.attempts == 1 for outcome in outcomes)
    assert between.skew == pytest.approx(skew_s, abs=20)
    assert 0 < abs(between.skew_of_grants) < abs(skew_s) / 2
    assert between.seen["skewed"] == 0


# --- the cluster ------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.needs("faults")
@pytest.mark.parametrize(("server", "seconds"), [("radosgw", "15"), ("kube-apiserver", "3")])
def test_a_server_is_killed(fast: Victim, server: str, seconds: str) -> None:
    controller = fast.controller()
    before = fast.under_way(controller)
    inflict(server, seconds)
    fast.complete(controller)
    outcomes, _ = fast.audited(before)
    assert all(outcome.scored is not None and outcome.attempts == 1 for outcome in outcomes)


@pytest.mark.faults
@pytest.mark.needs("faults")
def test_etcd_has_forgotten_what_the_controller_saw_last(fast: Victim) -> None:
    """Its watch begins again at a version that is answered with 410 Gone: it lists anew."""
    controller = fast.controller()
    before = fast.under_way(controller)
    pods = f"/api/v1/namespaces/{fast.rig.namespace}/pods"
    with standing_still(controller):
        seen = json.loads(kubectl("get", "--raw", f"{pods}?limit=1").stdout)["metadata"]["resourceVersion"]
        done(kubectl("create", "configmap", "later", "-n", fast.rig.namespace))  # or nothing is to be forgotten
        inflict("compact")
        inflict("kube-apiserver")
        watch = f"{pods}?watch=1&timeoutSeconds=2&resourceVersion={seen}"
        wait_until(lambda: '"code":410' in kubectl("get", "--raw", watch).stdout)
    fast.complete(controller)
    outcomes, _ = fast.audited(before)
    assert all(outcome.scored is not None and outcome.attempts == 1 for outcome in outcomes)


# --- anything -----------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.needs("faults")
@pytest.mark.timeout(420)
def test_five_random_kills() -> None:
    """`make chaos` does twenty. $TRIALFLEET_CHAOS_SEED repeats a run."""
    seed = int(os.environ.get("TRIALFLEET_CHAOS_SEED") or secrets.randbelow(2**32))
    assert storm(kills=5, seed=seed).total() == 5
