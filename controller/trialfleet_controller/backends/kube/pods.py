"""Parses the JSON of a pod into the few fields that the tracker needs. Missing fields are allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, cast


class PodPhase(StrEnum):
    """As Kubernetes reports it. It is never the verdict."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Doing(StrEnum):
    """The state of a container."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class Container:
    """A container's status. `exit_code`, `message` and `started_at` (seconds since the epoch) belong to a
    termination; `image_id`: as the kubelet reports it."""

    name: str
    doing: Doing = Doing.WAITING
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    image_id: str = ""
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class PodCondition:
    kind: str
    true: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """`labels` and `annotations`: only ours. Times are seconds since the epoch, on the server's clock.

    `deleted_at`: when a requested deletion ends, its grace included; None: no deletion was requested.
    `owner`: the uid of its first owner.
    """

    uid: str
    name: str
    resource_version: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    phase: PodPhase = PodPhase.UNKNOWN
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    containers: tuple[Container, ...] = ()
    node: str = ""
    created_at: float | None = None
    started_at: float | None = None
    deleted_at: float | None = None
    owner: str = ""
    deletion_grace_s: float = 0.0

    @property
    def terminal(self) -> bool:
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    def label(self, key: str) -> str:
        return dict(self.labels).get(key, "")

    def annotation(self, key: str) -> str:
        return dict(self.annotations).get(key, "")

    def container(self, name: str) -> Container:
        """A container that the kubelet has not reported counts as waiting."""
        return next((one for one in self.containers if one.name == name), Container(name))

    def condition(self, kind: str) -> PodCondition | None:
        return next((one for one in self.conditions if one.kind == kind), None)


def parse(raw: Mapping[str, Any], *, domain: str = "trialfleet.dev/") -> Pod:
    """Raises `KeyError` without a uid or a name; every other field may be missing."""
    head, spec, status = _dict(raw, "metadata"), _dict(raw, "spec"), _dict(raw, "status")
    return Pod(
        uid=head["uid"],
        name=head["name"],
        resource_version=_text(head, "resourceVersion"),
        labels=_ours(_dict(head, "labels"), domain),
        annotations=_ours(_dict(head, "annotations"), domain),
        phase=_phase(_text(status, "phase")),
        reason=_text(status, "reason"),
        message=_text(status, "message"),
        conditions=tuple(_condition(one) for one in _dicts(status, "conditions")),
        containers=tuple(_container(one) for one in _dicts(status, "containerStatuses")),
        node=_text(spec, "nodeName"),
        created_at=time_of(head.get("creationTimestamp")),
        started_at=time_of(status.get("startTime")),
        deleted_at=time_of(head.get("deletionTimestamp")),
        owner=next((_text(one, "uid") for one in _dicts(head, "ownerReferences")), ""),
        deletion_grace_s=float(head.get("deletionGracePeriodSeconds") or 0),
    )


def json_object(value: object) -> dict[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _container(raw: Mapping[str, Any]) -> Container:
    state = _dict(raw, "state")
    doing = next((doing for doing in Doing if doing in state), Doing.WAITING)
    details = _dict(state, doing)
    code = details.get("exitCode")
    return Container(
        name=_text(raw, "name"),
        doing=doing,
        reason=_text(details, "reason"),
        message=_text(details, "message"),
        exit_code=code if isinstance(code, int) else None,
        image_id=_text(raw, "imageID"),
        started_at=time_of(details.get("startedAt")) if doing is Doing.TERMINATED else None,
    )


def _condition(raw: Mapping[str, Any]) -> PodCondition:
    return PodCondition(
        _text(raw, "type"), _text(raw, "status") == "True", _text(raw, "reason"), _text(raw, "message")
    )


def _phase(text: str) -> PodPhase:
    return PodPhase(text) if text in set(PodPhase) else PodPhase.UNKNOWN


def _ours(given: Mapping[str, Any], domain: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in given.items() if key.startswith(domain))


def time_of(value: object) -> float | None:
    """RFC 3339, as API servers write it.

    >>> time_of("2026-11-21T10:00:00Z"), time_of(None)
    (1795255200.0, None)
    """
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except ValueError:
        return None


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _dict(raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    return json_object(raw.get(key))


def _dicts(raw: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    value = raw.get(key)
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return (found for one in entries if (found := json_object(one)))
