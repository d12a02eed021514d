"""Real pods with real runners, while what they depend on is killed: every trial is accounted once.

Ends of single pods (evictions, deadlines, out of memory, images and settings that do not exist) are in
test_kube_backend.py; here whole campaigns meet them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import done, evict, kubectl, on_cluster, read_pods
from tests.cluster.faults import during, inflict
from tests.cluster.minimal import Minimal, minimal
from tests.cluster.simulated_rig import rig
from tests.support.audit import audit, records
from tests.support.buckets import client
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.trial_order import trials

pytestmark = [*on_cluster("faults", timeout_s=420), pytest.mark.faults]

GRACES = {"termination_s": 5, "terminating_s": 5, "unreachable_s": 1, "unseen_s": 20}


@dataclass
class Campaign:
    """One campaign of real pods, each of whose agents is a shell script."""

    place: Minimal
    file: Path
    programs: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    def start(self, *argv: str, **how: Any) -> subprocess.Popen[str]:
        """A controller under the Role of k8s/base."""
        program = self.place.start(*argv, str(self.file), **how)
        self.programs.append(program)
        return program

    @property
    def ledger(self) -> Ledger:
        return from_file(self.file).ledger

    def begun(self, controller: subprocess.Popen[str]) -> None:
        """Waits for the only trial's runner to have claimed its first attempt."""

        def claimed() -> bool:
            assert controller.poll() is None, controller.communicate()[0]
            return self.ledger.exists() and self.written(1, "start.json") is not None

        wait_until(claimed)

    def complete(self, controller: subprocess.Popen[str]) -> None:
        printed, _ = controller.communicate(timeout=300)
        assert controller.returncode == 0, printed

    def audited(
        self, before: dict[str, bytes] | None = None, *, verdict: Verdict = Verdict.FAILED
    ) -> list[Outcome]:
        """No agent here repairs anything."""
        ledger = self.ledger
        return audit(ledger.store, ledger.plan(), before=before, verdict=verdict)

    def records(self) -> dict[str, bytes]:
        return records(self.ledger.store, self.ledger.campaign)

    def written(self, attempt: int, name: str) -> float | None:
        """When this object of the only trial's attempt was stored, or None."""
        ledger = self.ledger
        (trial,) = trials(ledger.plan())
        key = f"runs/{ledger.campaign}/attempts/{trial.id}/{attempt}/{name}"
        found = client().list_objects_v2(Bucket=self.place.bucket, Prefix=key).get("Contents", ())
        return next((item["LastModified"].timestamp() for item in found), None)

    def said(self) -> list[str]:
        """Every loss, in its own words."""
        ledger = self.ledger
        ends = [attempt.end for trial in trials(ledger.plan()) for attempt in ledger.attempts.chain(trial.id)]
        return [f"{end.trial} {end.attempt} by {end.by}: {end.loss!r}" for end in ends if end and end.loss]

    def pods(self) -> list[dict[str, Any]]:
        """Attempts that are not over; no probe."""
        listed = read_pods(self.place.namespace, names.TRIAL)
        return [pod for pod in listed if pod["status"]["phase"] not in ("Succeeded", "Failed")]

    def at_work(self) -> dict[str, str]:
        """Pods by the trials whose runners have claimed their attempts and not ended them."""
        if not self.ledger.exists():
            return {}
        heads = [pod["metadata"] for pod in self.pods()]
        named = {head["labels"][names.TRIAL]: head["name"] for head in heads}
        last = {trial: self.ledger.attempts.chain(trial)[-1] for trial in named}
        return {trial: named[trial] for trial, attempt in last.items() if attempt.start and not attempt.end}

    def started(self) -> bool:
        """Whether no container is still to be started."""
        statuses = [pod["status"].get("containerStatuses", []) for pod in self.pods()]
        begun = [sum("waiting" not in one["state"] for one in of_pod) for of_pod in statuses]
        return all(count == len(names.CONTAINERS) for count in begun)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Minimal]:
    with minimal(tmp_path) as made:
        yield made


@pytest.fixture
def run(place: Minimal) -> Iterator[Any]:
    """Makes the campaign whose agents run a script."""
    made: list[Campaign] = []

    def campaign(script: str, **changed: Any) -> Campaign:
        agent = {"kind": "command", "options": {"argv": ["/bin/sh", "-c", script]}, "timeout_s": 150}
        limits = {"cpu": 0.3, "memory": "256Mi", "disk": "256Mi", "parallel": 4, "stop_grace_s": 1}
        kube = {"graces": GRACES}
        file = place.campaign(campaign="struck", agent=agent, limits=limits, kubernetes=kube, **changed)
        made.append(Campaign(place, file))
        return made[-1]

    yield campaign
    for one in made:
        for program in one.programs:
            if program.poll() is None:
                program.kill()
                program.communicate()


def until_stored(what: dict[str, str]) -> str:
    """Shell words that end once the object is there: also where no kubelet lets anybody into the pod."""
    s3 = client(os.environ.get("S3_ENDPOINT_PODS"))
    url = s3.generate_presigned_url("get_object", Params=what)
    ask = "import sys, urllib.request as r; r.urlopen(sys.argv[1])"
    return f'until python -c "{ask}" "{url}" 2>/dev/null; do sleep 0.5; done'


def test_servers_and_pods_are_killed_under_eight_trials(run: Any, place: Minimal) -> None:
    """One pod is deleted, one evicted; store, API server, kubelet and controller are killed, each once.

    No container is being started when the kubelet is killed: it does not start that one again, as a pod is never
    restarted, and the attempt would be lost for a reason of its own."""
    go = {"Bucket": place.bucket, "Key": "go"}
    struck: Campaign = run(f"{until_stored(go)}; sleep 12", conditions=["none", "placebo"], reps=4)
    first = struck.start("run")
    working = wait_until(lambda: there if len(there := struck.at_work()) >= 2 else None)
    (deleted, its_pod), (evicted, other_pod), *_ = working.items()
    done(kubectl("delete", "pod", its_pod, "-n", place.namespace, "--wait=false"))
    evict(place.namespace, other_pod)
    client().put_object(**go)
    inflict("radosgw", "60")
    before = struck.records()
    first.kill()
    first.communicate()
    wait_until(struck.started)
    with during("kubelet", 5):
        second = struck.start("resume")
    inflict("kube-apiserver", "2")
    struck.complete(second)
    outcomes = struck.audited(before)
    assert len(outcomes) == 8
    assert all(outcome.scored is not None for outcome in outcomes)
    losses = {outcome.trial.id: outcome.losses for outcome in outcomes if outcome.losses}
    assert losses.keys() == {deleted, evicted}, struck.said()
    assert losses[deleted] == (LossClass.TERMINATED,), struck.said()
    # The eviction's reason may be lost here: the end then comes from a controller that knows of no eviction. Why
    # is not established. The store is down for a minute after it, and then the first controller is killed.
    assert losses[evicted] in ((LossClass.TERMINATED,), (LossClass.EVICTED,)), struck.said()


def test_agents_out_of_memory_are_a_result(run: Any) -> None:
    struck: Campaign = run("tail /dev/zero")
    struck.complete(struck.start("run"))
    (outcome,) = struck.audited(verdict=Verdict.EXHAUSTED)
    assert outcome.scored is not None
    assert (outcome.attempts, outcome.scored.stop) == (1, Stop.MEMORY)


def test_grants_that_have_expired(run: Any) -> None:
    """The next controller signs again, and the runner that was refused stores what its agent has left."""
    struck: Campaign = run('case "$(hostname)" in *-a1) sleep 60;; esac')
    first = struck.start("run", module=("tests.cluster.short_grants", "50"))
    struck.begun(first)
    first.kill()
    first.communicate()
    struck.complete(struck.start("resume"))
    (outcome,) = struck.audited()
    assert outcome.scored is not None
    assert (outcome.attempts, outcome.losses) == (1, ())


def test_a_node_that_was_lost_ends_its_trial_too_late(run: Any, place: Minimal) -> None:
    """The kubelet is dead past the time-out of nodes while its containers live: the attempt is lost, the trial is
    measured again, and the end that comes late changes nothing. A second node is there, as a cluster whose nodes
    are all lost gives up none of them."""
    go = {"Bucket": place.bucket, "Key": "go"}
    struck: Campaign = run(f'case "$(hostname)" in *-a1) {until_stored(go)};; esac')
    controller = struck.start("run")
    struck.begun(controller)
    with rig(), during("kubelet", 115):
        lost_at = wait_until(lambda: struck.written(1, "end.json"), within_s=110)
        client().put_object(**go)
        late_at = wait_until(lambda: struck.written(1, "bundle.tar.zst"), within_s=110)
        before = struck.records()
    assert lost_at <= late_at
    struck.complete(controller)
    (outcome,) = struck.audited(before)
    assert outcome.scored is not None
    assert set(outcome.losses) == {LossClass.NODE_LOST}  # the next pod may meet the taint before it is lifted
    first = struck.ledger.attempts.attempt(outcome.trial.id, 1)
    assert first is not None
    assert first.end is not None
    assert first.end.by == "controller"
