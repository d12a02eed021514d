"""What a RayCluster may say, where the KubeRay operator has not told the cluster itself.

The fields of `ray.io/v1` in KubeRay 1.4 to 1.7, as far as k8s/kuberay could name them; its own definition is a
megabyte, most of it the schema of pods, which admission checks (`test_manifests.py`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.cluster.cluster import done, kubectl
from tests.support.waiting import wait_until

NAME = "rayclusters.ray.io"
Raw = dict[str, Any]


def _object(required: tuple[str, ...] = (), **properties: Raw) -> Raw:
    return {"type": "object", "properties": properties, "required": list(required)}


_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "integer", "format": "int32"}, {"type": "boolean"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_HEAD = _object(
    ("template",), enableIngress=_FLAG, rayStartParams=_TEXTS, serviceType=_TEXT, headService=_ANY, template=_ANY
)
_WORKERS = _object(
    ("groupName", "minReplicas", "maxReplicas", "template"),
    groupName=_TEXT,
    replicas=_NUMBER,
    minReplicas=_NUMBER,
    maxReplicas=_NUMBER,
    numOfHosts=_NUMBER,
    idleTimeoutSeconds=_NUMBER,
    suspend=_FLAG,
    rayStartParams=_TEXTS,
    template=_ANY,
)
_SPEC = _object(
    ("headGroupSpec",),
    rayVersion=_TEXT,
    suspend=_FLAG,
    managedBy=_TEXT,
    enableInTreeAutoscaling=_FLAG,
    autoscalerOptions=_ANY,
    gcsFaultToleranceOptions=_ANY,
    headServiceAnnotations=_TEXTS,
    headGroupSpec=_HEAD,
    workerGroupSpecs={"type": "array", "items": _WORKERS},
)
_DEFINITION: Raw = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": "ray.io",
        "names": {"kind": "RayCluster", "listKind": "RayClusterList", "plural": "rayclusters"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _object(spec=_SPEC)}}
        ],
    },
}


@contextmanager
def ray_clusters() -> Generator[None]:
    """The API server knows what a RayCluster is: by the operator that is there, which is left alone, or by us."""
    ours = kubectl("get", "crd", NAME).returncode != 0
    if ours:
        done(kubectl("create", "-f", "-", stdin=_DEFINITION))
    try:
        listing = ("get", "--raw", "/apis/ray.io/v1/rayclusters?limit=1")
        wait_until(lambda: kubectl(*listing).returncode == 0, "the API server serves ray.io/v1", every_s=0.3)
        yield
    finally:
        if ours:
            kubectl("delete", "crd", NAME, "--wait=false")
