"""Each request says exactly what the API server is asked."""

from __future__ import annotations

import pytest

from trialfleet_controller.backends.kube.api_requests import (
    CONFIG_MAPS,
    JOBS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PODS,
    VERSION,
    KubeRequest,
    access_review,
    pod_events,
    pod_log,
)

POD = {"metadata": {"name": "a"}}
TARGETS = [
    (PODS.create("trials", POD), "POST /api/v1/namespaces/trials/pods"),
    (PODS.create("trials", POD, dry_run=True), "POST /api/v1/namespaces/trials/pods?dryRun=All"),
    (PODS.get("trials", "a"), "GET /api/v1/namespaces/trials/pods/a"),
    (PODS.list("trials", labels="x=y"), "GET /api/v1/namespaces/trials/pods?labelSelector=x%3Dy"),
    (PODS.delete("trials", "a"), "DELETE /api/v1/namespaces/trials/pods/a"),
    (CONFIG_MAPS.get("trials", "c"), "GET /api/v1/namespaces/trials/configmaps/c"),
    (JOBS.patch("trials", "j", {}), "PATCH /apis/batch/v1/namespaces/trials/jobs/j"),
    (LOCAL_QUEUES.get("trials", "q"), "GET /apis/kueue.x-k8s.io/v1beta2/namespaces/trials/localqueues/q"),
    (NAMESPACES.get(None, "trials"), "GET /api/v1/namespaces/trials"),
    (NODES.list(), "GET /api/v1/nodes"),
    (VERSION, "GET /version"),
    (pod_events("trials", "u1"), "GET /api/v1/namespaces/trials/events?fieldSelector=involvedObject.uid%3Du1"),
    (
        pod_log("trials", "a", container="runner", lines=20, limit_bytes=8192),
        "GET /api/v1/namespaces/trials/pods/a/log?container=runner&tailLines=20&limitBytes=8192",
    ),
    (
        access_review("trials", "get", "pods"),
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ),
]


@pytest.mark.parametrize(("request_", "sent"), TARGETS, ids=[sent for _, sent in TARGETS])
def test_method_and_target(request_: KubeRequest, sent: str) -> None:
    assert f"{request_.method} {request_.target}" == sent
    assert (request_.body is None) == (request_.method == "GET")


def test_a_watch_says_how_long_it_lasts_to_the_server_and_to_the_client() -> None:
    request = PODS.watch("trials", "x=y", resource_version="7", timeout_s=240)
    assert request.query == {
        "watch": True,
        "allowWatchBookmarks": True,
        "labelSelector": "x=y",
        "resourceVersion": "7",
        "timeoutSeconds": 240,
    }
    assert request.watch_s == 240
    assert PODS.list("trials").watch_s is None


def test_a_deletion_names_the_object_that_it_means() -> None:
    options = {"apiVersion": "v1", "kind": "DeleteOptions"}
    assert PODS.delete("trials", "a").body == options
    assert PODS.delete("trials", "a", uid="u1", grace_s=0).body == {
        **options,
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 0,
    }
    stale = PODS.delete("trials", "a", uid="u1", resource_version="7").body
    assert stale is not None
    assert stale["preconditions"] == {"uid": "u1", "resourceVersion": "7"}
    owned = JOBS.delete("trials", "j", propagation="Background").body
    assert owned == {**options, "propagationPolicy": "Background"}


def test_only_a_patch_is_sent_as_a_merge_patch() -> None:
    assert JOBS.patch("trials", "j", {"spec": {}}).content_type == "application/merge-patch+json"
    assert {request.content_type for request, _ in TARGETS if request.method != "PATCH"} == {"application/json"}


def test_an_access_review_asks_for_a_subresource_only_where_there_is_one() -> None:
    def attributes(request: KubeRequest) -> object:
        assert request.body is not None
        return request.body["spec"]["resourceAttributes"]

    plain = {"namespace": "trials", "verb": "get", "group": "", "resource": "pods"}
    assert attributes(access_review("trials", "get", "pods")) == plain
    assert attributes(access_review("trials", "get", "pods", subresource="log")) == {**plain, "subresource": "log"}
