"""Requests to a Kubernetes API server as values. Pure: `client` sends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

Json = dict[str, Any]
QueryValue = str | int | bool | None

JSON_TYPE = "application/json"
MERGE_PATCH_TYPE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """One HTTP request. `query`: a None is left out. `watch_s`: after so many seconds the server ends the answer,
    which is a watch; None: the answer comes at once."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    query: Mapping[str, QueryValue] = field(default_factory=dict[str, QueryValue])
    body: Json | None = None
    content_type: str = JSON_TYPE
    watch_s: int | None = None

    @property
    def target(self) -> str:
        """Path and query.

        >>> KubeRequest("GET", "/version", {"watch": True, "continue": None}).target
        '/version?watch=true'
        """
        given = {
            key: str(value).lower() if isinstance(value, bool) else value
            for key, value in self.query.items()
            if value is not None
        }
        return f"{self.path}?{urlencode(given)}" if given else self.path


@dataclass(frozen=True, slots=True)
class Resource:
    """Builds the requests for one kind of object. `api`: the path of its group and version."""

    api: str
    plural: str

    def path(self, namespace: str | None, name: str = "") -> str:
        """`namespace` None: of an object that belongs to none.

        >>> Resource("/api/v1", "pods").path("trials", "a"), Resource("/api/v1", "nodes").path(None)
        ('/api/v1/namespaces/trials/pods/a', '/api/v1/nodes')
        """
        folder = self.api if namespace is None else f"{self.api}/namespaces/{namespace}"
        return f"{folder}/{self.plural}" + (f"/{name}" if name else "")

    def create(self, namespace: str, body: Json, *, dry_run: bool = False) -> KubeRequest:
        """`dry_run`: the server admits the object or refuses it, and keeps nothing."""
        return KubeRequest("POST", self.path(namespace), {"dryRun": "All" if dry_run else None}, body)

    def get(self, namespace: str | None, name: str) -> KubeRequest:
        return KubeRequest("GET", self.path(namespace, name))

    def patch(self, namespace: str, name: str, change: Json) -> KubeRequest:
        """`change`: a JSON merge patch. If its metadata has a uid, another object of that name is not changed
        (`Conflict`)."""
        return KubeRequest("PATCH", self.path(namespace, name), body=change, content_type=MERGE_PATCH_TYPE)

    def delete(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
        propagation: str = "",
    ) -> KubeRequest:
        """With `uid` only that object is deleted, with `resource_version` only in that state; else `Conflict`.
        `propagation`: what happens to the objects that this one owns."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Json = {
            "preconditions": {key: value for key, value in preconditions.items() if value} or None,
            "gracePeriodSeconds": grace_s,
            "propagationPolicy": propagation or None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **given}
        return KubeRequest("DELETE", self.path(namespace, name), body=body)

    def list(
        self, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> KubeRequest:
        """The present state: without a resource version no cache answers with an older one. `labels` and `fields`
        are selectors."""
        return KubeRequest("GET", self.path(namespace), {"labelSelector": labels, "fieldSelector": fields})

    def watch(self, namespace: str, labels: str, *, resource_version: str, timeout_s: int) -> KubeRequest:
        """Events after `resource_version`, for at most `timeout_s`, with bookmarks."""
        query: dict[str, QueryValue] = {
            "watch": True,
            "allowWatchBookmarks": True,
            "labelSelector": labels,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_s,
        }
        return KubeRequest("GET", self.path(namespace), query, watch_s=timeout_s)


PODS = Resource("/api/v1", "pods")
EVENTS = Resource("/api/v1", "events")
CONFIG_MAPS = Resource("/api/v1", "configmaps")
RESOURCE_QUOTAS = Resource("/api/v1", "resourcequotas")
NAMESPACES = Resource("/api/v1", "namespaces")
NODES = Resource("/api/v1", "nodes")
JOBS = Resource("/apis/batch/v1", "jobs")
LOCAL_QUEUES = Resource("/apis/kueue.x-k8s.io/v1beta2", "localqueues")
_ACCESS_REVIEWS = Resource("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")

VERSION = KubeRequest("GET", "/version")


def pod_log(namespace: str, name: str, *, container: str, lines: int, limit_bytes: int) -> KubeRequest:
    """The last `lines` of a container's output, cut at `limit_bytes`."""
    query: dict[str, QueryValue] = {"container": container, "tailLines": lines, "limitBytes": limit_bytes}
    return KubeRequest("GET", f"{PODS.path(namespace, name)}/log", query)


def pod_events(namespace: str, uid: str) -> KubeRequest:
    """What the cluster reported about one pod; API servers keep it for an hour."""
    return EVENTS.list(namespace, fields=f"involvedObject.uid={uid}")


def access_review(
    namespace: str, verb: str, resource: str, *, subresource: str = "", group: str = ""
) -> KubeRequest:
    """Whether the caller may do that: every caller may ask."""
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
    if subresource:
        attributes["subresource"] = subresource
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return KubeRequest("POST", _ACCESS_REVIEWS.path(None), body=body)
