"""A pod's status as a kubelet writes it: values in, dict out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

RUNNER = "runner"  # the container that the others serve


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def running(pod: Json, image_id: str) -> Json:
    started = now()
    containers = [_container(one, image_id, {"running": {"startedAt": started}}) for one in _containers(pod)]
    return _status("Running", containers, ready=True, startTime=started)


def ended(pod: Json, image_id: str, *, code: int, reason: str, message: str = "") -> Json:
    """Every container has ended; `code`, `reason` and termination `message` are the runner's."""
    finished = now()
    containers = [
        _container(
            one,
            image_id,
            _terminated(finished, code, reason, message)
            if one["name"] == RUNNER
            else _terminated(finished, 0, "Completed", ""),
        )
        for one in _containers(pod)
    ]
    return _status("Failed" if code else "Succeeded", containers, ready=False, startTime=_started(pod))


def evicted(pod: Json, image_id: str) -> Json:
    """Through the eviction API. One that had begun shows its containers as killed."""
    began = "containerStatuses" in pod.get("status", {})
    body = ended(pod, image_id, code=137, reason="Error") if began else _status("Failed", [], ready=False)
    target = _condition("DisruptionTarget", holds=True) | {
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    return body | {"conditions": [*body["conditions"], target]}


def _status(phase: str, containers: Sequence[Json], *, ready: bool, **more: str) -> Json:
    conditions = [
        _condition(kind, holds=ready or kind in ("PodScheduled", "Initialized"))
        for kind in ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    ]
    return {
        "phase": phase,
        "hostIP": "192.0.2.1",
        "podIP": "192.0.2.2",
        "podIPs": [{"ip": "192.0.2.2"}],
        "conditions": conditions,
        "containerStatuses": list(containers),
        **more,
    }


def _condition(kind: str, *, holds: bool) -> Json:
    return {"type": kind, "status": str(holds), "lastTransitionTime": now()}


def _containers(pod: Json) -> list[Json]:
    return list(pod["spec"]["containers"])


def _container(spec: Json, image_id: str, state: Json) -> Json:
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": image_id,
        "containerID": f"containerd://{spec['name']:0<64}",
        "ready": "running" in state,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _terminated(at: str, code: int, reason: str, message: str) -> Json:
    said = {"message": message} if message else {}
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": at, "finishedAt": at, **said}}


def _started(pod: Json) -> str:
    return str(pod.get("status", {}).get("startTime") or now())
