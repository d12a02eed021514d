"""Pods as an API server sends them."""

from __future__ import annotations

from typing import Any

from tests.support.plans import IMAGE_ID
from trialfleet_controller.backends.kube import manifest

TRIAL = "abcdefghijklmnopqrstuvwxyz"
GRANTS = "https://store.example/bucket/demo/grants/x/1.json?X-Amz-Signature=deadbeef"
OWNER = manifest.Owner("trialfleet-000000000000", "11111111-2222-3333-4444-555555555555")


def status(name: str, **state: dict[str, Any]) -> dict[str, Any]:
    """A container's status: `status("runner", terminated={"exitCode": 0})`."""
    return {"name": name, "state": state, "imageID": "" if "waiting" in state else f"example/x@{IMAGE_ID}"}


def raw_pod(
    name: str = "t-a-a1",
    *,
    uid: str = "u1",
    version: str = "1",
    phase: str = "Running",
    containers: list[dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """`more`: further fields of the status; `metadata` of the metadata."""
    running = [status(one, running={}) for one in ("runner", "agent", "score")]
    return {
        "metadata": {"name": name, "uid": uid, "resourceVersion": version, **more.pop("metadata", {})},
        "spec": {"nodeName": "node-1"},
        "status": {"phase": phase, "containerStatuses": running if containers is None else containers, **more},
    }
