"""A real API server's refusals of an attempt's pod, each by the object that causes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import await_quota, done, fresh_namespace, kubectl, restricted_namespace
from tests.support.plans import kube_plan
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import manifest
from trialfleet_controller.backends.kube.admission import DenialDuration
from trialfleet_controller.backends.kube.api_requests import PODS, Json
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import Forbidden

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster")]

OWNER = manifest.Owner("owner", "00000000-0000-0000-0000-000000000000")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    made = Client.connect()
    yield made
    made.close()


@pytest.fixture
def namespace() -> Iterator[str]:
    with fresh_namespace("trialfleet-admission") as name:
        restricted_namespace(name)
        wait_until(lambda: kubectl("get", "serviceaccount", "default", "-n", name).returncode == 0)
        yield name


def attempt(**kubernetes: Any) -> Json:
    plan = kube_plan(**kubernetes)
    return manifest.pod(plan, trial="a" * 26, attempt=1, owner=OWNER, grants_url="http://store/grants")


def quota(**hard: str) -> Json:
    named = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": named}}


def limit_range(**bounds: Any) -> Json:
    limits = [{"type": "Container", **bounds}]
    return {"kind": "LimitRange", "metadata": {"name": "narrow"}, "spec": {"limits": limits}}


def apply(namespace: str, thing: Json) -> None:
    done(kubectl("apply", "-n", namespace, "-f", "-", stdin={"apiVersion": "v1", **thing}))
    if thing["kind"] == "ResourceQuota":
        await_quota(namespace)


@pytest.mark.parametrize(
    ("thing", "by", "lasts", "hint"),
    [
        (
            quota(limits_cpu="16"),
            "ResourceQuota compute, which wants limits.cpu",
            DenialDuration.FOREVER,
            "runner.cpu",
        ),
        (quota(pods="0"), "it allows pods 0, and one attempt needs 1", DenialDuration.FOREVER, "limits.parallel"),
        (quota(requests_memory="8Mi"), "it allows requests.memory 8Mi", DenialDuration.FOREVER, "limits.memory"),
        (
            limit_range(max={"cpu": "20m"}),
            "maximum cpu usage per Container is 20m",
            DenialDuration.FOREVER,
            "limits.cpu",
        ),
        (
            limit_range(max={"memory": "64Mi"}),
            "maximum memory usage per Container",
            DenialDuration.FOREVER,
            "limits.memory",
        ),
        (
            limit_range(maxLimitRequestRatio={"memory": "1"}),
            "memory max limit to request ratio",
            DenialDuration.FOREVER,
            "kubectl -n NAMESPACE describe limitrange",
        ),
    ],
    ids=lambda value: value["kind"] + str(value["spec"]) if isinstance(value, dict) else "",
)
def test_what_refuses_an_attempt_is_named_with_its_field(
    client: Client, namespace: str, thing: Json, by: str, lasts: DenialDuration, hint: str
) -> None:
    apply(namespace, thing)
    with pytest.raises(Forbidden) as caught:
        client.call(PODS.create(namespace, attempt(), dry_run=True))
    denial = caught.value.denial
    assert by in denial.by, caught.value.message
    assert denial.lasts is lasts
    assert hint in denial.hint


def test_classes_that_do_not_exist_are_named(client: Client, namespace: str) -> None:
    for field in ("runtime_class", "priority_class"):
        with pytest.raises(Forbidden) as caught:
            client.call(PODS.create(namespace, attempt(**{field: "no-such"}), dry_run=True))
        assert "no-such" in caught.value.denial.by, caught.value.message
        assert f"kubernetes.{field}" in caught.value.denial.hint


def test_a_namespace_whose_quota_counts_cpu_limits_admits_a_limited_runner(client: Client, namespace: str) -> None:
    apply(namespace, quota(limits_cpu="16", limits_memory="64Gi"))
    runner = {"cpu": 0.5, "memory": "512Mi"}
    made = client.call(PODS.create(namespace, attempt(runner=runner), dry_run=True))
    limits = made["spec"]["containers"][0]["resources"]["limits"]
    assert (limits["cpu"], limits["memory"]) == ("500m", str(512 * 2**20))
