"""A controller in a process of its own, on pods of a simulated node: `python -m
tests.cluster.simulated_campaign STORE NODE NAMESPACE [options]`.

The plan names no real task; everything from the ledger to the API server is what a campaign uses. The last line
that it prints is JSON: what it took.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.cluster.simulated.kubelet import LABEL
from tests.support.plans import make_plan
from trialfleet_controller.backends.kube.api_requests import KubeRequest
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.stop_conditions import PollIntervals
from trialfleet_ledger.campaign_spec import Graces, Toleration
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import KubernetesPlan, Plan
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.s3 import S3Store
from trialfleet_ledger.trial_order import trials

IMAGE_ID = f"sha256:{digest('simulated')}"
CONDITIONS = ("none", "placebo", "flat_llm", "intent_layer", "preamble_only")


def simulated_plan(
    *, node: str, namespace: str, tasks: int, reps: int, width: int, name: str = "simulated"
) -> Plan:
    """Trials = tasks × 5 × reps. The API server and the controller alone decide the pace."""
    kube = KubernetesPlan(
        image="simulated:1",
        image_id=IMAGE_ID,
        network="enforced",
        namespaces=(namespace,),
        node_selector={LABEL: node},
        tolerations=(Toleration(key=LABEL, operator="Exists"),),
        max_pending=width,
        creates_per_s=10_000,
        creates_burst=1_000,
        graces=Graces(unseen_s=20, termination_s=5),
    )
    plan = make_plan(tasks=tasks, conditions=CONDITIONS, reps=reps, parallel=width)
    return plan.model_copy(
        update={"campaign": name, "uid": digest([node, name])[:32], "kubernetes": kube, "blocks_ahead": reps}
    )


def arguments(name: str) -> argparse.ArgumentParser:
    """What a program that drives such a plan is told; `name`: of its campaign, unless told."""
    parser = argparse.ArgumentParser()
    for place in ("store", "node", "namespace"):
        parser.add_argument(place)
    parser.add_argument("--name", default=name)
    for option, default in (("--tasks", 2), ("--reps", 20), ("--width", 1000)):
        parser.add_argument(option, type=int, default=default)
    return parser


def asked_plan(options: argparse.Namespace) -> Plan:
    """The plan that `arguments` describe."""
    names = ("node", "namespace", "tasks", "reps", "width", "name")
    return simulated_plan(**{name: getattr(options, name) for name in names})


class Counted:
    """How often each operation of store and API server was asked for."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def of_store(self, store: S3Store) -> None:
        untyped: Any = store.client.meta.events
        untyped.register("before-call.s3", lambda model, **_: self.calls.update([f"s3 {model.name}"]))

    def of_client(self, client: Client) -> None:
        plain = client.call

        def call(request: KubeRequest) -> Any:
            self.calls[f"api {request.method}"] += 1
            return plain(request)

        client.call = call  # type: ignore[method-assign]


REREAD_S = 1.0


def reread_at_once() -> None:
    """What is torn here is torn for good: waiting a minute between its readings only takes time."""
    plain = S3Store.reread

    def reread(self: S3Store, key: str, over_s: float) -> Iterator[bytes | None]:
        return plain(self, key, min(over_s, REREAD_S))

    S3Store.reread = reread  # type: ignore[method-assign]


def main() -> None:
    began = time.monotonic()
    parser = arguments("simulated")
    parser.add_argument("--no-beat", action="store_true", help="no epochs: two controllers at once")
    parser.add_argument("--count", action="store_true", help="count the calls")
    options = parser.parse_args()
    plan = asked_plan(options)
    store = open_store(options.store)
    reread_at_once()
    ledger = Ledger(store, plan.campaign)
    plan, _ = ledger.freeze(plan)
    client, counted = Client.connect(threads=24), Counted()
    if options.count:
        assert isinstance(store, S3Store)
        counted.of_store(store)
        counted.of_client(client)
    driver = epochs.claim(store, plan.campaign, epochs.HeartbeatConfig(enabled=not options.no_beat))

    def tell(message: str) -> None:
        print(f"{time.monotonic() - began:.2f} {message}", flush=True)

    backend = KubernetesBackend(plan, store_url=options.store, client=client, tell=tell)
    every = trials(plan)
    dispatcher = Dispatcher(plan, every, ledger, backend, driver, tell=tell, intervals=PollIntervals())
    tell("driving")
    driving, used = time.monotonic(), time.process_time()
    ending = dispatcher.run()
    took, core_s = time.monotonic() - driving, time.process_time() - used
    driver.end()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    said = {"ending": ending, "trials": len(every), "took_s": took, "core_s": core_s, "peak_mb": peak}
    print(json.dumps({**said, "calls": counted.calls}), flush=True)


if __name__ == "__main__":
    main()
