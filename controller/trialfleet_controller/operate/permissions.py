"""The permissions that a controller needs in a namespace, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from trialfleet_controller.backends.kube.api_requests import access_review
from trialfleet_controller.backends.kube.pods import json_object

if TYPE_CHECKING:
    from trialfleet_controller.backends.kube.client import Client


class Need(NamedTuple):
    """One verb on one resource. `why`: "to …"."""

    verb: str
    resource: str  # "pods" or "pods/log"
    why: str
    group: str = ""

    def __str__(self) -> str:
        named = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {named}"


# A controller needs exactly these, and so does the user who submits it. The Role in k8s/base lists the same.
DRIVING = (
    Need("create", "pods", "to launch attempts"),
    Need("get", "pods", "to recognise its own after a time-out"),
    Need("list", "pods", "to find what an earlier controller launched"),
    Need("watch", "pods", "to see attempts end"),
    Need("patch", "pods", "to pass fresh grants to runners after a key was changed"),
    Need("delete", "pods", "to stop attempts and remove ended ones"),
    Need("create", "configmaps", "to create the owner of a campaign's pods"),
    Need("get", "configmaps", "to find that owner again"),
    Need("delete", "configmaps", "to remove a whole campaign"),
    Need(
        "create",
        "jobs",
        "to submit the controller, and to limit how long pods outlive it",
        "batch",
    ),
    Need("get", "jobs", "to find that limit again", "batch"),
    Need("patch", "jobs", "to move it while a controller runs", "batch"),
    Need("delete", "jobs", "to remove it with the campaign", "batch"),
    Need("get", "pods/log", "to read what the probe pod found, and a runner's last words"),
    Need("list", "events", "to say why a pod does not start"),
)


def missing(client: Client, namespace: str, needs: Iterable[Need]) -> list[Need]:
    """The permissions that the API server denies. Raises `ApiError`."""
    return [need for need in needs if not _may(client, namespace, need)]


def _may(client: Client, namespace: str, need: Need) -> bool:
    resource, _, subresource = need.resource.partition("/")
    request = access_review(namespace, need.verb, resource, subresource=subresource, group=need.group)
    return bool(json_object(client.call(request).get("status")).get("allowed"))


def lacking(needs: Iterable[Need]) -> str:
    """A message.

    >>> lacking([Need("create", "pods", "to launch attempts")])
    'not allowed: create pods (to launch attempts)'
    """
    return "not allowed: " + ", ".join(f"{need} ({need.why})" for need in needs)
