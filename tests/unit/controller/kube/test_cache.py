"""Whatever is delivered twice, late or never: changes are exact, and the cache ends as the cluster is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.backends.kube.pod_cache import ChangeKind, PodCache, PodChange
from trialfleet_controller.backends.kube.pods import Pod


def pod(name: str, uid: str, version: int, created: float = 0) -> Pod:
    return Pod(uid, name, resource_version=str(version), created_at=created)


def told(changes: list[PodChange]) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, change.pod.uid) for change in changes]


def test_a_listing_tells_what_came_changed_and_went() -> None:
    cache = PodCache()
    assert told(cache.snapshot([pod("a", "1", 1), pod("b", "2", 2)])) == [
        (ChangeKind.ADDED, "1"),
        (ChangeKind.ADDED, "2"),
    ]
    assert told(cache.snapshot([pod("b", "2", 3)])) == [(ChangeKind.DELETED, "1"), (ChangeKind.MODIFIED, "2")]
    assert cache.snapshot([pod("b", "2", 3)]) == []


def test_a_pod_made_again_under_its_name_is_another_pod() -> None:
    for through_a_listing in (True, False):
        cache = PodCache()
        cache.snapshot([pod("a", "1", 1)])
        again = pod("a", "2", 5)
        changes = cache.snapshot([again]) if through_a_listing else cache.seen(again)
        assert told(changes) == [(ChangeKind.DELETED, "1"), (ChangeKind.ADDED, "2")]


def test_a_late_event_does_not_bring_a_deleted_pod_back() -> None:
    cache = PodCache()
    cache.snapshot([pod("a", "1", 1)])
    assert told(cache.deleted(pod("a", "1", 9))) == [(ChangeKind.DELETED, "1")]
    assert cache.seen(pod("a", "1", 3)) == []
    assert cache.deleted(pod("a", "1", 9)) == []


@dataclass(frozen=True)
class Happened:
    """One change of the cluster: a version of a pod, or its deletion."""

    pod: Pod
    deleted: bool


@st.composite
def histories(draw: st.DrawFn) -> list[Happened]:
    """What happens to pods of two names in a cluster: created, changed, deleted, created again with a new uid."""
    living: dict[str, Pod] = {}
    history: list[Happened] = []
    for version in range(draw(st.integers(0, 25))):
        name = draw(st.sampled_from("ab"))
        known = living.get(name)
        delete = known is not None and draw(st.booleans())
        uid, created = (known.uid, known.created_at or 0) if known else (f"{name}{version}", version)
        now = pod(name, uid, version, created)
        history.append(Happened(now, delete))
        if delete:
            del living[name]
        else:
            living[name] = now
    return history


def truth(history: list[Happened]) -> dict[str, Pod]:
    living: dict[str, Pod] = {}
    for one in history:
        living.pop(one.pod.uid, None)
        if not one.deleted:
            living[one.pod.uid] = one.pod
    return living


@given(history=histories(), data=st.data())
def test_lost_repeated_and_reordered_events_end_in_the_truth(history: list[Happened], data: st.DataObject) -> None:
    cache, seen = PodCache(), defaultdict[str, list[ChangeKind]](list)
    delivered = data.draw(st.lists(st.sampled_from(history), max_size=40)) if history else []
    changes: list[PodChange] = []
    for one in delivered:
        changes += cache.deleted(one.pod) if one.deleted else cache.seen(one.pod)
    changes += cache.snapshot(truth(history).values())
    for change in changes:
        seen[change.pod.uid].append(change.kind)
    for kinds in seen.values():
        assert kinds[0] is ChangeKind.ADDED
        assert kinds.count(ChangeKind.ADDED) == 1
        assert ChangeKind.DELETED not in kinds[:-1]
    alive = {uid for uid, kinds in seen.items() if kinds[-1] is not ChangeKind.DELETED}
    assert alive <= truth(history).keys()
    assert len(cache) == len(alive)


@given(history=histories(), cut=st.integers(0, 25))
def test_a_gap_closed_by_a_listing_loses_nothing(history: list[Happened], cut: int) -> None:
    cache, states = PodCache(), dict[str, Pod]()
    changes: list[PodChange] = []
    for one in history[:cut]:
        changes += cache.deleted(one.pod) if one.deleted else cache.seen(one.pod)
    changes += cache.snapshot(truth(history).values())  # what happened after the cut, nobody saw
    for change in changes:
        if change.kind is ChangeKind.DELETED:
            del states[change.pod.uid]
        else:
            states[change.pod.uid] = change.pod
    assert states == truth(history)
