"""A cluster and a campaign's namespaces, looked at without starting anything: cheapest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trialfleet_controller.checks import Check
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Forbidden, NotFound
from trialfleet_controller.operate import refusals
from trialfleet_controller.operate.listing import items
from trialfleet_controller.operate.permissions import DRIVING, Need, missing
from trialfleet_controller.operate.room import misfit, room

ENFORCE = "pod-security.kubernetes.io/enforce"
Json = dict[str, Any]


def cluster_checks(client: Client, namespaces: Sequence[str], pod: Json, *, width: int | None) -> Iterator[Check]:
    """`pod`: an attempt's, as it would be created; `width`: how many shall run at once. A "missing" check makes
    those after it meaningless: stop there."""
    try:
        yield Check("cluster", "ok", f"Kubernetes {client.version()} at {client.host}")
    except ApiError as error:
        yield refusals.unreachable(error, client.host)
        return
    for namespace in namespaces:
        there = _namespace(client, namespace)
        yield there
        if there.result == "missing":
            continue
        yield permissions_check(client, namespace, DRIVING)
        yield _takes(client, namespace, pod)
        yield _quota(client, namespace, pod, width)
    yield _nodes(client, pod)


def _namespace(client: Client, namespace: str) -> Check:
    """Whether it is there, and which Pod Security level it enforces."""
    name = f"namespace {namespace}"
    try:
        found = client.call("GET", f"/api/v1/namespaces/{namespace}")
    except NotFound:
        return refusals.no_namespace(namespace)
    except Forbidden:
        return Check(name, "ok", "may not be read: its Pod Security level is not known here")
    except ApiError as error:
        return Check(name, "missing", str(error), "try again")
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    level = labels.get(ENFORCE)
    if level == "restricted":
        return Check(name, "ok", "enforces Pod Security level restricted")
    return Check(
        name,
        "warning",
        f"enforces Pod Security level {level or 'none'}: attempts keep to restricted, others need not",
        f"kubectl label namespace {namespace} {ENFORCE}=restricted",
    )


def permissions_check(client: Client, namespace: str, needs: Sequence[Need]) -> Check:
    """Whether these credentials may do all of it there."""
    name = f"permissions in {namespace}"
    try:
        lack = missing(client, namespace, needs)
    except ApiError as error:
        return Check(name, "missing", str(error), "try again")
    if lack:
        return refusals.not_allowed(namespace, lack, nothing_at_all=list(needs) == list(DRIVING) == lack)
    return Check(name, "ok", f"all {len(needs)} that are needed")


def _takes(client: Client, namespace: str, pod: Json) -> Check:
    """The server's whole admission, dry: Pod Security, runtime and priority classes, quota, limits, webhooks."""
    try:
        client.call("POST", f"/api/v1/namespaces/{namespace}/pods", query={"dryRun": "All"}, body=pod)
    except ApiError as error:
        return refusals.refused_pod(error, namespace)
    return Check(f"pods in {namespace}", "ok", "an attempt's pod would be admitted")


def _quota(client: Client, namespace: str, pod: Json, width: int | None) -> Check:
    name = f"quota of {namespace}"
    try:
        found = items(client, f"/api/v1/namespaces/{namespace}/resourcequotas")
    except ApiError as error:
        return Check(name, "ok", f"not known: {error.reason or error.message}")
    fits, first = room(found, pod)
    if fits is None:
        return Check(name, "ok", "none that counts attempts")
    if fits == 0:
        return Check(name, "missing", f"no attempt fits: {first} is used up", "kubectl describe quota; raise it")
    if width is not None and fits < width:
        short = f"{fits} attempts fit beside what runs there, limits.parallel is {width}: {first} ends first"
        return Check(name, "warning", short, "the others wait; raise the quota or lower limits.parallel")
    return Check(name, "ok", f"{fits} attempts fit beside what runs there")


def _nodes(client: Client, pod: Json) -> Check:
    try:
        nodes = items(client, "/api/v1/nodes")
    except ApiError as error:
        return Check("nodes", "ok", f"not known whether an attempt fits: {error.reason or error.message}")
    reasons = [misfit(node, pod) for node in nodes]
    fitting = reasons.count(None)
    if fitting:
        return Check("nodes", "ok", f"an attempt fits on {fitting} of {len(nodes)}")
    why = ", ".join(f"{count} × {reason}" for reason, count in Counter(reasons).most_common())
    return Check(
        "nodes",
        "warning",
        f"an attempt fits on none of {len(nodes)} nodes ({why}): it waits for an autoscaler, if there is one",
        "lower limits.cpu, memory or disk, mend kubernetes.node_selector or tolerations, or add a larger node",
    )
