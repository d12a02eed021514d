"""Before and after a campaign, under the Roles of k8s/base: the image on nodes, and everything cleared away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.minimal import Minimal, client, kubectl, minimal

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "s3", "image"), pytest.mark.slow]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minimal]:
    with minimal(tmp_path_factory.mktemp("day-two")) as made:
        yield made


def real_node() -> str:
    """One that runs containers: others may only be simulated."""
    told = kubectl(
        "get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.nodeInfo.osImage}\n{end}"
    )
    return next(name for name, image in (line.split(" ", 1) for line in told.splitlines()) if image.strip())


def keys(place: Minimal) -> set[str]:
    return {item["Key"] for item in client().list_objects_v2(Bucket=place.bucket).get("Contents", ())}


def test_prepull_says_which_nodes_are_ready(place: Minimal) -> None:
    file = str(place.campaign())
    ran = place.trialfleet("prepull", file)
    assert ran.code == 2
    assert "may not list nodes" in ran.err
    assert "--node NAME" in ran.err
    node = real_node()
    ran = place.trialfleet("prepull", file, "--node", node)
    assert ran.code == 0, ran.err
    assert f"{node}: ready (1/1)" in ran.out
    ran = place.trialfleet("prepull", str(place.campaign(kubernetes={"image": "no-such-image:1"})), "--node", node)
    assert ran.code == 2
    assert "no-such-image:1 cannot be had" in ran.out
    assert "ready on 0 of 1 nodes" in ran.err
    assert kubectl("get", "pods", "-n", place.namespace, "-o", "name") == ""


def test_gc_clears_the_namespace_and_only_when_told_the_results(place: Minimal) -> None:
    file = str(place.campaign(campaign="swept"))
    ran = place.trialfleet("run", file, "--no-ray", "--no-report", "--json")
    assert ran.code == 0, ran.err
    assert '"ending": "complete"' in ran.out
    assert "trialfleet-" in kubectl("get", "configmaps", "-n", place.namespace, "-o", "name")
    results = {key for key in keys(place) if "/attempts/" in key or "/outcomes/" in key}

    env = {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"], "KUBECONFIG": "/no/such/file"}
    shown = place.trialfleet(
        "logs", f"s3://{place.bucket}/runs/swept", "sqlparse-aligned-case-without-end/none/0", env=env
    )
    assert shown.code == 0, shown.err

    ran = place.trialfleet("gc", file)
    assert ran.code == 0, ran.err
    assert "swept: 1 ConfigMaps removed, and their pods" in ran.out
    assert "trialfleet-" not in kubectl("get", "configmaps", "-n", place.namespace, "-o", "name")
    assert results <= keys(place)
    assert not any("/grants/" in key for key in keys(place))

    listed = place.trialfleet("gc", file, "--results")
    assert "would remove swept" in listed.out
    assert results <= keys(place)
    gone = place.trialfleet("gc", file, "--results", "--yes")
    assert gone.code == 0, gone.err
    assert not any(key.startswith("runs/swept/") for key in keys(place))


def test_a_whole_store_by_age(place: Minimal, tmp_path: Path) -> None:
    url, env = f"s3://{place.bucket}/runs", {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"]}
    frozen = place.trialfleet("plan", str(place.campaign(campaign="aged")), "--freeze")
    assert frozen.code == 0, frozen.err
    young = place.trialfleet("gc", "--store", url, "--older-than", "1", env=env)
    assert "nothing to remove" in young.out
    old = place.trialfleet("gc", "--store", url, "--older-than", "0", env=env)
    assert "would remove aged" in old.out
    assert "runs/aged/campaign.json" in keys(place)
    assert place.trialfleet("gc", "--older-than", "1").code == 2
