"""Attempts on a real kubelet beside pods that run `true`: one at a time, and 80 at once.

Needs the runner's image in $TRIALFLEET_TEST_IMAGE. $TRIALFLEET_BENCH_PODS (80) chooses fewer at once.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.bench.figure import Figure
from tests.cluster import simulated_rig
from tests.cluster.minimal import TASK, Minimal, minimal
from trialfleet_controller.backends.kube.api_requests import PODS, KubeRequest
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.manifest import container as shaped
from trialfleet_controller.backends.kube.manifest import planned, pod_spec
from trialfleet_controller.campaigns import from_file
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.verdicts import Scored
from trialfleet_ledger.trial_order import trials

AT_ONCE = int(os.environ.get("TRIALFLEET_BENCH_PODS", "80"))
ALONE = 7
ROUNDS = 2  # of AT_ONCE
LABEL = "trialfleet.dev/bare"
TEST = "tests/test_regressions.py::test_aligned"
CHECKS = """
import sys
import sqlparse
try:
    sqlparse.format("case when a then begin b end else c end", reindent_aligned=True)
    found = ""
except Exception:
    found = "<failure/>"
with open(sys.argv[1], "w") as file:
    file.write('<testsuite><testcase classname="tests.test_regressions" name="test_aligned">'
               f"{found}</testcase></testsuite>")
"""
Json = dict[str, Any]


def measure() -> list[Figure]:
    if not simulated_rig.there() or "TRIALFLEET_TEST_IMAGE" not in os.environ:
        missing = f"{simulated_rig.MISSING}, and the runner's image in $TRIALFLEET_TEST_IMAGE"
        return [Figure("real kubelet", None, "", note=missing)]
    with tempfile.TemporaryDirectory() as folder, minimal(Path(folder)) as place:
        task = str(_one_line_of_tests(place.folder))
        alone = _campaign(place, "alone", tasks=[str(TASK)], reps=ALONE, width=1)
        many = _campaign(place, "many", tasks=[task], reps=ROUNDS * AT_ONCE, width=AT_ONCE)
        tested = _campaign(place, "tested", tasks=[str(TASK)], reps=ROUNDS * AT_ONCE, width=AT_ONCE)
        client = _Unbound.connect(threads=16)
        bare_s, _ = _bare(client, place.namespace, alone, count=ALONE, width=1)
        overhead_s = statistics.median(_overheads(*_drive(place, alone, client)[:2]))
        _, bare_took_s = _bare(client, place.namespace, many, count=ROUNDS * AT_ONCE, width=AT_ONCE)
        took_s = _drive(place, many, client)[2]
        tested_took_s = _drive(place, tested, client)[2]
    pods, bare, with_tests = (60 * ROUNDS * AT_ONCE / seconds for seconds in (took_s, bare_took_s, tested_took_s))
    return [
        Figure("a pod that runs `true`", statistics.median(bare_s), "s", note=f"median of {ALONE}, one at a time"),
        Figure("an attempt without agent and tests", overhead_s, "s", note=f"median of {ALONE}, one at a time"),
        Figure("  of the bare pod's time", overhead_s / statistics.median(bare_s), "×", goal=1.7),
        Figure(f"bare pods, {AT_ONCE} at once", bare, "/min"),
        Figure(f"attempts of `nop`, {AT_ONCE} at once", pods, "/min", note="one line of tests, without pytest"),
        Figure("  of the bare pods' rate", pods / bare, "×", floor=0.25),
        Figure("  the same with pytest and a real suite", with_tests / bare, "×", note=f"{with_tests:.1f} /min"),
    ]


def _one_line_of_tests(folder: Path) -> Path:
    """The quick-start task with its repository and its environment, whose tests are one call without pytest."""
    file = yaml.safe_load(TASK.read_text())
    (task,) = file["tasks"]
    environment = task["environment"]
    lock = os.path.relpath(TASK.parent / environment["lock"], folder.resolve())
    command = ["python", "-S", "-c", CHECKS, "{junit}"]
    task |= {
        "prompt_source": "issue",
        "issue": "Aligned formatting crashes on a CASE whose END an inner block has taken.",
        "fail_to_pass": [TEST],
        "pass_to_pass": [],
    }
    task["environment"] = {**environment, "lock": lock, "test_command": command}
    file["repo"] = {"url": file["repo"]["url"]}
    path = folder / "one-line.yaml"
    path.write_text(yaml.safe_dump(file))
    return path


class _Unbound(Client):
    """Pods without requests and limits of CPU: so many would not fit on a small node."""

    def call(self, request: KubeRequest) -> Json:
        if request.method == "POST" and request.body is not None and request.body["kind"] == "Pod":
            _unbind(request.body)
        return super().call(request)


def _unbind(pod: Json) -> None:
    for container in pod["spec"]["containers"]:
        for bounds in container.get("resources", {}).values():
            bounds.pop("cpu", None)
            bounds.update({"memory": "64Mi"} if bounds is container["resources"].get("requests") else {})


def _campaign(place: Minimal, name: str, *, tasks: list[str], reps: int, width: int) -> Path:
    limits = {"cpu": 1, "memory": "512Mi", "disk": "128Mi", "parallel": width}
    kubernetes = {"max_pending": width, "creates_per_s": 1000, "creates_burst": width}
    path = place.campaign(campaign=name, tasks=tasks, reps=reps, limits=limits, kubernetes=kubernetes)
    frozen = place.trialfleet("plan", str(path), "--freeze")
    assert frozen.code == 0, frozen.err
    return path.rename(path.with_name(f"{name}.yaml"))


def _drive(place: Minimal, path: Path, client: Client) -> tuple[Ledger, Plan, float]:
    """The campaign without Ray, and how long it took."""
    store = from_file(path).store
    ledger = Ledger(store, path.stem)
    plan = ledger.plan()
    driver = epochs.claim(store, plan.campaign, epochs.HeartbeatConfig())
    backend = KubernetesBackend(plan, store_url=store.url, client=client)
    began = time.monotonic()
    ending = Dispatcher(plan, trials(plan), ledger, backend, driver).run()
    took_s = time.monotonic() - began
    driver.end()
    assert ending is Ending.COMPLETE, ending
    return ledger, plan, took_s


def _overheads(ledger: Ledger, plan: Plan) -> list[float]:
    """Seconds from an attempt's intent to its end, less agent and tests. Needs clocks that agree."""
    spent: list[float] = []
    for trial in trials(plan):
        (attempt,) = ledger.attempts.chain(trial.id)
        assert attempt.end is not None
        assert isinstance(attempt.end.scored, Scored), attempt.end.loss
        metrics = attempt.end.scored.metrics
        spent.append(attempt.end.at - attempt.intent.at - (metrics.agent_s or 0) - (metrics.tests_s or 0))
    return spent


def _bare(client: Client, namespace: str, path: Path, *, count: int, width: int) -> tuple[list[float], float]:
    """Seconds of each pod, from before its creation to the event that it succeeded; and of all."""
    plan = Ledger(from_file(path).store, path.stem).plan()
    spec, label = pod_spec(planned(plan), uid=65532), path.stem
    begun: dict[str, float] = {}
    took: list[float] = []
    began = time.monotonic()

    def create(number: int) -> None:
        name = f"bare-{label}-{number}"
        one = shaped(planned(plan), "bare", ("true",), env=[])
        begun[name] = time.monotonic()
        pod = {"metadata": {"name": name, "labels": {LABEL: label}}, "spec": {**spec, "containers": [one]}}
        client.call(PODS.create(namespace, {"apiVersion": "v1", "kind": "Pod", **pod}))

    with _events(client, namespace, f"{LABEL}={label}") as events:
        for number in range(min(width, count)):
            create(number)
        for pod in events:
            name = pod["metadata"]["name"]
            if pod["status"].get("phase") != "Succeeded" or name not in begun:
                continue
            took.append(time.monotonic() - begun.pop(name))
            client.call(PODS.delete(namespace, name, uid=pod["metadata"]["uid"]))
            if len(took) == count:
                break
            if len(took) + len(begun) < count:
                create(len(took) + len(begun))
    return took, time.monotonic() - began


@contextmanager
def _events(client: Client, namespace: str, selector: str) -> Generator[Generator[Json]]:
    version = client.page(PODS.list(namespace, labels=selector)).resource_version
    request = PODS.watch(namespace, selector, resource_version=version, timeout_s=3600)
    with client.watch(request) as watch:
        yield (json.loads(line)["object"] for line in watch)
