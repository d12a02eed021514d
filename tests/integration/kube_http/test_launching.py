"""Creating pods: a server that throttles, has no room, refuses for good, and loses its answers."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from tests.support import scripted_api as s
from tests.support.scripted_api import Api
from tests.support.waiting import in_background
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.launcher import Launcher
from trialfleet_ledger.errors import OperatorError


def manifest_of(name: str = "t-a-a1", *, spec: str = "s1", campaign: str = "c1") -> dict[str, Any]:
    head = {"name": name, "labels": {names.CAMPAIGN: campaign}, "annotations": {names.SPEC: spec}}
    return {"metadata": head, "spec": {}}


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def launcher(client: Client, told: list[str]) -> Launcher:
    return Launcher(client, "trials", tell=told.append, refused_s=1.0)


def wait(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def test_a_throttled_create_waits_for_retry_after(api: Api, launcher: Launcher) -> None:
    api.faults["create"].append(s.refuse(429, "TooManyRequests", retry_after="2"))
    started = time.monotonic()
    assert launcher.create(manifest_of(), wait=wait) is not None
    assert time.monotonic() - started >= 2
    assert api.count("create") == 2


def test_an_exceeded_quota_is_waited_for_and_told_once(api: Api, launcher: Launcher, told: list[str]) -> None:
    full = 'pods "t-a-a1" is forbidden: exceeded quota: trials, requested: pods=1, used: pods=5, limited: pods=5'
    api.faults["create"].extend([s.refuse(403, "Forbidden", full)] * 3)
    assert launcher.create(manifest_of(), wait=wait) is not None
    assert sum("exceeded quota" in line for line in told) == 1
    assert told[-1].endswith("again")


def test_another_refusal_is_the_operators(api: Api, launcher: Launcher) -> None:
    api.always["create"] = s.refuse(403, "Forbidden", 'User "x" cannot create resource "pods"')
    with pytest.raises(OperatorError, match="cannot create") as caught:
        launcher.create(manifest_of(), wait=wait)
    assert caught.value.hint
    assert api.count("create") > 1, "a starting server refuses what it allows later"


@pytest.mark.parametrize(
    "why", ["violates PodSecurity restricted:latest", 'pod rejected: RuntimeClass "x" not found']
)
def test_what_an_admission_plugin_refuses_is_not_repeated(api: Api, launcher: Launcher, why: str) -> None:
    api.always["create"] = s.refuse(403, "Forbidden", why)
    with pytest.raises(OperatorError, match=why.split()[0]):
        launcher.create(manifest_of(), wait=wait)
    assert api.count("create") == 1


def test_a_missing_namespace_is_named(api: Api, launcher: Launcher) -> None:
    api.always["create"] = s.refuse(404, "NotFound", 'namespaces "trials" not found')
    with pytest.raises(OperatorError, match="kubectl create namespace trials"):
        launcher.create(manifest_of(), wait=wait)


UNSEEN = 'admission webhook "mpod.kb.io" denied the request: Namespace "trials" not found'


def test_a_webhook_that_has_not_seen_the_namespace_yet_is_asked_again(api: Api, launcher: Launcher) -> None:
    """Kueue's webhooks answer so, for up to two minutes after the API server has restarted twice."""
    api.faults["create"].extend([s.refuse(404, "NotFound", UNSEEN)] * 2)
    assert launcher.create(manifest_of(), wait=wait) is not None
    assert api.count("create") == 3


def test_a_webhook_that_never_sees_the_namespace_is_not_a_missing_namespace(api: Api, launcher: Launcher) -> None:
    api.always["create"] = s.refuse(404, "NotFound", UNSEEN)
    with pytest.raises(OperatorError, match=r"the admission webhook .* does not allow to create pods") as caught:
        launcher.create(manifest_of(), wait=wait)
    assert "validatingwebhookconfigurations" in caught.value.hint
    assert api.count("create") > 1


def test_a_manifest_that_the_server_calls_invalid_is_not_repeated(api: Api, launcher: Launcher) -> None:
    api.always["create"] = s.refuse(422, "Invalid", "spec.runtimeClassName: Invalid value")
    with pytest.raises(OperatorError, match="runtimeClassName"):
        launcher.create(manifest_of(), wait=wait)
    assert api.count("create") == 1


def test_a_pod_whose_answer_was_lost_is_found_again(api: Api, launcher: Launcher) -> None:
    api.faults["create"].append(s.carried_out_and_lost)
    pod = launcher.create(manifest_of(), wait=wait)
    assert pod is not None
    assert len(api.pods) == 1
    assert pod.uid == "uid-1"


@pytest.mark.parametrize("other", [{"spec": "s2"}, {"campaign": "c2"}])
def test_a_name_that_another_pod_has_is_not_taken_for_ours(
    api: Api, launcher: Launcher, other: dict[str, str]
) -> None:
    api.create(manifest_of(**other))
    with pytest.raises(OperatorError, match="kubectl -n trials delete pod t-a-a1"):
        launcher.create(manifest_of(), wait=wait)


def test_a_name_that_becomes_free_while_we_look_is_taken(api: Api, launcher: Launcher) -> None:
    api.faults["create"].append(s.refuse(409, "AlreadyExists"))
    assert launcher.create(manifest_of(), wait=wait) is not None


def test_a_wait_that_the_server_asks_one_launch_for_holds_for_all(api: Api, launcher: Launcher) -> None:
    api.faults["create"].append(s.refuse(429, "TooManyRequests", retry_after="2"))
    create = partial(launcher.create, wait=wait)
    launched = [in_background(create, manifest_of("p0"))]
    api.wait_for("create", 1)
    time.sleep(0.2)  # its answer arrives
    started = time.monotonic()
    launched += [in_background(create, manifest_of(f"p{n}")) for n in range(1, 4)]
    for each in launched:
        each.result()
    assert len(api.pods) == 4
    assert time.monotonic() - started >= 1.5
    assert api.count("create") == 5
