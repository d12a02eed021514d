"""The node and its pods: registers, keeps its lease, follows the pods that the scheduler gives it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import urllib3

from tests.cluster.simulated import statuses
from tests.cluster.simulated.life import Life, Ward
from tests.cluster.simulated.wire import MERGE, Refused

Json = dict[str, Any]

LABEL = "trialfleet.dev/simulated"  # a plan's nodeSelector; and a taint, so that nobody else's pods come
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_LEASE_S = 40
_RENEW_S = 10.0
_ROOM = {"cpu": "1000k", "memory": "1Pi", "ephemeral-storage": "1Pi", "pods": "100k"}


class Kubelet:
    def __init__(self, ward: Ward) -> None:
        self._ward = ward
        self._lives: dict[str, Life] = {}
        self._stopping = threading.Event()

    def run(self, ready: Callable[[], None]) -> None:
        """Until `stop`; `ready` is called once the node takes pods."""
        self._register()
        threading.Thread(target=self._keep_lease, daemon=True).start()
        announced = False
        while not self._stopping.is_set():
            with suppress(Refused, urllib3.exceptions.HTTPError, TimeoutError):
                version = self._list()
                if not announced:
                    ready()
                    announced = True
                self._follow(version)
            self._stopping.wait(0.2)

    def stop(self) -> None:
        """Pods of the node stay; the node goes, and its lease."""
        self._stopping.set()
        for path in (f"/api/v1/nodes/{self._ward.node}", f"{_LEASES}/{self._ward.node}"):
            with suppress(Refused, TimeoutError):
                self._ward.api.call("DELETE", path)

    # --- the node -----------------------------------------------------------------------------------

    def _register(self) -> None:
        name, call = self._ward.node, self._ward.api.call
        node: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {LABEL: name, "kubernetes.io/hostname": name}},
            "spec": {"taints": [{"key": LABEL, "value": name, "effect": "NoSchedule"}]},
        }
        with suppress(Refused):  # there already: this is a restart
            call("POST", "/api/v1/nodes", node)
        self._say_ready()
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": _LEASE_S, "renewTime": _micro()},
        }
        with suppress(Refused):
            call("POST", _LEASES, lease)

    def _say_ready(self) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": statuses.now(),
            "lastTransitionTime": statuses.now(),
        }
        status = {"status": {"capacity": _ROOM, "allocatable": _ROOM, "conditions": [ready]}}
        self._ward.api.call("PATCH", f"/api/v1/nodes/{self._ward.node}/status", status, kind=MERGE)

    def _keep_lease(self) -> None:
        """Without it the node would be unreachable within a minute, and its pods evicted. A cluster that has lost
        sight of the lease, as when its API server came and went, takes the node back once it says it is ready."""
        while not self._stopping.wait(_RENEW_S):
            with suppress(Refused, TimeoutError):
                renewed = {"spec": {"renewTime": _micro()}}
                self._ward.api.call("PATCH", f"{_LEASES}/{self._ward.node}", renewed, kind=MERGE)
                if not self._ready():
                    self._say_ready()

    def _ready(self) -> bool:
        node = self._ward.api.call("GET", f"/api/v1/nodes/{self._ward.node}")
        conditions = node.get("status", {}).get("conditions", ())
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    # --- its pods -----------------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        return f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self._ward.node}"

    def _list(self) -> str:
        listed = self._ward.api.call("GET", self._path)
        there = {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in [uid for uid in self._lives if uid not in there]:
            self._lives.pop(uid).gone = True
        for pod in listed["items"]:
            self._seen(pod)
        return str(listed["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        path = f"{self._path}&resourceVersion={version}"
        for event in self._ward.api.events(path, timeout_s=random.randint(240, 300)):
            if event["type"] == "ERROR" or self._stopping.is_set():
                return
            if event["type"] != "DELETED":
                self._seen(event["object"])
            elif (life := self._lives.pop(event["object"]["metadata"]["uid"], None)) is not None:
                life.gone = True

    def _seen(self, pod: Json) -> None:
        """A pod that was begun by an earlier process of this node goes on from its start."""
        head, phase = pod["metadata"], pod.get("status", {}).get("phase")
        life = self._lives.get(head["uid"])
        if life is None:
            life = self._lives[head["uid"]] = Life(pod, self._ward)
            if phase not in ("Succeeded", "Failed") and "deletionTimestamp" not in head:
                self._ward.agenda.after(self._ward.behaviour.startup_s, life.begin)
        if "deletionTimestamp" in head:
            self._ward.agenda.after(0, life.stop)


def _micro() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
