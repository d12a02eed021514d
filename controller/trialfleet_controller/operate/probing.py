"""The probe pod: what a pod of the campaign's image is and reaches, in the campaign's namespace and settings."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from trialfleet_controller.kube import shape
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError
from trialfleet_controller.kube.manifest import FOLDER, GRANTS_URL, probe_pod
from trialfleet_controller.kube.pods import Doing, Pod, parse
from trialfleet_controller.operate import refusals
from trialfleet_controller.operate.waiting import Trouble, trouble
from trialfleet_runner.campaign import KubernetesSpec
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.pod.probe import ProbeReport
from trialfleet_runner.store.probe import FOLDER as PROBES
from trialfleet_runner.store.probe import probe_grants
from trialfleet_runner.store.protocol import Store

Json = dict[str, Any]

METADATA = "169.254.169.254:80"  # a cloud's credentials, if nothing forbids it
API = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"  # the kubelet fills it in
_PEER_PORT = 8421
_LISTENS = "listening"
_PEER = (
    f"import socket, time; s = socket.create_server(('', {_PEER_PORT})); "
    f"print({_LISTENS!r}, flush=True); time.sleep(600)"
)
_CUT_S = 10  # until a pod's network is cut; many plug-ins do it only after its start
_LOOK_S = 0.5
_EVENTS_S = 2.0
_EXAMINES_S = 120  # beside the image's pull: the store's patience is most of it
_LOG_BYTES = 2**20


@dataclass(frozen=True)
class Probed:
    """`image_id`: as the kubelet reports it."""

    report: ProbeReport
    image_id: str
    node: str


def probe_cluster(
    client: Client, kube: KubernetesSpec, agent: AgentSpec, store: Store | None, *, say: Callable[[str], None]
) -> Probed:
    """Runs one pod that looks, and one that it must not reach; both are gone when this returns.

    `store` None: it is not looked at. Raises `OperatorError` for whatever keeps them from starting.
    """
    namespace, name = kube.namespaces[0], f"trialfleet-probe-{secrets.token_hex(4)}"
    deadline_s = int(kube.graces.image_pull_s) + _EXAMINES_S
    with _granted(store, deadline_s) as grants, _pod(client, namespace, _peer(kube, name, deadline_s)) as peer:
        met = _until(client, kube, peer, lambda pod: _listens(client, namespace, pod), say)
        address = met["status"]["podIP"]
        env = _env(client, kube, agent, f"{address}:{_PEER_PORT}") | grants
        with _pod(client, namespace, probe_pod(kube, name=name, env=env, deadline_s=deadline_s)) as probe:
            ended = _until(client, kube, probe, lambda pod: pod.terminal, say)
            return _probed(client, namespace, kube, parse(ended))


def _peer(kube: KubernetesSpec, name: str, deadline_s: int) -> Json:
    """Listens, and nothing else. It needs no key."""
    bare = kube.model_copy(update={"model_secret": None})
    command = (f"{FOLDER}/bin/python", "-I", "-S", "-c", _PEER)
    pod = probe_pod(bare, name=f"{name}-peer", env={}, deadline_s=deadline_s, command=command)
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def _listens(client: Client, namespace: str, peer: Pod) -> bool:
    """A container that runs may not have come to it yet, and be taken for one that is cut off."""
    if peer.container("probe").doing is not Doing.RUNNING:
        return False
    with suppress(ApiError):  # asked again
        return _LISTENS in client.pod_log(namespace, peer.name, container="probe", lines=1, limit_bytes=_LOG_BYTES)
    return False


def _env(client: Client, kube: KubernetesSpec, agent: AgentSpec, peer: str) -> dict[str, str]:
    canary = [API, METADATA, peer]
    server = urlsplit(client.host)
    if server.hostname not in (None, "localhost", "127.0.0.1", "::1"):
        canary.append(f"{server.hostname}:{server.port or 443}")
    return {
        "TRIALFLEET_PROBE_AGENT": agent.model_dump_json(),
        "TRIALFLEET_CANARY": " ".join(canary),
        "TRIALFLEET_CANARY_S": str(0 if kube.allow_unenforced_network else _CUT_S),
        **shape.model_env(kube),
    }


@contextmanager
def _granted(store: Store | None, lives_s: float) -> Generator[dict[str, str]]:
    """The variable that says where the probe reads what it may write: keys that nobody else uses."""
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
def _pod(client: Client, namespace: str, manifest: Json) -> Generator[Pod]:
    try:
        made = parse(client.create_pod(namespace, manifest))
    except ApiError as error:
        check = refusals.refused_pod(error, namespace)
        raise OperatorError(check.found, where=check.name, hint=check.mend) from error
    try:
        yield made
    finally:
        with suppress(ApiError):  # its deadline ends it
            client.delete_pod(namespace, made.name, uid=made.uid, grace_s=0)


def _until(
    client: Client, kube: KubernetesSpec, made: Pod, enough: Callable[[Pod], bool], say: Callable[[str], None]
) -> Json:
    """The pod's raw JSON once it is `enough`. Raises `OperatorError` when it will not be."""
    namespace = kube.namespaces[0]
    since: dict[str, float] = {}
    asked, events = time.monotonic(), list[Json]()
    while True:
        try:
            raw = client.get_pod(namespace, made.name)
            if time.monotonic() - asked >= _EVENTS_S:
                asked, events = time.monotonic(), client.events(namespace, uid=made.uid)
        except ApiError as error:
            raise OperatorError(str(error), where=f"pod {made.name}", hint="try again") from error
        pod = parse(raw)
        if enough(pod):
            return raw
        kept = trouble(pod, events, kube)
        if kept is not None:
            lasted_s = time.monotonic() - since.setdefault(kept.words, time.monotonic())
            say(f"waiting for pod {made.name}: {kept.words}")
            _give_up(namespace, kept, lasted_s)
        if pod.terminal:
            raise _ended(namespace, pod)
        time.sleep(_LOOK_S)


def _give_up(namespace: str, kept: Trouble, lasted_s: float) -> None:
    if lasted_s >= kept.patience_s:
        raise OperatorError(kept.words, where=f"probe pod in {namespace}", hint=kept.mend)


def _ended(namespace: str, pod: Pod) -> OperatorError:
    container = pod.container("probe")
    why = container.message or container.reason or pod.message or pod.reason or "without a reason"
    return OperatorError(
        f"the pod ended: {why}",
        where=f"probe pod in {namespace}",
        hint="is kubernetes.image one that `trialfleet image build` made?",
    )


def _probed(client: Client, namespace: str, kube: KubernetesSpec, pod: Pod) -> Probed:
    """The report stands whole in the pod's log, and cut to size in its termination message."""
    container = pod.container("probe")
    log = container.message
    with suppress(ApiError):
        log = client.pod_log(namespace, pod.name, container="probe", lines=200, limit_bytes=_LOG_BYTES) or log
    try:
        report = ProbeReport.model_validate_json(log.strip().rpartition("\n")[2])
    except ValidationError:
        said = log.strip().rpartition("\n")[2][:300] or f"exit code {container.exit_code}"
        raise OperatorError(
            f"image {kube.image} has no runner of this version: {said}",
            where=f"probe pod in {namespace}",
            hint="build it with this version's `trialfleet image build`, or mend kubernetes.image",
        ) from None
    return Probed(report, container.image_id, pod.node)
