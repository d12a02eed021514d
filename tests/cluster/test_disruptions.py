"""Real pods are evicted while their agents run: every loss says so, and spends the disruptions' own budget."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.cluster import evict, on_cluster
from tests.cluster.minimal import GATED, minimal
from tests.support.audit import audit
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.trial_order import trials

pytestmark = on_cluster(timeout_s=500)

TIMES = (4, 1, 1, 1)  # of each trial: the first more often than `mid_run` allows


def test_evicted_runners_are_lost_to_the_eviction_however_often(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        limits = {"cpu": 0.1, "memory": "256Mi", "disk": "256Mi", "parallel": len(TIMES), "stop_grace_s": 1}
        graces = {"graces": {"termination_s": 20}}
        file = place.campaign(campaign="evicted", reps=len(TIMES), agent=GATED, limits=limits, kubernetes=graces)
        with place.controller("run", str(file)) as controller:
            ledger = from_file(file).ledger
            wait_until(lambda: ledger.exists() or controller.poll() is not None, within_s=200)
            plan = ledger.plan()
            planned = trials(plan)
            for attempt in range(1, max(TIMES) + 2):
                for trial, times in zip(planned, TIMES, strict=True):
                    pod = names.pod(plan.uid, trial.id, attempt)
                    if attempt <= times + 1:
                        wait_until(lambda pod=pod: place.begun(pod), within_s=200)
                    if attempt <= times:
                        evict(place.namespace, pod)
                    elif attempt == times + 1:
                        place.let_go(pod)
            printed, _ = controller.communicate(timeout=200)
        assert controller.returncode == 0, printed
        outcomes = {one.trial.id: one for one in audit(ledger.store, plan, verdict=Verdict.FAILED)}
        for trial, times in zip(planned, TIMES, strict=True):
            assert outcomes[trial.id].losses == (LossClass.EVICTED,) * times
            assert outcomes[trial.id].scored is not None
            for attempt in ledger.attempts.chain(trial.id)[:times]:
                assert attempt.end is not None
                assert attempt.end.loss is not None
                assert "EvictionByEvictionAPI" in attempt.end.loss.message
                assert (attempt.end.by, attempt.end.bundle is not None) == ("runner", True)
                assert attempt.end.loss.agent_started
