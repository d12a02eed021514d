"""A campaign of 200 trials through the whole controller, on a simulated node where much goes wrong, and the
controller is killed on the way."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter

import pytest

from tests.cluster.simulated.fates import Fate
from tests.cluster.simulated.life import DOUBLED, TROUBLE
from tests.cluster.simulated.wire import Api
from tests.cluster.simulated_campaign import simulated_plan
from tests.cluster.simulated_rig import Rig, rig
from tests.support.audit import audit, ending, records
from tests.support.waiting import wait_until
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.open import open_store

TRIALS = 200
SHARE = 0.02  # of each fate: rare enough that five losses of one task in a row, which would halt it, don't happen
FAULTS = tuple(fate for fate in Fate if fate is not Fate.VERDICT)
SIZE = ("--tasks", "4", "--reps", "10", "--width", "60")


def _drive(made: Rig) -> subprocess.Popen[str]:
    return made.start("tests.cluster.simulated_campaign", made.store, made.node, made.namespace, *SIZE)


def _outcomes(made: Rig) -> int:
    return sum(1 for _ in open_store(made.store, endpoint=os.environ["S3_ENDPOINT"]).list("simulated/outcomes/"))


@pytest.mark.cluster
@pytest.mark.needs("cluster", "s3")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_trial_is_accounted_once_whatever_befalls_its_pods() -> None:
    faults = [word for fate in FAULTS for word in ("--fault", f"{fate}={SHARE}")]
    with rig("--run-s", "1", "--spread", "0.5", "--patch", *faults) as made:
        plan = simulated_plan(
            node=made.node, namespace=made.namespace, tasks=4, reps=10, width=60, name="simulated"
        )
        store = open_store(made.store, endpoint=os.environ["S3_ENDPOINT"])
        first = _drive(made)
        wait_until(lambda: _outcomes(made) >= TRIALS // 4, "a quarter of the outcomes", every_s=0.2, by=first)
        first.kill()
        first.communicate()
        before = records(store, plan.campaign)
        assert _outcomes(made) < TRIALS, "the controller was killed too late to test anything"

        printed, _ = _drive(made).communicate(timeout=240)
        played = Counter(made.stop_kubelet()["counts"])
        outcomes = audit(store, plan, before=before)
        assert len(outcomes) == TRIALS
        assert json.loads(printed.splitlines()[-1])["ending"] == ending(outcomes), printed
        assert (played[DOUBLED], played[TROUBLE]) == (0, 0)
        losses = Counter(loss for outcome in outcomes for loss in outcome.losses)
        assert _explained(losses, played)
        left = Api(threads=1).call("GET", f"/api/v1/namespaces/{made.namespace}/pods")["items"]
        assert all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in left), "somebody still runs"


def _explained(losses: Counter[LossClass], played: Counter[str]) -> bool:
    """Every loss has a cause that was played, and what must be lost was."""
    return (
        losses[LossClass.EVICTED] in _range(played, (Fate.EVICTED, Fate.EVICTED_EARLY), (Fate.LATE,))
        and losses[LossClass.RUNNER] == played[Fate.OOM]
        and losses[LossClass.HOST_FULL] == played[Fate.LOST_EARLY]
        and losses[LossClass.OVERUSE] == played[Fate.LOST]
        and losses[LossClass.SCORING] == played[Fate.SCORING]
        and losses[LossClass.QUARANTINED] == played[Fate.TORN]
        and losses[LossClass.TERMINATED] == played[Fate.DELETED] + played[Fate.KILLED]
    )


def _range(played: Counter[str], surely: tuple[Fate, ...], perhaps: tuple[Fate, ...]) -> range:
    least = sum(played[fate] for fate in surely)
    return range(least, least + sum(played[fate] for fate in perhaps) + 1)
