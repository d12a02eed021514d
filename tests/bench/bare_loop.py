"""The least that a campaign costs: the ledger's and the API server's calls of each trial, and nothing else.

`python -m tests.bench.bare_loop STORE NODE NAMESPACE`. The same clients, 16 threads, the same pods; no plan order,
no retries, no checks, no records but bytes. Prints JSON.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from tests.cluster.simulated_campaign import arguments, asked_plan
from trialfleet_controller.backends.kube import manifest, names
from trialfleet_controller.backends.kube.api_requests import CONFIG_MAPS, PODS
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError
from trialfleet_controller.backends.kube.owner import Expiry
from trialfleet_ledger import keys
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import Planned, trials

THREADS = 16
PATIENCE_S = 300  # without one more end: the loop is broken, and says so


class Loop:
    """PUT intent, PUT grants, POST pod; once the watch says it is over: GET end and
    bundle, PUT outcome, DELETE pod."""

    def __init__(self, plan: Plan, store: Store, client: Client, namespace: str) -> None:
        self.plan, self.store, self.client, self.namespace = plan, store, client, namespace
        expiry = Expiry(client, namespace, plan).ensure()
        config_map = manifest.config_map(plan, store_url=store.url, expiry=expiry)
        made = client.call(CONFIG_MAPS.create(namespace, config_map))
        self.owner = manifest.Owner(made["metadata"]["name"], made["metadata"]["uid"])
        self.room = threading.Semaphore(plan.parallel)
        self.over: SimpleQueue[None] = SimpleQueue()
        self.pool = ThreadPoolExecutor(THREADS)
        self.seen: set[str] = set()

    def run(self, every: list[Planned]) -> float:
        """Seconds for all of them."""
        threading.Thread(target=self._follow, daemon=True).start()
        began = time.perf_counter()
        for trial in every:
            self.room.acquire()
            self._do(self._launch, trial)
        for _ in every:
            self.over.get(timeout=PATIENCE_S)
        return time.perf_counter() - began

    def _do(self, work: Any, *args: Any) -> None:
        """It has no patience: one failed call, and the figure is worth nothing."""

        def check(done: Future[None]) -> None:
            if (error := done.exception()) is not None:
                traceback.print_exception(error)
                os._exit(70)

        self.pool.submit(work, *args).add_done_callback(check)

    def _launch(self, trial: Planned) -> None:
        campaign, nonce = self.plan.campaign, secrets.token_hex(16)
        intent = {"trial": trial.id, "attempt": 1, "nonce": nonce, "epoch": 0, "at": time.time()}
        self.store.create(keys.attempt_file(campaign, trial.id, 1, "intent.json"), json.dumps(intent).encode())
        key = keys.grants(campaign, trial.id, 1)
        self.store.create(key, self._grants(trial, nonce))
        pod = manifest.pod(
            self.plan,
            trial=trial.id,
            attempt=1,
            owner=self.owner,
            grants_url=self.store.grant_get(key, expires_s=3600).url,
        )
        self.client.call(PODS.create(self.namespace, pod))

    def _grants(self, trial: Planned, nonce: str) -> bytes:
        def put(name: keys.AttemptFile) -> dict[str, Any]:
            key = keys.attempt_file(self.plan.campaign, trial.id, 1, name)
            return self.store.grant_put(key, expires_s=3600).model_dump()

        task = self.plan.tasks[0].order
        grants = {
            "campaign": self.plan.campaign,
            "trial": trial._asdict(),
            "attempt": 1,
            "intent_nonce": nonce,
            "agent": next(iter(self.plan.agents.values())).spec.model_dump(),
            "task": task.model_dump(),
            "condition": self.plan.cells[0].condition.model_dump(),
            "limits": self.plan.limits.model_dump(),
            "objects": {},
            "live": put("live.log.zst"),
            "start": put("start.json"),
            "patch": put("patch.json"),
            "bundle": put("bundle.tar.zst"),
            "end": put("end.json"),
        }
        return json.dumps(grants).encode()

    def _follow(self) -> None:
        """A server may end a watch at any time: then all that there is is listed again."""
        selector = names.selector(self.plan.uid)
        while True:
            listed = self.client.page(PODS.list(self.namespace, labels=selector))
            for pod in listed.items:
                self._see(pod)
            request = PODS.watch(self.namespace, selector, resource_version=listed.resource_version, timeout_s=300)
            with self.client.watch(request) as watch, suppress(ApiError):
                for line in watch:
                    self._see(json.loads(line)["object"])

    def _see(self, pod: dict[str, Any]) -> None:
        head, phase = pod["metadata"], pod.get("status", {}).get("phase")
        if phase in ("Succeeded", "Failed") and head["uid"] not in self.seen:
            self.seen.add(head["uid"])
            self._do(self._settle, head["labels"][names.TRIAL], head["name"], head["uid"])

    def _settle(self, trial: str, pod: str, uid: str) -> None:
        campaign = self.plan.campaign
        end = self.store.get(keys.attempt_file(campaign, trial, 1, "end.json"))
        bundle = self.store.get(keys.attempt_file(campaign, trial, 1, "bundle.tar.zst"))
        assert end is not None
        assert bundle is not None
        self.store.create(keys.outcome(campaign, trial), end)
        self.client.call(PODS.delete(self.namespace, pod, uid=uid))
        self.room.release()
        self.over.put(None)


def main() -> None:
    options = arguments("bare").parse_args()
    plan = asked_plan(options)
    every = trials(plan)
    loop = Loop(plan, open_store(options.store), Client.connect(threads=THREADS), options.namespace)
    used = time.process_time()
    took = loop.run(every)
    print(json.dumps({"trials": len(every), "took_s": took, "core_s": time.process_time() - used}), flush=True)


if __name__ == "__main__":
    main()
