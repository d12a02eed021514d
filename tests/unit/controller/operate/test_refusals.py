"""The fix that an operator reads when the cluster refuses an attempt's pod."""

from __future__ import annotations

import json

import pytest

from trialfleet_controller.backends.kube.errors import error_of
from trialfleet_controller.operate.refusals import refused_pod

DENIED = 'admission webhook "mpod.kb.io" denied the request: '


@pytest.mark.parametrize(
    ("status", "message", "fix"),
    [
        (403, 'pods "a" is forbidden: RuntimeClass "x" not found', "kubectl get runtimeclass"),
        (403, 'pods "a" is forbidden: User "x" cannot create resource "pods"', "the Role of k8s/base"),
        (404, 'namespaces "trials" not found', "kubectl create namespace trials"),
        (404, f'{DENIED}Namespace "trials" not found', "within a minute or two: try again"),
        (403, f"{DENIED}no owner label", "mutatingwebhookconfigurations,validatingwebhookconfigurations"),
        (422, "spec.nodeSelector: Invalid value", "the section kubernetes of the campaign file"),
        (503, "etcd", "try again"),
    ],
)
def test_the_way_out_follows_from_who_refuses(status: int, message: str, fix: str) -> None:
    check = refused_pod(error_of(status, {}, json.dumps({"message": message}).encode()), "trials")
    assert check.result == "missing"
    assert check.fix is not None
    assert fix in check.fix
