"""What a probe pod's report means for a campaign: each finding alone, with its way out."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trialfleet_agents.protocol import Identity
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_controller.operate.needed_environments import NeededEnvironment, baked_check
from trialfleet_controller.operate.preflight import probe_checks
from trialfleet_controller.operate.probing import Probed, forbidden_addresses
from trialfleet_deliveries import texts
from trialfleet_ledger.campaign_spec import KubernetesSpec, Uids
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.store.probe import StoreCheck as Promise
from trialfleet_runner.pod_report import CanaryAddress, PodProbeReport, ProbedAgent
from trialfleet_tasks.taskfile import load_task_file

TASK_FILE = Path(__file__).parents[4] / "tasks/quickstart/tasks/werkzeug.yaml"
KUBE, NOP = KubernetesSpec(image="runner:1"), AgentSpec(kind="nop")
PROBED = ProbedAgent(identity=Identity(kind="nop", version="1", digest="0" * 64))
KEYLESS = PROBED.model_copy(update={"model_error": "no key for the model provider anthropic"})
GOOD = PodProbeReport(
    versions={},
    texts=texts.digest(),
    uv=False,
    baked={"e" * 32: "3.11.2"},
    agents=(PROBED,),
    threads=1022,
    user="trialfleet",
    store=(Promise(name="a grant creates once", holds=True),),
    canary=(CanaryAddress(address="10.0.0.1:443", answer="timeout"),),
    network="enforced",
)


def checks(kube: KubernetesSpec = KUBE, agent: AgentSpec = NOP, /, **changed: Any) -> dict[str, DoctorCheck]:
    probed = Probed(GOOD.model_copy(update=changed), "sha256:1", "node")
    found = list(probe_checks(probed, kube, [agent], {"e" * 32: NeededEnvironment("Python 3.11", ())}))
    assert len({check.name for check in found}) == len(found)
    return {check.name: check for check in found}


def missing(*args: Any, **changed: Any) -> dict[str, tuple[str, str | None]]:
    found = checks(*args, **changed).items()
    return {name: (check.found, check.fix) for name, check in found if check.result == "missing"}


def test_a_good_report_lacks_nothing() -> None:
    assert missing() == {}


@pytest.mark.parametrize(
    ("changed", "name", "found", "fix"),
    [
        ({"agents": (ProbedAgent(error="no claude"),)}, "agent nop", "no claude", "image build"),
        ({"texts": "1" * 64}, "texts", "image runner:1 has other texts for models", "image build"),
        ({"agents": (KEYLESS,)}, "credentials", "no key", "model_secret: model-keys"),
        (
            {"store_error": "timed out"},
            "store from pods",
            "pods cannot reach it, this machine can: timed out",
            "store.pod_endpoint",
        ),
        (
            {"store": (Promise(name="a grant creates once", holds=False, detail="twice"),)},
            "store from pods",
            "a grant creates once: twice",
            "proxy",
        ),
        ({"network": None, "canary": ()}, "network", "no address could be tried", "allow_unenforced_network"),
        (
            {"network": "unenforced", "canary": (CanaryAddress(address="10.0.0.9:1", answer="connected"),)},
            "network",
            "10.0.0.9:1",
            "allow_unenforced_network",
        ),
    ],
)
def test_findings(changed: dict[str, Any], name: str, found: str, fix: str) -> None:
    ((found_name, (said, way)),) = missing(**changed).items()
    assert found_name == name
    assert found in said
    assert fix in (way or "")


def test_an_environment_that_the_image_lacks_names_tasks_tools_and_the_command() -> None:
    task = load_task_file(TASK_FILE).tasks[0]
    go = NeededEnvironment("go 1.22.1", (task,))
    needed = {"e" * 32: NeededEnvironment("Python 3.11", (task,)), "f" * 32: go}
    check = baked_check({"e" * 32: "3.11.2"}, KUBE, needed)
    assert check.result == "missing"
    assert check.found == f"image runner:1 lacks the environments of {task.id} (go 1.22.1)"
    assert (check.fix or "").startswith(f"trialfleet image build --for {os.path.relpath(TASK_FILE)}, and name")
    there = baked_check({"e" * 32: "3.11.2", "f" * 32: "go 1.22.1"}, KUBE, needed)
    assert there.found == "the image has all 2 that these tasks need, of 2 in it"


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
    ((_, fix),) = missing(KUBE, AgentSpec.model_validate(agent), agents=(ProbedAgent(error="none"),)).values()
    assert option in (fix or "")


def test_the_uids_of_pods_are_said() -> None:
    good = checks()["users"]
    assert good.result == "ok"
    assert good.found.startswith("4096 uids (70000 to 74095) for pods; user namespaces (hostUsers: false) are not")


def test_a_uid_without_a_name_and_a_range_that_is_too_small_are_warned_of() -> None:
    assert "uid 70000 has no name in the image" in checks(user=None)["users"].found
    few = checks(KubernetesSpec(image="runner:1", uids=Uids(min=1000680000, max=1000680099)))["users"]
    assert (few.result, few.fix) == ("warning", "widen kubernetes.uids to 110 or more")
    assert "pods of one node may share a uid" in few.found


def test_an_unenforced_network_may_be_allowed() -> None:
    allowed = KUBE.model_copy(update={"allow_unenforced_network": True})
    assert missing(allowed, network="unenforced") == {}


def test_a_network_that_is_cut_late_is_said_and_waited_for() -> None:
    late = CanaryAddress(address="10.0.0.1:443", answer="timeout", at_first=True)
    network = checks(canary=(late,))["network"]
    assert network.result == "ok"
    assert network.found == (
        "enforced: none of 1 forbidden addresses is reachable; at first 10.0.0.1:443 was: the policy takes effect "
        "only some time after a pod starts, and each runner waits for it before it starts anything, at most 30 s"
    )


def test_a_kubelet_that_stays_reachable_is_said_and_nothing_to_wait_for() -> None:
    """Kubernetes lets network plug-ins allow a pod its own node."""
    network = checks(kubelet=CanaryAddress(address="10.0.0.2:10250", answer="connected"))["network"]
    assert (network.result, network.found.rpartition("; ")[2]) == (
        "ok",
        "a pod reaches the kubelet of its node, which a policy need not refuse",
    )


@pytest.mark.parametrize(
    ("answers", "kubelet"),
    [
        (["timeout"], True),
        (["refused", "timeout"], True),
        (["timeout", "connected"], False),
        (["connected"], False),
        (["unresolved"], False),
        ([None], False),
    ],
)
def test_what_runners_must_find_refused(answers: list[Any], kubelet: bool) -> None:
    """`answers`: of the kubelet to each namespace's probe."""
    reports = [
        GOOD.model_copy(update={"kubelet": answer and CanaryAddress(address="10.0.0.2:10250", answer=answer)})
        for answer in answers
    ]
    here, there = SimpleNamespace(host="https://127.0.0.1:6443"), SimpleNamespace(host="https://10.1.0.1")
    wanted = {"$(TRIALFLEET_HOST_IP):10250"} if kubelet else set[str]()
    api = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"
    assert set(forbidden_addresses(cast("Client", here), reports)) == {api} | wanted
    assert set(forbidden_addresses(cast("Client", there), reports)) == {api, "10.1.0.1:443"} | wanted


def test_a_secret_that_is_there_and_lacks_the_key_is_named() -> None:
    kube = KUBE.model_copy(update={"model_secret": "mine"})
    found, fix = missing(kube, agents=(KEYLESS,))["credentials"]
    assert "in Secret mine" in found
    assert "generic mine" in (fix or "")
