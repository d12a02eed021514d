"""Runs the probe pod: what a pod of the campaign's image contains and reaches, in the campaign's namespace."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from pydantic import ValidationError

from trialfleet_controller.backends.kube.api_requests import PODS, Json, pod_events, pod_log
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError
from trialfleet_controller.backends.kube.manifest import API_ADDRESS, FOLDER, KUBELET_ADDRESS, model_env, probe_pod
from trialfleet_controller.backends.kube.pods import Doing, Pod, parse
from trialfleet_controller.operate import refusals
from trialfleet_controller.operate.outside_queue import create_outside_queue, ended_by_sigterm, unqueued
from trialfleet_controller.operate.waiting import PodStart
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.grants import GRANTS_URL
from trialfleet_ledger.store.probe import FOLDER as PROBES
from trialfleet_ledger.store.probe import probe_grants
from trialfleet_ledger.store.protocol import Store
from trialfleet_runner.pod_report import PodProbeReport

METADATA = "169.254.169.254:80"  # the credentials of a cloud
_PEER_PORT = 8421
_LISTENS = "listening"
_PEER = (
    f"import socket, time; s = socket.create_server(('', {_PEER_PORT})); "
    f"print({_LISTENS!r}, flush=True); time.sleep(600)"
)
_CUT_S = 10  # many network plugins apply policies only some seconds after a pod starts
_LOOK_S = 0.5
_EVENTS_S = 2.0
_EXAMINES_S = 120  # besides the image pull; most of it is waiting for the store
_LOG_BYTES = 2**20


@dataclass(frozen=True)
class Probed:
    """`image_id`: as the kubelet reports it. `by_digest`: the name by which the pod was started; None: as in the
    file."""

    report: PodProbeReport
    image_id: str
    node: str
    by_digest: str | None = None


def probe_cluster(
    client: Client,
    kube: KubernetesSpec,
    agents: Sequence[AgentSpec],
    store: Store | None,
    *,
    say: Callable[[str], None],
) -> Probed:
    """Runs the probe pod and a peer that it must not reach; both are deleted when this returns.

    `store` None: it is not probed. Raises `OperatorError` when a pod cannot start.
    """
    namespace, name = kube.namespaces[0], f"trialfleet-probe-{secrets.token_hex(4)}"
    deadline_s = int(kube.graces.image_pull_s) + _EXAMINES_S
    looks, held_s = unqueued(kube), deadline_s + kube.graces.unschedulable_s
    with (
        ended_by_sigterm(),
        _granted(store, held_s) as grants,
        _pod(client, kube, _peer(looks, name, deadline_s)) as peer,
    ):
        met = _until(client, kube, peer, lambda pod: _listens(client, namespace, pod), say)
        address = met["status"]["podIP"]
        env = _env(client, kube, agents, f"{address}:{_PEER_PORT}") | grants

        def look(image: str) -> Probed:
            tried = looks.model_copy(update={"image": image})
            pod = probe_pod(tried, name=f"{name}-{secrets.token_hex(2)}", env=env, deadline_s=deadline_s)
            with _pod(client, kube, pod) as probe:
                ended = _until(client, kube, probe, lambda pod: pod.terminal, say)
                return _probed(client, namespace, kube, parse(ended))

        return _looked(kube.image, parse(met).container("probe").image_id, look, say)


def _looked(image: str, image_id: str, look: Callable[[str], Probed], say: Callable[[str], None]) -> Probed:
    """Tries the image's digest first, then its name: nodes may not reach the registry under the digest's name."""
    found = by_digest(image, image_id)
    if found is None:
        return look(image)
    try:
        return replace(look(found), by_digest=found)
    except OperatorError as error:
        probed = look(image)
        say(f"image {image} keeps its tag: no pod starts with its digest: {error}")
        return probed


def _peer(kube: KubernetesSpec, name: str, deadline_s: int) -> Json:
    """A pod that only listens. It needs no key."""
    bare = kube.model_copy(update={"model_secret": None})
    command = (f"{FOLDER}/bin/python", "-I", "-S", "-c", _PEER)
    pod = probe_pod(bare, name=f"{name}-peer", env={}, deadline_s=deadline_s, command=command)
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def _listens(client: Client, namespace: str, peer: Pod) -> bool:
    """A running container may not listen yet, and would look unreachable."""
    if peer.container("probe").doing is not Doing.RUNNING:
        return False
    with suppress(ApiError):  # asked again
        return _LISTENS in _log(client, namespace, peer, lines=1)
    return False


def _log(client: Client, namespace: str, pod: Pod, *, lines: int) -> str:
    return client.text(pod_log(namespace, pod.name, container="probe", lines=lines, limit_bytes=_LOG_BYTES))


def _env(client: Client, kube: KubernetesSpec, agents: Sequence[AgentSpec], peer: str) -> dict[str, str]:
    canary = [*_api_servers(client), METADATA, peer]
    return {
        "TRIALFLEET_KUBELET": KUBELET_ADDRESS,
        "TRIALFLEET_PROBE_AGENTS": json.dumps([agent.model_dump(mode="json") for agent in agents]),
        "TRIALFLEET_CANARY": " ".join(canary),
        "TRIALFLEET_CANARY_S": str(0 if kube.allow_unenforced_network else _CUT_S),
        **model_env(kube),
    }


def _api_servers(client: Client) -> tuple[str, ...]:
    """The API server as pods know it and, if it is not this machine's loopback, as this client does."""
    server = urlsplit(client.host)
    if server.hostname in (None, "localhost", "127.0.0.1", "::1"):
        return (API_ADDRESS,)
    return API_ADDRESS, f"{server.hostname}:{server.port or 443}"


def forbidden_addresses(client: Client, reports: Sequence[PodProbeReport]) -> tuple[str, ...]:
    """What a runner must find refused: addresses that answer wherever no policy refuses them. The kubelet only if
    every probe found it refused, because a policy need not cut a pod from its node."""
    kubelets = [report.kubelet for report in reports]
    refused = all(one is not None and one.answer in ("refused", "timeout") for one in kubelets)
    return (*_api_servers(client), *((KUBELET_ADDRESS,) if refused else ()))


@contextmanager
def _granted(store: Store | None, lives_s: float) -> Generator[dict[str, str]]:
    """The variable with the address of the probe's grants, for keys that only this probe uses."""
    if store is None:
        yield {}
        return
    folder = f"{PROBES}/{secrets.token_hex(8)}"
    given = f"{folder}/grants.json"
    store.create(given, canonical_json(probe_grants(store, folder, expires_s=lives_s)))
    try:
        yield {GRANTS_URL: store.grant_get(given, expires_s=lives_s).url}
    finally:
        for entry in list(store.list(f"{folder}/")):
            store.delete(entry.key)


@contextmanager
def _pod(client: Client, kube: KubernetesSpec, manifest: Json) -> Generator[Pod]:
    namespace = kube.namespaces[0]
    try:
        made = parse(create_outside_queue(client, namespace, manifest, kube.queue))
    except ApiError as error:
        raise refusals.error_of_check(refusals.refused_pod(error, namespace)) from error
    try:
        yield made
    finally:
        with suppress(ApiError):  # its deadline ends it
            client.call(PODS.delete(namespace, made.name, uid=made.uid, grace_s=0))


def _until(
    client: Client, kube: KubernetesSpec, made: Pod, enough: Callable[[Pod], bool], say: Callable[[str], None]
) -> Json:
    """The pod's raw JSON once `enough` is true. Raises `OperatorError` when it cannot become true."""
    namespace = kube.namespaces[0]
    start = PodStart(kube, tell=lambda words: say(f"waiting for pod {made.name}: {words}"))
    asked, events = time.monotonic(), list[Json]()
    while True:
        try:
            raw = client.call(PODS.get(namespace, made.name))
            if time.monotonic() - asked >= _EVENTS_S:
                asked, events = time.monotonic(), client.page(pod_events(namespace, made.uid)).items
        except ApiError as error:
            raise OperatorError(str(error), where=f"pod {made.name}", hint="try again") from error
        pod = parse(raw)
        if enough(pod):
            return raw
        start.check(pod, events, where=f"probe pod in {namespace}")
        if pod.terminal:
            raise _ended(namespace, pod)
        time.sleep(_LOOK_S)


def _ended(namespace: str, pod: Pod) -> OperatorError:
    container = pod.container("probe")
    why = container.message or container.reason or pod.message or pod.reason or "without a reason"
    return OperatorError(
        f"the pod ended: {why}",
        where=f"probe pod in {namespace}",
        hint="use an image that `trialfleet image build` made as kubernetes.image",
    )


def _probed(client: Client, namespace: str, kube: KubernetesSpec, pod: Pod) -> Probed:
    """The pod's log has the whole report; its termination message has a shortened one."""
    container = pod.container("probe")
    log = container.message
    with suppress(ApiError):
        log = _log(client, namespace, pod, lines=200) or log
    try:
        report = PodProbeReport.model_validate_json(log.strip().rpartition("\n")[2])
    except ValidationError:
        said = log.strip().rpartition("\n")[2][:300] or f"exit code {container.exit_code}"
        raise OperatorError(
            f"image {kube.image} has no runner of this version: {said}",
            where=f"probe pod in {namespace}",
            hint="build it with this version's `trialfleet image build`, or correct kubernetes.image",
        ) from None
    return Probed(report, container.image_id, pod.node)


_HUB = "docker.io"


def by_digest(image: str, image_id: str) -> str | None:
    """`image` with the digest that a kubelet reports (`image_id`). None: the image was loaded into the node, so no
    registry has a digest under this name.

    Source: github.com/distribution/reference, "familiar names".

    >>> by_digest("registry.example:5000/team/x:1", "registry.example:5000/team/x@sha256:0a")
    'registry.example:5000/team/x@sha256:0a'
    >>> by_digest("x:1", "docker-pullable://docker.io/library/x@sha256:0a")
    'docker.io/library/x@sha256:0a'
    >>> by_digest("x:1", "sha256:0a"), by_digest("x:1", "docker.io/library/import-2026-11-21@sha256:0a")
    (None, None)
    >>> by_digest("x@sha256:0b", "sha256:0a")
    'x@sha256:0b'
    """
    if "@" in image:
        return image
    found = image_id.rpartition("://")[2]
    repository, at, _ = found.partition("@")
    return found if at and _repository(repository) == _repository(image) else None


def _repository(name: str) -> str:
    """The full name, without its tag."""
    folder, slash, last = name.rpartition("/")
    bare = f"{folder}{slash}{last.partition(':')[0]}"
    domain, slash, rest = bare.partition("/")
    if not slash or not (set(domain) & {".", ":"} or domain == "localhost"):
        domain, rest = _HUB, bare
    return f"{domain}/{rest}" if "/" in rest or domain != _HUB else f"{domain}/library/{rest}"
