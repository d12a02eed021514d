"""What a reflector knows: listings and events in, changes out. No network, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from trialfleet_controller.kube.pods import Pod

_BURIED = 10_000  # uids of deleted pods that are remembered: a late event must not bring one back


class Kind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """`pod` of a deletion: as it was seen last."""

    kind: Kind
    pod: Pod


class Cache:
    """Pods by uid. Delivery is at-least-once and coalesced: what comes out is exactly one ADDED per uid, then any
    MODIFIED, then at most one DELETED, and nothing after it."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._uids: dict[str, str] = {}  # by name
        self._buried: dict[str, None] = {}  # uids in order of their deletion

    def __len__(self) -> int:
        return len(self._pods)

    def named(self, name: str) -> Pod | None:
        uid = self._uids.get(name)
        return None if uid is None else self._pods[uid]

    def snapshot(self, pods: Iterable[Pod]) -> list[Change]:
        """A whole listing is the truth: what it lacks has been deleted, even when no event said so."""
        listed = {pod.uid: pod for pod in pods}
        gone = [uid for uid in self._pods if uid not in listed]
        changes = [change for uid in gone for change in self._bury(self._pods[uid])]
        for pod in listed.values():
            changes += self._seen(pod)
        return changes

    def seen(self, pod: Pod) -> list[Change]:
        """ADDED and MODIFIED are the same thing: after a gap either may come first."""
        return [] if pod.uid in self._buried else list(self._seen(pod))

    def deleted(self, pod: Pod) -> list[Change]:
        """`pod`: its last state, as the event carries it."""
        return list(self._bury(pod)) if pod.uid in self._pods else []

    def _seen(self, pod: Pod) -> Iterator[Change]:
        known = self._pods.get(pod.uid)
        if known is not None and known.resource_version == pod.resource_version:
            return
        other = self.named(pod.name)
        if other is not None and other.uid != pod.uid:
            if (pod.created_at or 0) < (other.created_at or 0):
                return  # a late word about a pod whose successor is known
            yield from self._bury(other)  # deleted and made again while nobody watched
        self._pods[pod.uid], self._uids[pod.name] = pod, pod.uid
        yield Change(Kind.ADDED if known is None else Kind.MODIFIED, pod)

    def _bury(self, pod: Pod) -> Iterator[Change]:
        del self._pods[pod.uid]
        if self._uids.get(pod.name) == pod.uid:
            del self._uids[pod.name]
        self._buried[pod.uid] = None
        if len(self._buried) > _BURIED:
            del self._buried[next(iter(self._buried))]
        yield Change(Kind.DELETED, pod)
