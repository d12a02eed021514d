"""What a pod's state means for its attempt: pure, table-driven, blind to task and condition.

The ledger decides how an attempt ended. This says whether its runner has gone, or will never come, and why.
First match wins; the words are in `reasons`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from trialfleet_controller.classify import MESSAGE_LIMIT, Departure
from trialfleet_controller.kube import names, reasons
from trialfleet_controller.kube.pods import Condition, Container, Doing, Phase, Pod
from trialfleet_controller.kube.words import last_words
from trialfleet_runner.campaign import Graces
from trialfleet_runner.contract import HaltScope, Loss, LossClass


class Concern(StrEnum):
    """A state that is fine for a while. Its age is what the tracker measures, on its own clock."""

    IMAGE_PULL = "image pull"
    CONFIG = "config"
    CREATING = "creating"
    UNSCHEDULABLE = "unschedulable"
    PENDING = "pending"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True)
class Event:
    """One of the pod's own events."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Its runner has ended, or can no longer be there."""

    departure: Departure


@dataclass(frozen=True, slots=True)
class Stuck:
    """Its runner will not come, or must not go on: the pod has to be deleted."""

    departure: Departure


Finding = Gone | Stuck


def concerns(pod: Pod) -> frozenset[Concern]:
    """Which clocks run for this pod. None run for one that works."""
    found = {Concern.TERMINATING} if pod.deleted_at is not None else set[Concern]()
    if pod.terminal:
        return frozenset(found)
    for one in _expected(pod):
        if one.doing is Doing.WAITING:
            found |= _of_waiting(one)
    if pod.container(names.RUNNER).doing is Doing.WAITING and not _gated(pod):
        found.add(Concern.PENDING)
    if _unschedulable(pod) is not None:
        found.add(Concern.UNSCHEDULABLE)
    return frozenset(found)


def judge(
    pod: Pod,
    *,
    ages: Mapping[Concern, float],
    graces: Graces,
    image_id: str,
    attempt: tuple[str, int],
    events: Sequence[Event] = (),
) -> Finding | None:
    """None: still fine. `ages`: seconds that each present concern has lasted; `events`: asked for when needed."""
    wrong = _wrong_image(pod, image_id)
    if wrong is not None:
        return Stuck(Departure(named=wrong))
    if pod.terminal or pod.container(names.RUNNER).doing is Doing.TERMINATED:
        return Gone(_departure(pod, attempt))
    if ages.get(Concern.TERMINATING, 0.0) > pod.deletion_grace_s + graces.terminating_s:
        return Gone(_named(LossClass.NODE_LOST, pod, "deleted, and its node never said that it ended"))
    loss = _by_start(pod) or _stuck(pod, ages, graces, events)
    return None if loss is None else Stuck(Departure(named=loss))


def vanished(last: Pod | None, attempt: tuple[str, int], *, image_id: str) -> Gone:
    """The pod is not there any more. `last`: as it was seen last; None: it never was in any listing."""
    if last is None:
        return Gone(Departure(named=_loss(LossClass.TERMINATED, "the pod was created, and never seen")))
    if (wrong := _wrong_image(last, image_id)) is not None:
        return Gone(Departure(named=wrong))
    known = _disruption(last) or _by_pod_reason(last)
    if known is not None or last.terminal or last.container(names.RUNNER).doing is Doing.TERMINATED:
        return Gone(_departure(last, attempt))
    return Gone(_named(LossClass.TERMINATED, last, "the pod was deleted"))


# --- ended ------------------------------------------------------------------------------------------


def _departure(pod: Pod, attempt: tuple[str, int]) -> Departure:
    """How a terminal pod's runner went: what the cluster did to it first, then what it says itself."""
    runner = pod.container(names.RUNNER)
    said = last_words(runner.message, attempt)
    named = _disruption(pod) or _by_pod_reason(pod) or _by_container(pod) or _by_start(pod)
    if named is None and runner.exit_code is None:
        named = _loss(LossClass.RUNNER, _told(pod, "the pod ended, and its runner's status is not known"))
    return Departure(code=runner.exit_code, words=said.message, named=named, last_words=said.end)


def _disruption(pod: Pod) -> Loss | None:
    target = pod.condition("DisruptionTarget")
    if target is None or not target.true:
        return None
    loss, words = reasons.DISRUPTIONS.get(target.reason, (LossClass.EVICTED, "disrupted"))
    return _loss(loss, _told(pod, _with(f"{words} ({target.reason})", target.message)))


def _by_pod_reason(pod: Pod) -> Loss | None:
    if pod.reason == "Evicted" and (reasons.OWN_DISK in pod.message or reasons.VOLUME_LIMIT in pod.message):
        return _loss(LossClass.EVICTED, _told(pod, "it used more disk than the plan gives it"))
    if pod.reason.startswith(reasons.REFUSED_BY_NODE):
        return _loss(LossClass.UNSCHEDULABLE, _told(pod, "its node refused it"))
    loss = reasons.POD_REASONS.get(pod.reason)
    if loss is None and _refused_by_node(pod):
        return _loss(LossClass.UNSCHEDULABLE, _told(pod, "its node refused it"))
    return None if loss is None else _loss(loss, _told(pod, "ended by the cluster"))


def _refused_by_node(pod: Pod) -> bool:
    """Kubelets have many reasons (`TopologyAffinityError`, `TaintToleration`…), and get more. What they have in
    common: the pod has failed, and none of its containers has ever been made."""
    begun = any(one.doing is not Doing.WAITING for one in pod.containers)
    return pod.phase is Phase.FAILED and bool(pod.reason) and not begun


def _by_container(pod: Pod) -> Loss | None:
    """Out of memory counts by reason: under cgroup v1 a container outlives its killed child, with its own code.
    The agent's is the runner's to judge."""
    runner, score = pod.container(names.RUNNER), pod.container(names.SCORE)
    if runner.reason == "OOMKilled":
        return _loss(LossClass.RUNNER, _told(pod, "the runner's container ran out of memory (OOMKilled)"))
    if runner.reason in reasons.NO_STATUS:
        return _loss(LossClass.NODE_LOST, _told(pod, _with(f"the node lost it ({runner.reason})", runner.message)))
    if score.reason == "OOMKilled":
        words = _told(pod, "the tests' container ran out of memory (OOMKilled)")
        return _loss(LossClass.SCORING, words).model_copy(update={"by_patch": True})
    return None


def _by_start(pod: Pod) -> Loss | None:
    """A container that never ran: `restartPolicy: Never`, so it never will. A runner would wait for it in vain."""
    one = next((one for one in _expected(pod) if one.reason in reasons.NEVER_RAN), None)
    if one is None:
        return None
    absent = any(text in one.message for text in reasons.NO_SUCH_PROGRAM)
    halt = HaltScope.TASK if absent else HaltScope.NONE
    return _loss(LossClass.SETUP, _with(f"the {one.name} did not start ({one.reason})", one.message), halt)


# --- not ended --------------------------------------------------------------------------------------


def _wrong_image(pod: Pod, image_id: str) -> Loss | None:
    for one in _expected(pod):
        if one.image_id and one.doing is not Doing.WAITING and digest_of(one.image_id) != digest_of(image_id):
            words = f"container {one.name} runs the image {one.image_id}, the plan has {image_id}"
            return _loss(LossClass.SETUP, words, HaltScope.CAMPAIGN)
    return None


def _stuck(pod: Pod, ages: Mapping[Concern, float], graces: Graces, events: Sequence[Event]) -> Loss | None:
    for one in _expected(pod):
        if one.doing is Doing.WAITING and one.reason in reasons.BAD_REFERENCE:
            return _loss(LossClass.IMAGE_PULL, _waiting(one, events), HaltScope.TASK)
    if _age(ages, Concern.CONFIG) > graces.config_error_s:
        return _loss(LossClass.SETUP, _first(pod, reasons.MISCONFIGURED, events), HaltScope.TASK)
    if _age(ages, Concern.CREATING) > graces.config_error_s and (loss := _by_events(events)) is not None:
        return loss
    if _age(ages, Concern.IMAGE_PULL) > graces.image_pull_s:
        return _pull_loss(_first(pod, reasons.PULLING, events))
    if _age(ages, Concern.UNSCHEDULABLE) > graces.unschedulable_s:
        return _loss(LossClass.UNSCHEDULABLE, _with(_why_unscheduled(pod), _last_event(events)))
    if _age(ages, Concern.PENDING) > graces.pending_s:
        kind = LossClass.SETUP if pod.node else LossClass.UNSCHEDULABLE
        return _loss(kind, _with(f"still pending after {graces.pending_s:g} s", _last_event(events)))
    return None


def _by_events(events: Sequence[Event]) -> Loss | None:
    """A pod that stays `ContainerCreating` says why in its events alone."""
    for event in reversed(events):
        if event.reason in reasons.SANDBOX:
            return _loss(LossClass.SETUP, _with("its sandbox could not be made", event.message))
        if event.reason in reasons.MOUNT:
            halt = HaltScope.TASK if "not found" in event.message else HaltScope.NONE
            return _loss(LossClass.SETUP, _with("a volume could not be mounted", event.message), halt)
    return None


def _pull_loss(words: str) -> Loss:
    halt = HaltScope.TASK if any(text in words for text in reasons.NO_SUCH_IMAGE) else HaltScope.NONE
    return _loss(LossClass.IMAGE_PULL, words, halt)


def _of_waiting(one: Container) -> set[Concern]:
    if one.reason in reasons.PULLING:
        return set() if reasons.OWN_PATIENCE in one.message else {Concern.IMAGE_PULL}
    if one.reason in reasons.MISCONFIGURED:
        return {Concern.CONFIG}
    return {Concern.CREATING} if one.reason in reasons.CREATING else set()


def _gated(pod: Pod) -> bool:
    """A queue holds it back, as Kueue does: it waits its turn, however long that takes."""
    scheduled = pod.condition("PodScheduled")
    return scheduled is not None and not scheduled.true and scheduled.reason == "SchedulingGated"


def _unschedulable(pod: Pod) -> Condition | None:
    scheduled = pod.condition("PodScheduled")
    return scheduled if scheduled and not scheduled.true and scheduled.reason == "Unschedulable" else None


def _why_unscheduled(pod: Pod) -> str:
    scheduled = _unschedulable(pod)
    return _with("no node takes it", scheduled.message if scheduled else "")


def _age(ages: Mapping[Concern, float], concern: Concern) -> float:
    return ages.get(concern, 0.0)


# --- words ------------------------------------------------------------------------------------------


def digest_of(image_id: str) -> str:
    """What two spellings of one image have in common.

    >>> digest_of("docker-pullable://registry.example/team/x@sha256:0a"), digest_of("sha256:0a")
    ('sha256:0a', 'sha256:0a')
    """
    return image_id.rpartition("://")[2].rpartition("@")[2]


def _expected(pod: Pod) -> list[Container]:
    return [pod.container(name) for name in names.CONTAINERS]


def _first(pod: Pod, among: frozenset[str], events: Sequence[Event]) -> str:
    return next((_waiting(one, events) for one in pod.containers if one.reason in among), "")


def _waiting(one: Container, events: Sequence[Event]) -> str:
    words = _with(f"container {one.name} cannot start ({one.reason})", one.message)
    last = _last_event(events)
    return words if last in words else _with(words, last)


def _last_event(events: Sequence[Event]) -> str:
    return f"{events[-1].reason}: {events[-1].message}" if events else ""


def _told(pod: Pod, words: str) -> str:
    """With what the pod's own status says, and where it ran."""
    where = f" on node {pod.node}" if pod.node else ""
    return _with(f"{words}{where}", ": ".join(part for part in (pod.reason, pod.message) if part))


def _with(words: str, more: str) -> str:
    return f"{words}: {more.strip()}" if more.strip() else words


def _named(loss: LossClass, pod: Pod, words: str) -> Departure:
    return Departure(named=_loss(loss, _told(pod, words)))


def _loss(loss: LossClass, message: str, halt: HaltScope = HaltScope.NONE) -> Loss:
    """Complete but for how far the attempt had come, which the ledger knows."""
    return Loss(loss=loss, message=message[:MESSAGE_LIMIT], agent_started=False, halt=halt)
