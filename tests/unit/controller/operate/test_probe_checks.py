"""What a probe pod's report means for a campaign: each finding alone, with its way out."""

from __future__ import annotations

from typing import Any

import pytest

from trialfleet_controller.operate.preflight import probe_checks
from trialfleet_controller.operate.probing import Probed
from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.campaign import KubernetesSpec
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.pod.probe import ProbeReport, Reached
from trialfleet_runner.store.probe import Check as Promise

KUBE = KubernetesSpec(image="runner:1")
GOOD = ProbeReport(
    versions={},
    uv=False,
    baked={"e" * 32: "3.11.2"},
    agent=Identity(kind="nop", version="1", digest="0" * 64),
    threads=1022,
    store=(Promise(name="a grant creates once", holds=True),),
    canary=(Reached(address="10.0.0.1:443", answer="timeout"),),
    network="enforced",
)


def missing(kube: KubernetesSpec = KUBE, **changed: Any) -> dict[str, tuple[str, str | None]]:
    probed = Probed(GOOD.model_copy(update=changed), "sha256:1", "node")
    checks = list(probe_checks(probed, kube, AgentSpec(kind="nop"), {"e" * 32: []}))
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: (check.found, check.mend) for check in checks if check.result == "missing"}


def test_a_good_report_lacks_nothing() -> None:
    assert missing() == {}


@pytest.mark.parametrize(
    ("changed", "name", "found", "mend"),
    [
        ({"agent": None, "agent_error": "no claude"}, "agent nop", "no claude", "image build"),
        ({"model_error": "no key"}, "credentials", "no key", "model_secret: model-keys"),
        ({"store_error": "timed out"}, "store from pods", "not from pods: timed out", "store.pod_endpoint"),
        (
            {"store": (Promise(name="a grant creates once", holds=False, detail="twice"),)},
            "store from pods",
            "a grant creates once: twice",
            "proxy",
        ),
        ({"network": None, "canary": ()}, "network", "nothing could be tried", "allow_unenforced_network"),
        (
            {"network": "unenforced", "canary": (Reached(address="10.0.0.9:1", answer="connected"),)},
            "network",
            "10.0.0.9:1",
            "allow_unenforced_network",
        ),
    ],
)
def test_findings(changed: dict[str, Any], name: str, found: str, mend: str) -> None:
    ((found_name, (said, way)),) = missing(**changed).items()
    assert found_name == name
    assert found in said
    assert mend in (way or "")


@pytest.mark.parametrize(
    ("agent", "option"),
    [
        ({"kind": "claude-code", "version": "2.1.190"}, "image build --agents claude-code@2.1.190 …"),
        ({"kind": "claude-code"}, "image build --agents claude-code …"),
        ({"kind": "command", "version": "mine"}, "image build --base IMAGE …"),
    ],
)
def test_an_agent_that_the_image_lacks_is_built_in_by_the_option_that_is_named(
    agent: dict[str, str], option: str
) -> None:
    probed = Probed(GOOD.model_copy(update={"agent": None, "agent_error": "none"}), "sha256:1", "node")
    checks = probe_checks(probed, KUBE, AgentSpec.model_validate(agent), {"e" * 32: []})
    (lacking,) = (check for check in checks if check.result == "missing")
    assert option in (lacking.mend or "")


def test_an_unenforced_network_may_be_allowed() -> None:
    allowed = KUBE.model_copy(update={"allow_unenforced_network": True})
    assert missing(allowed, network="unenforced") == {}


def test_a_network_that_is_cut_late_is_said() -> None:
    late = Reached(address="10.0.0.1:443", answer="timeout", at_first=True)
    probed = Probed(GOOD.model_copy(update={"canary": (late,)}), "sha256:1", "node")
    checks = {check.name: check for check in probe_checks(probed, KUBE, AgentSpec(kind="nop"), {})}
    network = checks["network"]
    assert network.result == "warning", "nothing to allow: it is enforced"
    assert "at first 10.0.0.1:443 did" in network.found


def test_a_secret_that_is_there_and_lacks_the_key_is_named() -> None:
    kube = KUBE.model_copy(update={"model_secret": "mine"})
    found, mend = missing(kube, model_error="no key for the model provider anthropic")["credentials"]
    assert "in Secret mine" in found
    assert "generic mine" in (mend or "")
