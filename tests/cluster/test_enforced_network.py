"""What the policies of k8s/base cut off where they are enforced, from a hostile agent on a real kubelet; without
them, the same agent reaches all of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cluster import hostile
from tests.cluster.attack_rig import Left, Site, planned
from tests.cluster.cluster import CHECKOUT, Raw, done, fresh_namespace, restricted_pod
from tests.cluster.cluster import kubectl as asked
from tests.cluster.enforcer import METADATA, METADATA_PORT, Enforcer, enforced, metadata_service
from tests.cluster.minimal import Minimal, kubectl, minimal
from trialfleet_runner.contract import Stop, Verdict

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "s3", "image", "network"), pytest.mark.slow]

PORT = 8080
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
        return self.site.run(hostile.REACH, json.dumps(self.addresses), meanwhile=self._let_go)

    def _let_go(self, pod: str) -> None:
        self.enforcer.holds(lambda seen: pod in seen.pods)
        ready = "test -d /trialfleet/agent/ready && touch /trialfleet/agent/go"
        inside = ("exec", pod, "-n", self.place.namespace, "-c", "runner", "--", "/bin/sh", "-c", ready)
        until = time.monotonic() + 120
        while asked(*inside).returncode:
            assert time.monotonic() < until
            time.sleep(0.3)

    def from_elsewhere(self) -> list[str]:
        """What the pod outside of the namespace reaches."""
        inside = ("exec", "listener", "-n", self.elsewhere, "--", PYTHON, "-c", hostile.TRY)
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
    patches = [
        {
            "target": {"kind": "NetworkPolicy", "name": name},
            "patch": json.dumps(
                [
                    {"op": "replace", "path": "/spec/egress/0/to/0/ipBlock/cidr", "value": f"{host}/32"},
                    {"op": "replace", "path": "/spec/egress/0/ports/0/port", "value": port},
                ]
            ),
        }
        for name, (host, port) in {"store": store_address(), "api-server": api_address()}.items()
    ]
    base = os.path.relpath(CHECKOUT / "k8s/base", folder.resolve())
    overlay = {"namespace": namespace, "resources": [base], "patches": patches}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    done(asked("apply", "-k", str(folder)))


@contextmanager
def another_namespace() -> Generator[str]:
    with fresh_namespace("elsewhere") as name:
        done(asked("create", "namespace", name))
        yield name


def start_listener(namespace: str) -> None:
    """Kept from the moment that the API server has the account that its pods run as."""
    until = time.monotonic() + 60
    pod: Raw = restricted_pod("listener", os.environ["TRIALFLEET_TEST_IMAGE"], PYTHON, "-c", LISTEN)
    while (made := asked("create", "-n", namespace, "-f", "-", stdin=pod)).returncode:
        assert time.monotonic() < until, made.stderr
        time.sleep(0.3)


def listening(namespace: str) -> Address:
    """Where, once it does."""
    until = time.monotonic() + 120
    while asked("logs", "listener", "-n", namespace).stdout != "listening\n":
        assert time.monotonic() < until
        time.sleep(0.3)
    return kubectl("get", "pod", "listener", "-n", namespace, "-o", "jsonpath={.status.podIP}"), PORT


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    folder = tmp_path_factory.mktemp("enforced")
    with minimal(folder) as place, another_namespace() as elsewhere, metadata_service():
        apply_base(place.namespace, folder)
        node_addresses = (store_address()[0], METADATA)
        with enforced(place.namespace, node_addresses) as enforcer:
            for namespace in (place.namespace, elsewhere):
                start_listener(namespace)
            enforcer.holds(lambda seen: {"default-deny", "store"} <= seen.policies)
            site = planned(place, allow_unenforced_network=False)
            addresses = {
                "store": store_address(),
                "API server": api_address(),
                "metadata": (METADATA, METADATA_PORT),
                "pod": listening(place.namespace),
                "pod elsewhere": listening(elsewhere),
            }
            enforcer.holds(lambda seen: "listener" in seen.pods)
            yield Net(place, site, enforcer, addresses, elsewhere)


@dataclass(frozen=True)
class Attacked:
    """`elsewhere`: what a pod outside of the namespace reached meanwhile. `doctor`: its checks by name."""

    left: Left
    elsewhere: list[str]
    doctor: dict[str, Raw]


@pytest.fixture(scope="module")
def attacked(net: Net) -> Attacked:
    with ThreadPoolExecutor(2) as pool:
        file = str(net.place.folder / "campaign.yaml")
        doctor = pool.submit(net.place.trialfleet, "doctor", file, "--json")
        elsewhere = pool.submit(net.from_elsewhere)
        left = net.attack()
        checks = {check["name"]: check for check in json.loads(doctor.result().out)}
        return Attacked(left, elsewhere.result(), checks)


def test_the_canary_says_enforced_and_nothing_has_to_be_allowed(net: Net, attacked: Attacked) -> None:
    assert net.site.network == "enforced"
    network = attacked.doctor["network"]
    assert network["result"] == "ok", network
    assert network["found"].startswith("enforced"), network


def test_an_agent_reaches_the_store_and_nothing_else(attacked: Attacked) -> None:
    assert attacked.left.report == ["store"]


def test_a_trial_is_measured_where_the_network_is_cut(attacked: Attacked) -> None:
    left = attacked.left
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.FAILED, Stop.FINISHED)
    assert not any("NetworkPolicy" in warning for warning in left.bundle.manifest.warnings)


def test_control_a_pod_of_another_namespace_is_cut_from_trials_alone(attacked: Attacked) -> None:
    """So the rules are the namespace's own, and nobody reaches its pods from outside either."""
    assert attacked.elsewhere == ["API server", "pod elsewhere", "store"]


@pytest.mark.usefixtures("attacked")
def test_control_without_the_policies_an_agent_reaches_everything(net: Net) -> None:
    """Last: it takes them away."""
    kubectl("delete", "networkpolicies", "--all", "-n", net.place.namespace)
    net.enforcer.holds(lambda seen: not seen.policies)
    assert net.attack().report == sorted(net.addresses)
    assert net.from_elsewhere() == sorted(set(net.addresses) - {"metadata"})
