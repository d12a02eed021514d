"""A pod as its tracker needs it: a slim record out of raw JSON, tolerant of what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, cast


class Phase(StrEnum):
    """Kubernetes' own word. It is never the verdict."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Doing(StrEnum):
    """What a container does."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class Container:
    """A container's status. `exit_code` and `message` of a termination; `image_id` as the kubelet reports it."""

    name: str
    doing: Doing = Doing.WAITING
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    kind: str
    true: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """`labels` and `annotations` are ours alone; times are seconds since the epoch, on the server's clock.

    `deleted_at`: when the pod is to be gone, its grace included; None: nobody has asked for it.
    """

    uid: str
    name: str
    resource_version: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    phase: Phase = Phase.UNKNOWN
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    containers: tuple[Container, ...] = ()
    node: str = ""
    created_at: float | None = None
    started_at: float | None = None
    deleted_at: float | None = None
    deletion_grace_s: float = 0.0

    @property
    def terminal(self) -> bool:
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)

    def label(self, key: str) -> str:
        return dict(self.labels).get(key, "")

    def annotation(self, key: str) -> str:
        return dict(self.annotations).get(key, "")

    def container(self, name: str) -> Container:
        """A container that the kubelet has not reported yet is waiting."""
        return next((one for one in self.containers if one.name == name), Container(name))

    def condition(self, kind: str) -> Condition | None:
        return next((one for one in self.conditions if one.kind == kind), None)


def parse(raw: Mapping[str, Any], *, domain: str = "trialfleet.dev/") -> Pod:
    """Everything but a uid and a name may be missing. Raises `KeyError` without those: it is no pod."""
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
        created_at=_time(head.get("creationTimestamp")),
        started_at=_time(status.get("startTime")),
        deleted_at=_time(head.get("deletionTimestamp")),
        deletion_grace_s=float(head.get("deletionGracePeriodSeconds") or 0),
    )


def json_object(value: object) -> dict[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _container(raw: Mapping[str, Any]) -> Container:
    state = _dict(raw, "state")
    doing = next((doing for doing in Doing if doing in state), Doing.WAITING)
    told = _dict(state, doing)
    code = told.get("exitCode")
    return Container(
        name=_text(raw, "name"),
        doing=doing,
        reason=_text(told, "reason"),
        message=_text(told, "message"),
        exit_code=code if isinstance(code, int) else None,
        image_id=_text(raw, "imageID"),
    )


def _condition(raw: Mapping[str, Any]) -> Condition:
    return Condition(
        _text(raw, "type"), _text(raw, "status") == "True", _text(raw, "reason"), _text(raw, "message")
    )


def _phase(text: str) -> Phase:
    return Phase(text) if text in set(Phase) else Phase.UNKNOWN


def _ours(given: Mapping[str, Any], domain: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in given.items() if key.startswith(domain))


def _time(value: object) -> float | None:
    """RFC 3339, as API servers write it.

    >>> _time("2026-11-21T10:00:00Z"), _time(None)
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
