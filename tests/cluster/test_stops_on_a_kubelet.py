"""Real pods are deleted while their runners are in a phase that a front of the store holds them in.

One campaign has a trial for each of `HOLDS`. Its first attempt's pod is deleted once its runner has come to that
phase: the kubelet sends SIGTERM to all three containers.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import CHECKOUT, SERVES, Raw, done, kubectl, on_cluster, restricted_pod
from tests.cluster.held_front import At, Hold, Until
from tests.cluster.minimal import Minimal, minimal
from tests.support.audit import audit
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger import keys
from trialfleet_ledger.bundle import Bundle, unpack
from trialfleet_ledger.fold import StoredAttempt
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Verdict

pytestmark = on_cluster()

TERMINATED = 143
PORT = 8080
GRACES = {"termination_s": 60}  # three quarters of it are the runner's, which some use up
# Ignores SIGTERM, leaves a child in a session of its own, and has the tests ask as well.
AGENT = """
trap '' TERM
setsid sleep 600 &
echo begun
exec 3<>/dev/tcp/{host}/{port}
printf 'GET /phase/agent HTTP/1.0\\r\\n\\r\\n' >&3
cat <&3 >/dev/null
cat >>sqlparse/__init__.py <<'END'
import socket
asked = socket.create_connection(("{host}", {port}))
asked.sendall(b"GET /phase/scoring HTTP/1.0\\r\\n\\r\\n")
asked.recv(1)
END
"""


@dataclass(frozen=True)
class Lost:
    """How the first attempt was lost. `by`: whose end it is; `bundle`: whether what there was is in the store."""

    by: str = "runner"
    agent_started: bool = True
    patched: bool = False
    bundle: bool = True


# None: its verdict counts, whoever deleted the pod.
HOLDS: dict[str, Lost | None] = {
    "start.unanswered": Lost(by="controller", bundle=False),  # claimed, as far as the ledger can know
    "patch.never": Lost(bundle=False),
    "bundle.never": Lost(patched=True, bundle=False),
    "end.never": None,
    "end.unanswered": None,
    "grants.never": Lost(by="controller", agent_started=False, bundle=False),
    "start.told": Lost(agent_started=False),
    "setup.never": Lost(agent_started=False),
    "agent.never": Lost(),
    "patch.told": Lost(patched=True),
    "scoring.never": Lost(patched=True),
    "bundle.told": None,
    "end.told": None,
}


@dataclass(frozen=True)
class Front:
    """The pod of `held_front`. `address`: for pods; `control`: from here."""

    address: tuple[str, int]
    control: str

    def ask(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.control}{path}", timeout=60) as answer:
            return bytes(answer.read())

    def held(self) -> dict[str, str]:
        """Trials by the holds that they have come to."""
        return dict(json.loads(self.ask("/held"))["held"])

    def seen(self) -> list[At]:
        return [At(*one) for one in json.loads(self.ask("/held"))["seen"]]


@dataclass(frozen=True)
class Struck:
    """The campaign after its end. `statuses`: of every pod, as it was seen last."""

    ledger: Ledger
    trials: dict[str, str]  # by hold
    outcomes: dict[str, Outcome]  # by trial
    statuses: dict[str, Raw]
    seen: list[At]

    def first(self, hold: str) -> StoredAttempt:
        attempt = self.ledger.attempts.attempt(self.trials[hold], 1)
        assert attempt is not None
        return attempt

    def exit_code(self, hold: str, container: str) -> int:
        """Of the first attempt's."""
        pod = names.pod(self.ledger.plan().uid, self.trials[hold], 1)
        (one,) = (one for one in self.statuses[pod]["containerStatuses"] if one["name"] == container)
        return int(one["state"]["terminated"]["exitCode"])

    def bundle(self, hold: str, attempt: int) -> Bundle | None:
        trial = self.trials[hold]
        raw = self.ledger.store.get(keys.attempt_file(self.ledger.campaign, trial, attempt, "bundle.tar.zst"))
        kept = self.ledger.attempts.attempt(trial, attempt)
        assert kept is not None
        assert kept.end is not None
        return None if raw is None else unpack(raw, kept.end.bundle)

    def asked(self, hold: str, phase: str) -> set[int]:
        """Attempts of its trial that came to this phase."""
        return {at.attempt for at in self.seen if (at.trial, at.phase) == (self.trials[hold], phase)}


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Struck]:
    folder = tmp_path_factory.mktemp("stops")
    with minimal(folder) as place, held_front(place) as front, watched(place, folder) as pods:
        file = campaign(place, front)
        with place.controller("run", str(file)) as controller:
            trials = strike(place, front, controller)
            printed, _ = controller.communicate(timeout=240)
        assert controller.returncode == 0, printed
        ledger = from_file(file).ledger
        outcomes = audit(ledger.store, ledger.plan(), verdict=Verdict.FAILED)
        by_trial = {outcome.trial.id: outcome for outcome in outcomes}
        firsts = [names.pod(ledger.plan().uid, trial, 1) for trial in trials.values()]
        wait_until(lambda: all(runner_is_over(statuses(pods).get(pod, {})) for pod in firsts))
        yield Struck(ledger, trials, by_trial, statuses(pods), front.seen())


def campaign(place: Minimal, front: Front) -> Path:
    host, port = front.address
    script = AGENT.format(host=host, port=port)
    return place.campaign(
        campaign="struck",
        reps=len(HOLDS),
        agent={"kind": "command", "options": {"argv": ["/bin/bash", "-c", script]}, "timeout_s": 400},
        limits={
            "cpu": 0.15,
            "memory": "256Mi",
            "disk": "256Mi",
            "parallel": 8,
            "stop_grace_s": 1,
            "blocks_ahead": len(HOLDS),
        },
        store={"pod_endpoint": f"http://{host}:{port}"},
        kubernetes={"graces": GRACES},
    )


def strike(place: Minimal, front: Front, controller: subprocess.Popen[str]) -> dict[str, str]:
    """Deletes each held pod; who is held until told is let go once its runner knows that it must stop. Returns the
    trials by their holds."""
    struck: dict[str, str] = {}

    def come() -> dict[str, str]:
        assert controller.poll() is None, controller.communicate()[0]
        return {hold: trial for hold, trial in front.held().items() if hold not in struck}

    while len(struck) < len(HOLDS):
        for hold, trial in wait_until(come, within_s=200).items():
            chosen = ("-n", place.namespace, "-l", f"{names.TRIAL}={trial},{names.ATTEMPT}=1")
            done(kubectl("delete", "pod", *chosen, "--wait=false"))
            if Hold.parse(hold).until is Until.TOLD:
                wait_until(
                    lambda chosen=chosen: "told to stop" in kubectl("logs", *chosen, "-c", names.RUNNER).stdout
                )
                front.ask(f"/go/{trial}")
            struck[hold] = trial
    return struck


@contextmanager
def held_front(place: Minimal) -> Generator[Front]:
    """In a pod of the test's image: pods reach it in every cluster."""
    sources = {name: (CHECKOUT / "tests/cluster" / name).read_text() for name in ("front.py", "held_front.py")}
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "front"}, "data": sources}
    upstream = os.environ.get("S3_ENDPOINT_PODS") or os.environ["S3_ENDPOINT"]
    argv = ("/opt/trialfleet/bin/python", "-m", "tests.cluster.held_front", str(PORT), upstream, *HOLDS)
    pod = restricted_pod("front", os.environ["TRIALFLEET_TEST_IMAGE"], *argv)
    (main,) = pod["spec"]["containers"]
    main |= {"env": [{"name": "PYTHONPATH", "value": "/code"}], "resources": SERVES}
    main["volumeMounts"].append({"name": "code", "mountPath": "/code/tests/cluster"})
    # Ready means that it listens: a forwarding ends with the first connection that is refused.
    main["startupProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 120}
    pod["spec"]["volumes"].append({"name": "code", "configMap": {"name": "front"}})
    for made in (code, pod):
        done(kubectl("create", "-n", place.namespace, "-f", "-", stdin=made))
    done(kubectl("wait", "-n", place.namespace, "--for=condition=Ready", "pod/front", "--timeout=100s"))
    host = done(kubectl("get", "-n", place.namespace, "pod/front", "-o", "jsonpath={.status.podIP}"))
    with forwarded(place.namespace) as control:
        front = Front((host, PORT), control)
        wait_until(lambda: answers(front))
        yield front


@contextmanager
def forwarded(namespace: str) -> Generator[str]:
    """The front's address on this machine."""
    argv = ("kubectl", "-n", namespace, "port-forward", "pod/front", f":{PORT}")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        try:
            assert program.stdout is not None
            said = program.stdout.readline()  # Forwarding from 127.0.0.1:33451 -> 8080
            assert said, "no way to the front's pod"
            yield f"http://{said.split()[2]}"
        finally:
            program.kill()


def answers(front: Front) -> bool:
    try:
        return bool(front.ask("/held"))
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def watched(place: Minimal, folder: Path) -> Generator[Path]:
    """A file with everything that the API server says of this namespace's pods."""
    file = folder / "pods.json"
    argv = ("kubectl", "-n", place.namespace, "get", "pods", "--watch", "-o", "json")
    with file.open("w") as stream, subprocess.Popen(argv, stdout=stream, stderr=subprocess.DEVNULL) as program:
        try:
            yield file
        finally:
            program.kill()


def statuses(file: Path) -> dict[str, Raw]:
    """Of every pod, the last that was said of it with containers. Half an object: it is being written."""
    decoder, text, at = json.JSONDecoder(), file.read_text(encoding="utf-8"), 0
    found: dict[str, Raw] = {}
    with suppress(json.JSONDecodeError):
        while (start := text.find("{", at)) >= 0:
            pod, at = decoder.raw_decode(text, start)
            if "containerStatuses" in pod["status"]:
                found[pod["metadata"]["name"]] = pod["status"]
    return found


def runner_is_over(status: Raw) -> bool:
    """Whether a pod's status says so."""
    containers = status.get("containerStatuses", ())
    return any(one["name"] == names.RUNNER and "terminated" in one["state"] for one in containers)


# --- each phase -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hold", HOLDS)
def test_a_runner_that_is_told_to_stop_says_so(struck: Struck, hold: str) -> None:
    assert struck.exit_code(hold, names.RUNNER) == TERMINATED


@pytest.mark.parametrize("hold", [hold for hold, lost in HOLDS.items() if lost is None])
def test_a_verdict_that_was_reached_is_kept(struck: Struck, hold: str) -> None:
    outcome, first = struck.outcomes[struck.trials[hold]], struck.first(hold)
    assert (outcome.attempts, outcome.losses) == (1, ())
    assert first.end is not None
    assert first.end.by == "runner"
    assert struck.bundle(hold, 1) is not None


@pytest.mark.parametrize(("hold", "lost"), [(hold, lost) for hold, lost in HOLDS.items() if lost is not None])
def test_else_it_is_lost_with_what_there_is_and_measured_again(struck: Struck, hold: str, lost: Lost) -> None:
    outcome, first = struck.outcomes[struck.trials[hold]], struck.first(hold)
    assert outcome.scored is not None
    assert (outcome.attempts, outcome.losses) == (2, (LossClass.TERMINATED,))
    assert first.end is not None
    loss = first.end.loss
    assert loss is not None
    assert "told to stop" in loss.message
    bundle = struck.bundle(hold, 1)
    assert Lost(first.end.by, loss.agent_started, loss.patched, bundle is not None) == lost, loss.message
    assert (first.end.bundle is not None) == lost.bundle
    assert struck.asked(hold, "scoring") >= {2}
    assert (2 in struck.asked(hold, "agent")) != lost.patched, "an agent whose patch is kept is not asked again"


def test_what_the_agent_had_printed_is_kept(struck: Struck) -> None:
    bundle = struck.bundle("agent.never", 1)
    assert bundle is not None
    assert bundle.files["agent/stdout.log"] == b"begun\n"
    assert struck.asked("agent.never", "patch") == {2}


def test_only_a_claimed_attempt_has_a_start(struck: Struck) -> None:
    campaign, there = struck.ledger.campaign, struck.ledger.store.get
    starts = {hold: keys.attempt_file(campaign, trial, 1, "start.json") for hold, trial in struck.trials.items()}
    assert {hold for hold, start in starts.items() if there(start) is None} == {"grants.never"}
