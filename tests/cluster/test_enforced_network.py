"""What the policies of k8s/base cut off where they are enforced, from a hostile agent on a real kubelet; without
them, the same agent reaches all of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cluster import hostile
from tests.cluster.attack_rig import Left, Site, planned
from tests.cluster.cluster import CHECKOUT, Raw, done, fresh_namespace, on_cluster, restricted_pod
from tests.cluster.cluster import kubectl as asked
from tests.cluster.enforcer import (
    METADATA,
    METADATA_PORT,
    Enforcer,
    enforced,
    metadata_service,
    network_command,
)
from tests.cluster.minimal import Minimal, kubectl, minimal
from tests.support.waiting import wait_until
from trialfleet_controller.operate.job import ROLE
from trialfleet_ledger.campaign_spec import Graces
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict

pytestmark = on_cluster("network")

PORT = 8080
OPEN_S = 5  # of a pod whose rules come late
LISTENER, CONTROLLER = "listener", "controller"  # pods
PYTHON = "/opt/trialfleet/bin/python"
LISTEN = f"""
import socket
server = socket.create_server(("", {PORT}))
print("listening", flush=True)
while True:
    server.accept()[0].close()
"""
Address = tuple[str, int]


@dataclass(frozen=True)
class Net:
    """`addresses`: by name, what pods could reach. `elsewhere`: a namespace without policies, and its pod."""

    place: Minimal
    site: Site
    enforcer: Enforcer
    addresses: dict[str, Address]
    elsewhere: str

    def attack(self) -> Left:
        """An attempt whose agent tries every address, once the rules know its pod."""
        return self.site.run(hostile.REACH, json.dumps(self.addresses), timeout_s=180, meanwhile=self._let_go)

    def attack_before_the_rules(self) -> Left:
        """As `attack`, but the rules learn of its pod only some seconds after its runner has started."""

        def late(pod: str) -> None:
            wait_until(lambda: self._holds(pod, "true"), every_s=0.3)
            time.sleep(OPEN_S)
            assert not self._holds(pod, "test -d /trialfleet/agent/ready"), "the agent runs in an open network"
            enforce()
            self._let_go(pod)

        with self.enforcer.paused() as enforce:
            return self.site.run(hostile.REACH, json.dumps(self.addresses), timeout_s=180, meanwhile=late)

    def _let_go(self, pod: str) -> None:
        self.enforcer.holds(lambda seen: pod in seen.pods)
        ready = "test -d /trialfleet/agent/ready && touch /trialfleet/agent/go"
        wait_until(lambda: self._holds(pod, ready), every_s=0.3)

    def _holds(self, pod: str, command: str) -> bool:
        """Whether a shell command succeeds in the pod's runner."""
        inside = ("exec", pod, "-n", self.place.namespace, "-c", "runner", "--", "/bin/sh", "-c", command)
        return asked(*inside).returncode == 0

    def reached_from(self, namespace: str, pod: str) -> list[str]:
        """What one of the listening pods reaches."""
        inside = ("exec", pod, "-n", namespace, "--", PYTHON, "-c", hostile.TRY)
        reached: list[str] = json.loads(done(asked(*inside, json.dumps(self.addresses))))
        return reached


def store_address() -> Address:
    parts = urlsplit(os.environ.get("S3_ENDPOINT_PODS") or os.environ["S3_ENDPOINT"])
    assert parts.hostname is not None
    return parts.hostname, parts.port or 80


def api_address() -> Address:
    return os.environ["TRIALFLEET_TEST_API_SERVER"], 6443


def apply_base(namespace: str, folder: Path) -> None:
    """k8s/base with this cluster's addresses in the place of those that it says to replace."""
    store, port = store_address()
    api, _ = api_address()
    changes = {"store": {"to/0/ipBlock/cidr": f"{store}/32", "ports/0/port": port}}
    changes["api-server"] = {"to/0/ipBlock/cidr": f"{api}/32"}
    patches = [
        {
            "target": {"kind": "NetworkPolicy", "name": name},
            "patch": json.dumps(
                [
                    {"op": "replace", "path": f"/spec/egress/0/{path}", "value": value}
                    for path, value in values.items()
                ]
            ),
        }
        for name, values in changes.items()
    ]
    base = os.path.relpath(CHECKOUT / "k8s/base", folder.resolve())
    overlay = {"namespace": namespace, "resources": [base], "patches": patches}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    done(asked("apply", "--server-side", "-k", str(folder)))


@contextmanager
def another_namespace() -> Generator[str]:
    with fresh_namespace("elsewhere") as name:
        done(asked("create", "namespace", name))
        yield name


def start_listener(namespace: str, name: str = LISTENER, labels: Mapping[str, str] | None = None) -> None:
    """As soon as the API server has the account that pods of a new namespace run as."""
    pod: Raw = restricted_pod(name, os.environ["TRIALFLEET_TEST_IMAGE"], PYTHON, "-c", LISTEN)
    pod["metadata"]["labels"] = dict(labels or {})
    create = ("create", "-n", namespace, "-f", "-")
    wait_until(lambda: asked(*create, stdin=pod).returncode == 0, f"pod {name} is created", every_s=0.3)


def listening(namespace: str, name: str = LISTENER) -> Address:
    """Where, once it does."""
    wait_until(lambda: asked("logs", name, "-n", namespace).stdout == "listening\n", every_s=0.3)
    return kubectl("get", "pod", name, "-n", namespace, "-o", "jsonpath={.status.podIP}"), PORT


def use_the_pods_address_of_the_api_server(place: Minimal) -> None:
    """So that the canary tries it: this machine knows another."""
    config = json.loads(place.kubeconfig.read_text())
    host, port = api_address()
    config["clusters"][0]["cluster"]["server"] = f"https://{host}:{port}"
    place.kubeconfig.write_text(json.dumps(config))
    place.inside = network_command()


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    folder = tmp_path_factory.mktemp("enforced")
    with minimal(folder) as place, another_namespace() as elsewhere, metadata_service():
        use_the_pods_address_of_the_api_server(place)
        apply_base(place.namespace, folder)
        node_addresses = (store_address()[0], METADATA)
        with enforced(place.namespace, node_addresses) as enforcer:
            start_listener(place.namespace)
            start_listener(place.namespace, CONTROLLER, {ROLE: "controller"})
            start_listener(elsewhere)
            enforcer.holds(lambda seen: {"default-deny", "store"} <= seen.policies)
            site = planned(place, allow_unenforced_network=False)
            addresses = {
                "store": store_address(),
                "API server": api_address(),
                "metadata": (METADATA, METADATA_PORT),
                "pod": listening(place.namespace),
                "controller": listening(place.namespace, CONTROLLER),
                "pod elsewhere": listening(elsewhere),
            }
            enforcer.holds(lambda seen: {LISTENER, CONTROLLER} <= seen.pods)
            yield Net(place, site, enforcer, addresses, elsewhere)


@dataclass(frozen=True)
class Attacked:
    """`elsewhere`, `controller`: what a pod outside of the namespace, and one labelled as a controller's, reached
    meanwhile. `doctor`: its checks by name."""

    left: Left
    elsewhere: list[str]
    controller: list[str]
    doctor: dict[str, Raw]


@pytest.fixture(scope="module")
def attacked(net: Net) -> Attacked:
    with ThreadPoolExecutor(3) as pool:
        file = str(net.place.folder / "campaign.yaml")
        doctor = pool.submit(net.place.trialfleet, "doctor", file, "--json")
        elsewhere = pool.submit(net.reached_from, net.elsewhere, LISTENER)
        controller = pool.submit(net.reached_from, net.place.namespace, CONTROLLER)
        left = net.attack()
        checks = {check["name"]: check for check in json.loads(doctor.result().out)}
        return Attacked(left, elsewhere.result(), controller.result(), checks)


def test_the_canary_says_enforced_and_nothing_has_to_be_allowed(net: Net, attacked: Attacked) -> None:
    assert net.site.network == "enforced"
    network = attacked.doctor["network"]
    assert network["result"] in ("ok", "warning"), "a pod may be open at first: the rules follow its address"
    assert network["found"].startswith("enforced: none of 4 "), network


def test_an_agent_reaches_the_store_and_nothing_else(attacked: Attacked) -> None:
    assert attacked.left.report == ["store"]


@pytest.mark.usefixtures("attacked")
def test_an_agent_starts_only_after_the_rules_know_its_pod(net: Net) -> None:
    assert net.attack_before_the_rules().report == ["store"]


def test_a_trial_is_measured_where_the_network_is_cut(attacked: Attacked) -> None:
    left = attacked.left
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.FAILED, Stop.FINISHED)
    assert not any("NetworkPolicy" in warning for warning in left.bundle.manifest.warnings)


def test_control_a_pod_of_another_namespace_is_cut_from_trials_alone(attacked: Attacked) -> None:
    """So the rules are the namespace's own, and nobody reaches its pods from outside either."""
    assert attacked.elsewhere == ["API server", "pod elsewhere", "store"]


def test_a_controller_reaches_store_and_api_server_too(attacked: Attacked) -> None:
    assert attacked.controller == ["API server", "controller", "store"], "its own address is the second"


@pytest.fixture(scope="module")
def without_policies(net: Net, attacked: Attacked) -> Net:
    """For the last tests: it takes them away."""
    del attacked
    kubectl("delete", "networkpolicies", "--all", "-n", net.place.namespace)
    net.enforcer.holds(lambda seen: not seen.policies)
    return net


def changed(site: Site, **kubernetes: object) -> Site:
    """With another section `kubernetes:` of its plan."""
    assert site.plan.kubernetes is not None
    section = site.plan.kubernetes.model_copy(update=kubernetes)
    return replace(site, plan=site.plan.model_copy(update={"kubernetes": section}))


def test_an_attempt_whose_policies_are_gone_is_lost_before_its_agent(without_policies: Net) -> None:
    site = changed(without_policies.site, graces=Graces(open_network_s=2))
    loss = site.run("raise SystemExit").end.loss
    assert loss is not None
    assert (loss.loss, loss.agent_started) == (LossClass.SETUP, False)
    assert "NetworkPolicy has not taken effect within 2 s: this pod still reaches" in loss.message
    assert f"{api_address()[0]}:6443" in loss.message


def test_control_without_the_policies_an_agent_reaches_everything(without_policies: Net) -> None:
    allowed = changed(without_policies.site, allow_unenforced_network=True)
    net = replace(without_policies, site=allowed)
    assert net.attack().report == sorted(net.addresses)
    assert net.reached_from(net.elsewhere, LISTENER) == sorted(set(net.addresses) - {"metadata"})
