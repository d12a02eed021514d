"""Enforces the NetworkPolicies of one namespace on a node whose network plug-in enforces none.

Policies and pods are read from the API server, again and again, and become nft rules in the node's network. A pod
is open until its address has come that way, as with many plug-ins; `Enforcer.holds` waits for it. The rules match
addresses of the namespace's own pods and no others. They belong to one process and end with it, however the tests
do. IPv4, and only between pods of the namespace and the addresses that are named: whatever else there is, is cut.

`$TRIALFLEET_TEST_NETWORK`: a command that runs its arguments in the node's network, as root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from tests.cluster.policies import Peer, Raw, reached, reaches
from trialfleet_controller.backends.kube.api_requests import PODS, KubeRequest
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError

METADATA = "169.254.169.254"  # where clouds serve their nodes' credentials
METADATA_PORT = 80
_LOOK_S = 0.1
_HOLDS_S = 120
_ADDRESS_S = 900  # should nobody be left to remove it
_UNNAMED = 0  # a port that no policy names
_ENDED = ("Succeeded", "Failed")
_LISTEN = f"""
import socket, sys, threading
def serve(server):
    while True:
        server.accept()[0].close()
server = socket.create_server(({METADATA!r}, {METADATA_PORT}))
threading.Thread(target=serve, args=(server,), daemon=True).start()
print("listening", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Located:
    """A pod that has an address."""

    name: str
    address: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Seen:
    """What the rules in force were made of: names."""

    pods: frozenset[str] = frozenset()
    policies: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Way:
    """One direction of a pod's traffic. `mine`, `theirs`: where a packet carries which address."""

    chain: str
    allows: Callable[[Sequence[Raw], Mapping[str, str], str, Peer, int], bool]
    mine: str
    theirs: str


WAYS = (Way("egress", reaches, "saddr", "daddr"), Way("ingress", reached, "daddr", "saddr"))


def rules(
    policies: Sequence[Raw], pods: Sequence[Located], namespace: str, addresses: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """(chain, rule): what each pod may reach, and who may reach it. A packet that a chain returns may pass.

    `addresses`: those outside of the namespace that rules may name; all others are cut for whom a policy selects.
    Pure; what the policies mean is `policies.reaches`'s to say.
    """
    outside = [(each, Peer(each)) for each in addresses]
    for pod in pods:
        near = [(one.address, Peer(labels=one.labels, namespace=namespace)) for one in pods if one != pod]
        for way in WAYS:
            if _selected(way, policies, pod, namespace):
                yield from ((way.chain, rule) for rule in _cut(way, policies, pod, namespace, outside + near))


def _selected(way: Way, policies: Sequence[Raw], pod: Located, namespace: str) -> bool:
    """A policy without a rule allows nothing to those that it selects, and everything to all others."""
    silent: list[Raw] = [
        {"metadata": each["metadata"], "spec": {key: each["spec"][key] for key in ("policyTypes", "podSelector")}}
        for each in policies
    ]
    return not way.allows(silent, pod.labels, namespace, Peer(), _UNNAMED)


def _cut(
    way: Way, policies: Sequence[Raw], pod: Located, namespace: str, peers: Sequence[tuple[str, Peer]]
) -> Iterator[str]:
    ports = sorted({port for each in policies for port in _ports(each["spec"])})
    own = f"ip {way.mine} {pod.address}"
    for address, peer in peers:
        opened = [port for port in ports if way.allows(policies, pod.labels, namespace, peer, port)]
        if way.allows(policies, pod.labels, namespace, peer, _UNNAMED):
            yield f"{own} ip {way.theirs} {address} return"
        elif opened:
            to = f"meta l4proto {{ tcp, udp }} th dport {{ {', '.join(map(str, opened))} }}"
            yield f"{own} ip {way.theirs} {address} {to} return"
    yield f"{own} drop"


def _ports(spec: Raw) -> Iterator[int]:
    for rule in (*spec.get("egress", []), *spec.get("ingress", [])):
        yield from (each["port"] for each in rule.get("ports", []))


class Enforcer:
    """Its rules are up to date within a moment of what the API server says."""

    def __init__(self, namespace: str, addresses: Sequence[str], nft: Nft) -> None:
        self._namespace, self._addresses, self._nft = namespace, tuple(addresses), nft
        self._changed, self._over, self._paused = threading.Condition(), threading.Event(), threading.Event()
        self._seen, self._error = Seen(), list[BaseException]()
        self._thread = threading.Thread(target=self._work, name="enforcer")

    def __enter__(self) -> Enforcer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def holds(self, enough: Callable[[Seen], bool]) -> None:
        """Returns once rules are in force that were made of that."""
        with self._changed:
            came = self._changed.wait_for(lambda: self._error or enough(self._seen), _HOLDS_S)
            assert not self._error, self._error
            assert came, self._seen

    @contextmanager
    def paused(self) -> Generator[Callable[[], None]]:
        """No rule changes before what this yields is called, or the block ends: new pods stay open."""
        self._paused.set()
        try:
            yield self._paused.clear
        finally:
            self._paused.clear()

    def _work(self) -> None:
        try:
            with _client() as client:
                while not self._over.wait(_LOOK_S):
                    with suppress(ApiError):  # a server that others restart
                        if not self._paused.is_set():
                            self._look(client)
        except BaseException as error:
            with self._changed:
                self._error.append(error)
                self._changed.notify_all()
            raise

    def _look(self, client: Client) -> None:
        where = f"/apis/networking.k8s.io/v1/namespaces/{self._namespace}/networkpolicies"
        policies: list[Raw] = client.page(KubeRequest("GET", where)).items
        pods = sorted(located(client.page(PODS.list(self._namespace)).items), key=lambda pod: pod.name)
        self._nft.install(rules(policies, pods, self._namespace, self._addresses), [pod.address for pod in pods])
        now = Seen(frozenset(pod.name for pod in pods), frozenset(each["metadata"]["name"] for each in policies))
        with self._changed:
            self._seen = now
            self._changed.notify_all()


def located(pods: Iterable[Raw]) -> Iterator[Located]:
    """Of raw pods those that hold an address; one that has ended gave it back."""
    for pod in pods:
        address = pod["status"].get("podIP")
        if address and pod["status"]["phase"] not in _ENDED:
            yield Located(pod["metadata"]["name"], address, pod["metadata"].get("labels", {}))


class Nft:
    """A table of our own: the kernel removes it when the process that made it is gone."""

    def __init__(self, process: subprocess.Popen[str], table: str) -> None:
        self._process, self._table, self._installed = process, table, ""
        base = "priority 0; policy accept; }"
        self._do(
            f"add table ip {table} {{ flags owner; }}",
            *(f"add chain ip {table} {name}" for name in ("metadata", "egress", "ingress", "first")),
            *(f"add rule ip {table} first jump {name}" for name in ("metadata", "egress", "ingress")),
            *(f"add chain ip {table} {hook} {{ type filter hook {hook} {base}" for hook in ("input", "forward")),
            # A connection is judged by its first packet.
            *(f"add rule ip {table} {hook} tcp flags != syn / syn,ack accept" for hook in ("input", "forward")),
            *(f"add rule ip {table} {hook} jump first" for hook in ("input", "forward")),
        )

    def install(self, made: Iterable[tuple[str, str]], pods: Sequence[str]) -> None:
        """In one transaction, in place of those before. `pods`: nobody else is to see the metadata service."""
        others = f"ip saddr != {{ {', '.join(pods)} }} " if pods else ""
        stranger = ("metadata", f"{others}ip daddr {METADATA} reject with icmp type net-unreachable")
        added = [f"add rule ip {self._table} {chain} {rule}" for chain, rule in (stranger, *made)]
        if (text := "; ".join(added)) != self._installed:
            flushed = [f"flush chain ip {self._table} {chain}" for chain in ("metadata", "egress", "ingress")]
            self._do(*flushed, *added)
            self._installed = text

    def _do(self, *statements: str) -> None:
        """Each line is a transaction; the listing after it says that it is over."""
        into, out = _pipe(self._process.stdin), _pipe(self._process.stdout)
        into.write("; ".join(statements) + f"\nlist table ip {self._table}\n")
        into.flush()
        said = list[str]()
        while not said or said[-1] not in ("}\n", ""):
            said.append(out.readline())
        if said[-1] == "" or any("Error" in line for line in said):
            raise RuntimeError(f"nft: {''.join(said)}")


@contextmanager
def metadata_service() -> Generator[None]:
    """Something that accepts connections where a cloud has its metadata service."""
    lives = ("valid_lft", str(_ADDRESS_S), "preferred_lft", str(_ADDRESS_S))
    node("ip", "address", "replace", f"{METADATA}/32", "dev", "lo", *lives)
    try:
        with _inside(sys.executable, "-I", "-S", "-c", _LISTEN) as service:
            assert _pipe(service.stdout).readline() == "listening\n"
            yield
    finally:
        node("ip", "address", "del", f"{METADATA}/32", "dev", "lo")


@contextmanager
def enforced(namespace: str, addresses: Sequence[str]) -> Generator[Enforcer]:
    """The namespace's policies, in force until the end of the block. `addresses`: see `rules`."""
    with ExitStack() as stack:
        nft = Nft(stack.enter_context(_inside("nft", "-i")), namespace)
        yield stack.enter_context(Enforcer(namespace, addresses, nft))


def node(*command: str) -> str:
    """What a command printed in the node's network."""
    ran = subprocess.run([*network_command(), *command], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@contextmanager
def _inside(*command: str) -> Generator[subprocess.Popen[str]]:
    """A program in the node's network that ends with its input."""
    with subprocess.Popen(
        [*network_command(), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            _pipe(process.stdin).close()
            process.wait(60)


def network_command() -> tuple[str, ...]:
    """What runs its arguments in the node's network."""
    return tuple(os.environ["TRIALFLEET_TEST_NETWORK"].split())


@contextmanager
def _client() -> Generator[Client]:
    client = Client.connect()
    try:
        yield client
    finally:
        client.close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
