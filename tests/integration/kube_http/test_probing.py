"""The image that a probe pod tries by its digest, before pods name it so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.plans import IMAGE_ID, kube_plan
from tests.support.raw_pods import status
from tests.support.scripted_api import Api
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.operate.probing import Probed, probe_cluster
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_runner.pod_report import PodProbeReport

NAME = "registry.example/runner"
DIGEST = f"{NAME}@{IMAGE_ID}"
REPORT = PodProbeReport(versions={}, texts="0" * 64, uv=False).model_dump_json()


@contextmanager
def node(api: Api, image_id: str, absent: str | None = None) -> Iterator[None]:
    """A kubelet that starts every pod, but for those of the image `absent`."""
    over = threading.Event()

    def started(name: str) -> None:
        (container,) = api.pods[name]["spec"]["containers"]
        if container["image"] == absent:
            return api.report(name, "Pending", status("probe", waiting={"reason": "ImagePullBackOff"}))
        peer = name.endswith("-peer")
        api.logs[name] = "listening" if peer else REPORT
        state = {"running": {}} if peer else {"terminated": {"exitCode": 0}}
        found = {**status("probe", **state), "imageID": image_id}
        return api.report(name, "Running" if peer else "Succeeded", found, podIP="10.0.0.9")

    def run() -> None:
        seen: set[str] = set()
        while not over.wait(0.02):
            for name in set(api.pods) - seen:
                seen.add(name)
                started(name)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def probed(api: Api, client: Client, image_id: str, absent: str | None = None) -> tuple[Probed, list[str]]:
    kube = kube_plan(image=f"{NAME}:1", namespaces=("trials",)).kubernetes
    assert kube is not None
    said: list[str] = []
    with node(api, image_id, absent):
        return probe_cluster(client, kube, [AgentSpec(kind="nop")], None, say=said.append), said


def images(api: Api) -> list[str]:
    """Of the pods in the order of their creation."""
    added = [event["object"] for event in api.history if event["type"] == "ADDED"]
    return [pod["spec"]["containers"][0]["image"] for pod in added]


def test_pods_name_the_digest_that_was_pulled_and_tried(api: Api, client: Client) -> None:
    found, _ = probed(api, client, DIGEST)
    assert found.by_digest == DIGEST
    assert images(api) == [f"{NAME}:1", DIGEST]


@pytest.mark.parametrize("loaded", [IMAGE_ID, f"docker.io/library/import-1@{IMAGE_ID}"])
def test_an_image_that_no_registry_knows_keeps_its_name(api: Api, client: Client, loaded: str) -> None:
    found, _ = probed(api, client, loaded)
    assert found.by_digest is None
    assert images(api) == [f"{NAME}:1"] * 2


def test_a_digest_that_cannot_be_pulled_is_left_and_said(api: Api, client: Client) -> None:
    found, said = probed(api, client, DIGEST, absent=DIGEST)
    assert found.by_digest is None
    assert images(api) == [f"{NAME}:1", DIGEST, f"{NAME}:1"]
    assert any("keeps its tag" in line for line in said)
