"""The reflector's view of pods: listings and events in, changes out. No network, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from trialfleet_controller.backends.kube.pods import Pod

_BURIED = 10_000  # uids of deleted pods that are kept: a late event must not bring one back


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class PodChange:
    """`pod`: of a deletion, the last state that was seen."""

    kind: ChangeKind
    pod: Pod


class PodCache:
    """Pods by uid. Events arrive at least once and may be coalesced. The changes of one uid are exactly one ADDED,
    then any number of MODIFIED, then at most one DELETED."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._uids: dict[str, str] = {}  # by name
        self._buried: dict[str, None] = {}  # uids in order of their deletion

    def __len__(self) -> int:
        return len(self._pods)

    def named(self, name: str) -> Pod | None:
        uid = self._uids.get(name)
        return None if uid is None else self._pods[uid]

    def snapshot(self, pods: Iterable[Pod]) -> list[PodChange]:
        """Apply a complete listing: a pod that is not in it has been deleted, even if no event said so."""
        listed = {pod.uid: pod for pod in pods}
        gone = [uid for uid in self._pods if uid not in listed]
        changes = [change for uid in gone for change in self._bury(self._pods[uid])]
        for pod in listed.values():
            changes += self._seen(pod)
        return changes

    def seen(self, pod: Pod) -> list[PodChange]:
        """Apply ADDED or MODIFIED: after a gap either may come first."""
        return [] if pod.uid in self._buried else list(self._seen(pod))

    def deleted(self, pod: Pod) -> list[PodChange]:
        """Apply DELETED. `pod`: its last state, from the event."""
        return list(self._bury(pod)) if pod.uid in self._pods else []

    def _seen(self, pod: Pod) -> Iterator[PodChange]:
        known = self._pods.get(pod.uid)
        if known is not None and known.resource_version == pod.resource_version:
            return
        other = self.named(pod.name)
        if other is not None and other.uid != pod.uid:
            if (pod.created_at or 0) < (other.created_at or 0):
                return  # a late event of a pod that has been replaced
            yield from self._bury(other)  # deleted and created again while no watch was open
        self._pods[pod.uid], self._uids[pod.name] = pod, pod.uid
        yield PodChange(ChangeKind.ADDED if known is None else ChangeKind.MODIFIED, pod)

    def _bury(self, pod: Pod) -> Iterator[PodChange]:
        del self._pods[pod.uid]
        if self._uids.get(pod.name) == pod.uid:
            del self._uids[pod.name]
        self._buried[pod.uid] = None
        if len(self._buried) > _BURIED:
            del self._buried[next(iter(self._buried))]
        yield PodChange(ChangeKind.DELETED, pod)
