"""Checks of a cluster and a campaign's namespaces that start nothing, the cheapest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from trialfleet_controller.backends.kube import api_requests
from trialfleet_controller.backends.kube.api_requests import Json
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError, Forbidden, NotFound
from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_controller.operate import refusals
from trialfleet_controller.operate.cluster_capacity import (
    lower_limits,
    misfit_reason,
    node_places,
    quota_capacity,
)
from trialfleet_controller.operate.permissions import DRIVING, Need, missing
from trialfleet_ledger.plurals import plural

ENFORCE = "pod-security.kubernetes.io/enforce"


def cluster_checks(
    client: Client, namespaces: Sequence[str], pod: Json, *, width: int | None, queue: str | None = None
) -> Iterator[DoctorCheck]:
    """`pod`: an attempt's, as it would be created; `width`: how many are to run at once; `queue`: the Kueue queue
    that its pods name. After a "missing" check the following ones are meaningless: stop there."""
    try:
        version = client.call(api_requests.VERSION).get("gitVersion", "")
        yield DoctorCheck("cluster", "ok", f"Kubernetes {version} at {client.host}")
    except ApiError as error:
        yield refusals.unreachable(error, client.host)
        return
    for namespace in namespaces:
        check = _namespace(client, namespace)
        yield check
        if check.result == "missing":
            continue
        yield permissions_check(client, namespace, DRIVING)
        yield _admission(client, namespace, pod)
        yield _quota(client, namespace, pod, width)
        if queue is not None:
            yield _queue(client, namespace, queue)
    yield _nodes(client, pod, width)


def _namespace(client: Client, namespace: str) -> DoctorCheck:
    """Whether it exists, and which Pod Security level it enforces."""
    name = f"namespace {namespace}"
    try:
        found = client.call(api_requests.NAMESPACES.get(None, namespace))
    except NotFound:
        return refusals.no_namespace(namespace)
    except Forbidden:
        return DoctorCheck(name, "ok", "these credentials may not read it: its Pod Security level is not known")
    except ApiError as error:
        return DoctorCheck(name, "missing", str(error), "try again")
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    level = labels.get(ENFORCE)
    if level == "restricted":
        return DoctorCheck(name, "ok", "enforces Pod Security level restricted")
    return DoctorCheck(
        name,
        "warning",
        f"enforces Pod Security level {level or 'none'}: attempts obey restricted, other pods need not",
        f"kubectl label namespace {namespace} {ENFORCE}=restricted",
    )


def permissions_check(client: Client, namespace: str, needs: Sequence[Need]) -> DoctorCheck:
    """Whether these credentials have all these permissions."""
    name = f"permissions in {namespace}"
    try:
        lack = missing(client, namespace, needs)
    except ApiError as error:
        return DoctorCheck(name, "missing", str(error), "try again")
    if lack:
        return refusals.not_allowed(namespace, lack, nothing_at_all=list(needs) == list(DRIVING) == lack)
    return DoctorCheck(name, "ok", f"all {len(needs)} that are needed")


def _admission(client: Client, namespace: str, pod: Json) -> DoctorCheck:
    """A dry run of the server's admission: Pod Security, runtime and priority classes, quota, limits, webhooks."""
    try:
        client.call(api_requests.PODS.create(namespace, pod, dry_run=True))
    except ApiError as error:
        return refusals.refused_pod(error, namespace)
    return DoctorCheck(f"pods in {namespace}", "ok", "an attempt's pod would be admitted")


def _quota(client: Client, namespace: str, pod: Json, width: int | None) -> DoctorCheck:
    name = f"quota of {namespace}"
    try:
        found = client.page(api_requests.RESOURCE_QUOTAS.list(namespace)).items
    except ApiError as error:
        return DoctorCheck(name, "ok", f"not known: {error.reason or error.message}")
    fits, first = quota_capacity(found, pod)
    if fits is None:
        return DoctorCheck(name, "ok", "none that counts attempts")
    if fits == 0:
        return DoctorCheck(
            name, "missing", f"no attempt fits: {first} is used up", "raise it; kubectl describe quota shows it"
        )
    if width is not None and fits < width:
        short = (
            f"room for {plural(fits, 'more attempt')}, but limits.parallel is {width}: {first} is used up first"
        )
        return DoctorCheck(name, "warning", short, "raise the quota or lower limits.parallel; the others wait")
    return DoctorCheck(name, "ok", f"room for {plural(fits, 'more attempt')}")


def _queue(client: Client, namespace: str, queue: str) -> DoctorCheck:
    """Whether the LocalQueue exists and admits pods."""
    name = f"queue {queue} in {namespace}"
    try:
        found = client.call(api_requests.LOCAL_QUEUES.get(namespace, queue))
    except NotFound as error:
        if queue in error.message:
            hint = "correct kubernetes.labels (kubectl get localqueues lists the queues), or apply k8s/kueue"
            return DoctorCheck(name, "missing", "this LocalQueue does not exist", hint)
        return DoctorCheck(name, "warning", "no kueue.x-k8s.io/v1beta2 in this cluster: attempts do not queue")
    except ApiError as error:
        return DoctorCheck(name, "ok", f"not known: {error.reason or error.message}")
    conditions: Sequence[Mapping[str, str]] = found.get("status", {}).get("conditions", ())
    inactive = next((one for one in conditions if one["type"] == "Active" and one["status"] != "True"), None)
    if inactive is None:
        return DoctorCheck(name, "ok", "admits pods when it has quota")
    return DoctorCheck(
        name,
        "warning",
        f"admits nothing: {inactive.get('message', '')}",
        "activate the queue; until then attempts wait",
    )


def places_check(nodes: Sequence[Json], pod: Json, width: int | None, fitting: int) -> DoctorCheck:
    """How many attempts the `fitting` nodes take at once. Pure."""
    places = node_places(nodes, pod)
    found = (
        f"an attempt fits on {fitting} of {plural(len(nodes), 'node')}; if they were empty, "
        f"{places} would fit at once"
    )
    if width is None or width <= places:
        return DoctorCheck("nodes", "ok", found)
    lower = lower_limits(nodes, pod, width)
    fields = f"{', '.join(lower)} at most, for {width} on nodes without DaemonSets; or " if lower else ""
    return DoctorCheck(
        "nodes",
        "warning",
        f"{found}, and limits.parallel is {width}: the others wait until one ends, or an autoscaler adds a node",
        f"{fields}limits.parallel: {places}, or more nodes",
    )


def _nodes(client: Client, pod: Json, width: int | None) -> DoctorCheck:
    try:
        nodes = client.page(api_requests.NODES.list()).items
    except ApiError as error:
        return DoctorCheck("nodes", "ok", f"not known whether an attempt fits: {error.reason or error.message}")
    reasons = [misfit_reason(node, pod) for node in nodes]
    fitting = reasons.count(None)
    if fitting:
        return places_check(nodes, pod, width, fitting)
    why = ", ".join(f"{count} × {reason}" for reason, count in Counter(reasons).most_common())
    return DoctorCheck(
        "nodes",
        "warning",
        f"an attempt fits on none of {plural(len(nodes), 'node')} ({why}): it waits until an autoscaler adds one",
        "lower limits.cpu, memory or disk, correct kubernetes.node_selector or tolerations, or add a larger node",
    )
