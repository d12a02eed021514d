"""What a namespace must allow: exactly the verbs that are needed, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trialfleet_controller.kube.client import Client


class Need(NamedTuple):
    """One verb on one resource. `why`: "to …"."""

    verb: str
    resource: str  # "pods" or "pods/log"
    why: str
    group: str = ""

    def __str__(self) -> str:
        named = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {named}"


# A campaign's controller needs these and no more: the Role in k8s/base says the same.
DRIVING = (
    Need("create", "pods", "to launch attempts"),
    Need("get", "pods", "to know its own again after a time-out"),
    Need("list", "pods", "to find what an earlier controller launched"),
    Need("watch", "pods", "to see attempts end"),
    Need("delete", "pods", "to stop attempts and clear away those that ended"),
    Need("create", "configmaps", "to make the owner of a campaign's pods"),
    Need("get", "configmaps", "to find that owner again"),
    Need("delete", "configmaps", "to clear a whole campaign away"),
    Need("get", "pods/log", "to read what the probe pod found, and a runner's last words"),
    Need("list", "events", "to say why a pod does not start"),
)

# Who submits a controller's Job needs these besides.
SUBMITTING = (
    Need("create", "jobs", "to submit the controller", "batch"),
    Need("get", "jobs", "to find it again", "batch"),
)


def missing(client: Client, namespace: str, needs: Iterable[Need]) -> list[Need]:
    """Those that the API server says no to. Raises `ApiError`."""
    return [need for need in needs if not _may(client, namespace, need)]


def _may(client: Client, namespace: str, need: Need) -> bool:
    resource, _, subresource = need.resource.partition("/")
    return client.may(namespace, need.verb, resource, subresource=subresource, group=need.group)


def lacking(needs: Iterable[Need]) -> str:
    """As a sentence.

    >>> lacking([Need("create", "pods", "to launch attempts")])
    'not allowed: create pods (to launch attempts)'
    """
    return "not allowed: " + ", ".join(f"{need} ({need.why})" for need in needs)
