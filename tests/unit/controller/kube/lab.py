"""Plans for pods, and raw pods as an API server sends them."""

from __future__ import annotations

from typing import Any

from trialfleet_controller.kube import manifest
from trialfleet_runner.campaign import Graces, KubernetesPlan, Plan, RetrySpec
from trialfleet_runner.contract import AgentSpec, Limits

IMAGE_ID = "sha256:" + "0a" * 32
TRIAL = "abcdefghijklmnopqrstuvwxyz"
GRANTS = "https://store.example/bucket/demo/grants/x/1.json?X-Amz-Signature=deadbeef"
OWNER = manifest.Owner("trialfleet-000000000000", "11111111-2222-3333-4444-555555555555")


def kube_plan(**kube: Any) -> Plan:
    """A plan without tasks: what a backend reads of one. `kube` overrides fields of its section for Kubernetes."""
    section = {"image": "trialfleet-runner:1", "image_id": IMAGE_ID, "network": "enforced"} | kube
    return Plan(
        campaign="demo",
        uid="0f" * 16,
        created=0,
        seed=1,
        reps=1,
        agent=AgentSpec(kind="nop", timeout_s=60),
        agent_digest="0" * 64,
        limits=Limits(),
        parallel=10,
        retries=RetrySpec(),
        blocks_ahead=4,
        conditions={},
        tasks=(),
        cells=(),
        inputs={},
        versions={},
        kubernetes=KubernetesPlan.model_validate(section),
    )


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


GRACES = Graces()
