"""Compares a pod's requests with quotas and with nodes. Pure, over raw JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from trialfleet_controller.backends.kube.pod_requests import REQUEST_FIELDS
from trialfleet_ledger.quantities import parse_quantity

Raw = Mapping[str, Any]

_NODE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


def counted_resources(pod: Raw) -> dict[str, Decimal]:
    """What a ResourceQuota counts for a pod, by the quota's names: the sums of its containers and the pod itself.

    >>> box = {"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}
    >>> counted = counted_resources({"spec": {"containers": [box, box]}})
    >>> {name: int(count) for name, count in sorted(counted.items())}
    {'count/pods': 1, 'cpu': 2, 'limits.memory': 2147483648, 'pods': 1, 'requests.cpu': 2}
    """
    sums: dict[str, Decimal] = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for container in pod["spec"]["containers"]:
        resources: Raw = container.get("resources", {})
        for kind, prefixes in (("requests", ("", "requests.")), ("limits", ("limits.",))):
            for name, amount in resources.get(kind, {}).items():
                for key in (prefix + name for prefix in prefixes):
                    sums[key] = sums.get(key, Decimal(0)) + _amount(amount)
    return sums


def quota_capacity(quotas: Iterable[Raw], pod: Raw) -> tuple[int | None, str | None]:
    """How many more such pods the quotas allow, and what is used up first. (None, None): no quota counts them.
    Quotas with scopes are ignored: the pod does not say whether they count it."""
    needed = counted_resources(pod)
    least: tuple[int, str] | None = None
    for quota in quotas:
        if quota.get("spec", {}).get("scopes") or quota.get("spec", {}).get("scopeSelector"):
            continue
        status: Raw = quota.get("status", {})
        for name, hard in status.get("hard", {}).items():
            if not needed.get(name):
                continue
            left = _amount(hard) - _amount(status.get("used", {}).get(name, 0))
            fits = max(0, int(left // needed[name]))
            if least is None or fits < least[0]:
                least = fits, f"{name} of quota {quota['metadata']['name']}"
    return least or (None, None)


def misfit_reason(node: Raw, pod: Raw) -> str | None:
    """Why the pod could not run on the node even if the node were empty. None: it could."""
    spec: Raw = pod["spec"]
    labels: Raw = node["metadata"].get("labels", {})
    if node.get("spec", {}).get("unschedulable"):
        return "cordoned"
    conditions: Sequence[Raw] = node.get("status", {}).get("conditions", ())
    if any(told["type"] == "Ready" and told["status"] != "True" for told in conditions):
        return "not ready"
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return "node_selector does not match"
    tolerations: Sequence[Raw] = spec.get("tolerations", ())
    for taint in node.get("spec", {}).get("taints", ()):
        if taint.get("effect") != "PreferNoSchedule" and not any(_tolerates(t, taint) for t in tolerations):
            return f"taint {taint['key']} is not tolerated"
    allocatable: Raw = node.get("status", {}).get("allocatable", {})
    needed = counted_resources(pod)
    short = [name for name in _NODE_RESOURCES if needed.get(name, 0) > _amount(allocatable.get(name, 0))]
    return f"too little {' and '.join(short)}" if short else None


def node_places(nodes: Iterable[Raw], pod: Raw) -> int:
    """How many such pods the nodes that it fits on could hold if they were empty."""
    return _places((node for node in nodes if misfit_reason(node, pod) is None), counted_resources(pod))


def lower_limits(nodes: Sequence[Raw], pod: Raw, wanted: int) -> list[str]:
    """The fields, each with the largest value, with which `wanted` such pods fit on these nodes: those alone that
    are too large now. Empty: no lower values are of use."""
    fitting = [node for node in nodes if misfit_reason(node, pod) is None]
    needed = counted_resources(pod)
    lower = {
        name: _largest_share([_allocatable(node, name) for node in fitting], needed[name], wanted, field.step)
        for name, field in REQUEST_FIELDS.items()
        if needed.get(name)
    }
    values = {name: REQUEST_FIELDS[name].value(share) for name, share in lower.items() if share < needed[name]}
    if None in values.values() or _places(fitting, needed | lower) < wanted:
        return []
    return [f"{REQUEST_FIELDS[name].name}: {value}" for name, value in values.items()]


def _places(nodes: Iterable[Raw], needed: Mapping[str, Decimal]) -> int:
    used = [name for name in _NODE_RESOURCES if needed.get(name)]
    return sum(min(int(_allocatable(node, name) // needed[name]) for name in used) for node in nodes)


def _largest_share(amounts: Sequence[Decimal], most: Decimal, wanted: int, step: Decimal) -> Decimal:
    """The largest request, in steps and at most `most`, of which `wanted` fit into these amounts; 0: none is."""

    def fits(request: Decimal) -> bool:
        return sum(int(amount // request) for amount in amounts) >= wanted

    if fits(most):
        return most
    low, high = 0, int(most // step)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * step) else (low, middle - 1)
    return low * step


def _allocatable(node: Raw, name: str) -> Decimal:
    return _amount(node.get("status", {}).get("allocatable", {}).get(name, 0))


def _amount(written: object) -> Decimal:
    """Of a quantity that an API server wrote, as text or as a number."""
    return parse_quantity(str(written))


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect") not in (None, taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")
