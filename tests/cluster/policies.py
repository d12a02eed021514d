"""What a set of NetworkPolicies lets a pod reach: the semantics of `networking.k8s.io/v1`, as far as k8s/ uses
them. Pure: it says what the objects mean, not what a network plug-in does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Raw = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """The other side: an address outside of the cluster, or a pod."""

    address: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    namespace: str = ""


def reaches(policies: Sequence[Raw], pod: Mapping[str, str], namespace: str, to: Peer, port: int) -> bool:
    """Whether a pod of `namespace` with these labels may open TCP or UDP `port` of `to`."""
    return _allowed(policies, pod, namespace, to, port, "Egress")


def reached(policies: Sequence[Raw], pod: Mapping[str, str], namespace: str, by: Peer, port: int) -> bool:
    """Whether `by` may open `port` of the pod."""
    return _allowed(policies, pod, namespace, by, port, "Ingress")


def _allowed(
    policies: Sequence[Raw], pod: Mapping[str, str], namespace: str, peer: Peer, port: int, way: str
) -> bool:
    specs = [p["spec"] for p in policies if p["metadata"]["namespace"] == namespace]
    selecting = [s for s in specs if way in s["policyTypes"] and _selects(s["podSelector"], pod)]
    if not selecting:
        return True
    rules = [rule for spec in selecting for rule in spec.get(way.lower(), [])]
    side = "to" if way == "Egress" else "from"
    return any(_to_port(rule, port) and _to_peer(rule.get(side), namespace, peer) for rule in rules)


def _to_port(rule: Raw, port: int) -> bool:
    return "ports" not in rule or any(each["port"] == port for each in rule["ports"])


def _to_peer(peers: Sequence[Raw] | None, own: str, peer: Peer) -> bool:
    return peers is None or any(_is(each, own, peer) for each in peers)


def _is(described: Raw, own: str, peer: Peer) -> bool:
    if "ipBlock" in described:
        block = described["ipBlock"]
        inside = [cidr for cidr in (block["cidr"], *block.get("except", [])) if _within(peer.address, cidr)]
        return inside == [block["cidr"]]
    if peer.address is not None:
        return False
    where = {"kubernetes.io/metadata.name": peer.namespace}
    near = (
        _selects(described["namespaceSelector"], where)
        if "namespaceSelector" in described
        else peer.namespace == own
    )
    return near and _selects(described.get("podSelector", {}), peer.labels)


def _within(address: str | None, cidr: str) -> bool:
    return address is not None and ip_address(address) in ip_network(cidr)


def _selects(selector: Raw, labels: Mapping[str, str]) -> bool:
    equal = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return equal and all(_expressed(each, labels) for each in selector.get("matchExpressions", []))


def _expressed(expression: Raw, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise ValueError(other)
