"""What a pod's state means for its attempt. Pure and table-driven: it knows neither task nor condition.

The ledger decides how an attempt ended. This decides whether its runner has ended, or will never start, and why.
The first match wins; the tables are in `reasons`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from trialfleet_controller.backends.attempt_times import Validity
from trialfleet_controller.backends.kube import names, reasons
from trialfleet_controller.backends.kube.pods import Container, Doing, Pod, PodCondition, PodPhase
from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.campaign_spec import Graces
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.attempt import KUBELET_BYTES, End, LastWords
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS, HaltScope, Loss, LossClass


class PendingCondition(StrEnum):
    """A state that is allowed for a while. The tracker measures its age on its own clock."""

    IMAGE_PULL = "image pull"
    CONFIG = "config"
    CREATING = "creating"
    UNSCHEDULABLE = "unschedulable"
    PENDING = "pending"
    TERMINATING = "terminating"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class PodEvent:
    """One of the pod's own events."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodFinding:
    """Its runner has ended, or can no longer exist. `stuck`: it will not start, or must not continue, and the pod
    has to be deleted."""

    termination: RunnerTermination
    stuck: bool = False


def pending_conditions(pod: Pod) -> frozenset[PendingCondition]:
    """The states of this pod that have a grace; none for a pod that works."""
    found = {PendingCondition.TERMINATING} if pod.deleted_at is not None else set[PendingCondition]()
    if pod.terminal:
        return frozenset(found)
    if gated(pod):
        return frozenset({*found, PendingCondition.QUEUED})
    for one in _expected(pod):
        if one.doing is Doing.WAITING:
            found |= _of_waiting(one)
    if pod.container(names.RUNNER).doing is Doing.WAITING:
        found.add(PendingCondition.PENDING)
    if unschedulable(pod) is not None:
        found.add(PendingCondition.UNSCHEDULABLE)
    return frozenset(found)


def judge(
    pod: Pod,
    *,
    ages: Mapping[PendingCondition, float],
    graces: Graces,
    image_id: str,
    attempt: tuple[str, int],
    events: Sequence[PodEvent] = (),
) -> PodFinding | None:
    """None: the attempt continues. `ages`: seconds that each present condition has lasted."""
    wrong = _wrong_image(pod, image_id)
    if wrong is not None:
        return PodFinding(RunnerTermination(named=wrong), stuck=True)
    if pod.terminal or pod.container(names.RUNNER).doing is Doing.TERMINATED:
        return PodFinding(_termination(pod, attempt))
    if ages.get(PendingCondition.TERMINATING, 0.0) > pod.deletion_grace_s + graces.terminating_s:
        return PodFinding(_named(LossClass.NODE_LOST, pod, "deleted, and its node never reported that it ended"))
    loss = _by_start(pod) or _stuck(pod, ages, graces, events)
    return None if loss is None else PodFinding(RunnerTermination(named=loss), stuck=True)


def vanished(last: Pod | None, attempt: tuple[str, int], *, image_id: str) -> PodFinding:
    """The pod does not exist. `last`: its last known state; None: it never was in a listing."""
    if last is None:
        return PodFinding(
            RunnerTermination(named=_loss(LossClass.TERMINATED, "the pod was created and was never listed"))
        )
    if (wrong := _wrong_image(last, image_id)) is not None:
        return PodFinding(RunnerTermination(named=wrong))
    known = _disruption(last, TerminationMessage()) or _by_pod_reason(last)
    if known is not None or last.terminal or last.container(names.RUNNER).doing is Doing.TERMINATED:
        return PodFinding(_termination(last, attempt))
    return PodFinding(_named(LossClass.TERMINATED, last, "the pod was deleted"))


def started_after_grants(pod: Pod, validity: Validity) -> bool:
    """Whether its runner started when its grants had expired and so did nothing. A pod can leave its queue that
    late while no controller runs."""
    runner = pod.container(names.RUNNER)
    if runner.exit_code != RunnerExit.UNANSWERED or runner.started_at is None or pod.created_at is None:
        return False
    return runner.started_at - pod.created_at >= validity.expires_s


def disrupted(pod: Pod) -> bool:
    """Whether its own status says who deleted it."""
    return _disruption(pod, TerminationMessage()) is not None or _by_pod_reason(pod) is not None


def orphaned(config_map: str) -> Loss:
    """The loss of a pod that the garbage collector deleted because its owner is gone."""
    words = f"deleted with its owner: ConfigMap {config_map} was deleted, and the controller made it again"
    return _loss(LossClass.TERMINATED, words)


# --- ended ------------------------------------------------------------------------------------------


def _termination(pod: Pod, attempt: tuple[str, int]) -> RunnerTermination:
    """How a terminal pod's runner ended: first by what the cluster did to it, then by what it says itself."""
    runner = pod.container(names.RUNNER)
    said = last_words(runner.message, attempt)
    named = _disruption(pod, said) or _by_pod_reason(pod) or _by_container(pod) or _by_start(pod)
    if named is None and runner.exit_code is None:
        named = (
            _pod_loss(LossClass.RUNNER, pod, "the pod ended, and the status of its runner is not known")
            if pod.node
            else _pod_loss(LossClass.TERMINATED, pod, "the pod was deleted before it had a node")
        )
    return RunnerTermination(
        code=runner.exit_code,
        words=said.message,
        named=named,
        last_words=said.end,
        exhausted=pod.reason == reasons.EVICTED and _eviction(pod, said).loss is None,
    )


def _disruption(pod: Pod, said: TerminationMessage) -> Loss | None:
    """Who ended the pod, as its conditions say. What its kubelet evicted it for comes first."""
    if pod.reason == reasons.EVICTED:
        return _evicted_by_kubelet(pod, said)
    target = pod.condition(reasons.DISRUPTION)
    if target is not None and target.true:
        event, words = reasons.DISRUPTIONS.get(target.reason, (EndEvent.PREEMPTED, "disrupted"))
        return _pod_loss(_witnessed(event), pod, _with(f"{words} ({target.reason})", target.message))
    queue = pod.condition(reasons.QUEUE_DISRUPTION)
    if queue is not None and queue.true:
        words = reasons.QUEUE_DISRUPTIONS.get(queue.reason, "its queue withdrew its quota")
        return _pod_loss(_witnessed(EndEvent.PREEMPTED), pod, _with(f"{words} ({queue.reason})", queue.message))
    return None


@dataclass(frozen=True, slots=True)
class _Eviction:
    """By a kubelet. `within_limits`: False: the program that ran was beyond its limits."""

    event: EndEvent
    words: str
    within_limits: bool = True

    @property
    def loss(self) -> LossClass | None:
        """None: the agent is exhausted."""
        return loss_of_event(self.event, within_limits=self.within_limits)


def _eviction(pod: Pod, said: TerminationMessage) -> _Eviction:
    """What a kubelet evicted the pod for: by its words and, of the program that ran, by the runner's last sample.
    Tests beyond their limits have died once: the next attempt scores the same patch."""
    limit = next((container for words, container in reasons.OVER_LIMIT.items() if words in pod.message), None)
    over = said.program is not None and (said.over_limits or limit in (said.program, reasons.POD))
    if over and said.program == names.SCORE:
        return _Eviction(EndEvent.TESTS_DIED, "its tests were beyond their limits")
    if over:
        return _Eviction(EndEvent.OVER_LIMIT, "its agent was beyond its limits: exhausted", within_limits=False)
    if limit is not None:
        return _Eviction(EndEvent.OVER_LIMIT, "it used more than its limit")
    return _Eviction(EndEvent.NODE_PRESSURE, "its node is short of a resource")


def _evicted_by_kubelet(pod: Pod, said: TerminationMessage) -> Loss:
    """The loss of the attempt, which an exhausted agent has, too: its verdict is written by the next."""
    eviction = _eviction(pod, said)
    loss = _pod_loss(eviction.loss or LossClass.OVERUSE, pod, eviction.words)
    return loss.model_copy(update={"by_patch": eviction.event is EndEvent.TESTS_DIED})


def _witnessed(event: EndEvent) -> LossClass:
    """The loss that the API server or the kubelet witnesses; the default, should the table name none: only the
    runner's own end can be a verdict."""
    return loss_of_event(event) or LossClass.TERMINATED


def _by_pod_reason(pod: Pod) -> Loss | None:
    if pod.reason.startswith(reasons.REFUSED_BY_NODE):
        return _pod_loss(LossClass.UNSCHEDULABLE, pod, "its node refused it")
    if (event := reasons.POD_EVENTS.get(pod.reason)) is not None:
        return _pod_loss(_witnessed(event), pod, "ended by the cluster")
    loss = reasons.POD_REASONS.get(pod.reason)
    if loss is None and _refused_by_node(pod):
        return _pod_loss(LossClass.UNSCHEDULABLE, pod, "its node refused it")
    return None if loss is None else _pod_loss(loss, pod, "ended by the cluster")


def _refused_by_node(pod: Pod) -> bool:
    """Kubelets have many reasons for it (`TopologyAffinityError`, `TaintToleration`…). In all of them the pod has
    failed and none of its containers was created."""
    begun = any(one.doing is not Doing.WAITING for one in pod.containers)
    return pod.phase is PodPhase.FAILED and bool(pod.reason) and not begun


def _by_container(pod: Pod) -> Loss | None:
    """Out of memory counts by reason, not by code: under cgroup v1 a container outlives its killed child. The
    runner judges the agent's container."""
    runner, score = pod.container(names.RUNNER), pod.container(names.SCORE)
    if runner.reason == "OOMKilled":
        return _pod_loss(LossClass.RUNNER, pod, "the runner's container ran out of memory (OOMKilled)")
    if runner.reason in reasons.NO_STATUS:
        return _pod_loss(
            LossClass.NODE_LOST, pod, _with(f"its node lost the container ({runner.reason})", runner.message)
        )
    if score.reason == "OOMKilled":
        words = _with_status(pod, "the tests' container ran out of memory (OOMKilled)")
        return _loss(_witnessed(EndEvent.TESTS_DIED), words).model_copy(update={"by_patch": True})
    return None


def _by_start(pod: Pod) -> Loss | None:
    """A container that did not start never will (`restartPolicy: Never`), and the runner would wait for it
    forever."""
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
            words = f"container {one.name} runs image {one.image_id}, but the plan has {image_id}"
            return _loss(LossClass.SETUP, words, HaltScope.CAMPAIGN)
    return None


def _stuck(
    pod: Pod, ages: Mapping[PendingCondition, float], graces: Graces, events: Sequence[PodEvent]
) -> Loss | None:
    for one in _expected(pod):
        if one.doing is Doing.WAITING and one.reason in reasons.BAD_REFERENCE:
            return _loss(LossClass.IMAGE_PULL, _waiting(one, events), HaltScope.TASK)
    if _age(ages, PendingCondition.CONFIG) > graces.config_error_s:
        return _loss(LossClass.SETUP, _first(pod, reasons.MISCONFIGURED, events), HaltScope.TASK)
    if _age(ages, PendingCondition.CREATING) > graces.config_error_s and (loss := _by_events(events)) is not None:
        return loss
    if _age(ages, PendingCondition.IMAGE_PULL) > graces.image_pull_s:
        return _pull_loss(_first(pod, reasons.PULLING, events))
    if _age(ages, PendingCondition.UNSCHEDULABLE) > graces.unschedulable_s:
        return _loss(LossClass.UNSCHEDULABLE, _with(_why_unscheduled(pod), _last_event(events)))
    if _age(ages, PendingCondition.PENDING) > graces.pending_s:
        kind = LossClass.SETUP if pod.node else LossClass.UNSCHEDULABLE
        return _loss(kind, _with(f"still pending after {graces.pending_s:g} s", _last_event(events)))
    return None


def _by_events(events: Sequence[PodEvent]) -> Loss | None:
    """Only its events say why a pod stays `ContainerCreating`."""
    for event in reversed(events):
        if event.reason in reasons.SANDBOX:
            return _loss(LossClass.SETUP, _with("its sandbox could not be created", event.message))
        if event.reason in reasons.MOUNT:
            halt = HaltScope.TASK if "not found" in event.message else HaltScope.NONE
            return _loss(LossClass.SETUP, _with("a volume could not be mounted", event.message), halt)
    return None


def _pull_loss(message: str) -> Loss:
    halt = HaltScope.TASK if any(text in message for text in reasons.NO_SUCH_IMAGE) else HaltScope.NONE
    return _loss(LossClass.IMAGE_PULL, message, halt)


def _of_waiting(one: Container) -> set[PendingCondition]:
    if one.reason in reasons.PULLING:
        return set() if reasons.PULL_QUEUE in one.message else {PendingCondition.IMAGE_PULL}
    if one.reason in reasons.MISCONFIGURED:
        return {PendingCondition.CONFIG}
    return {PendingCondition.CREATING} if one.reason in reasons.CREATING else set()


def gated(pod: Pod) -> bool:
    """Whether a queue such as Kueue holds the pod back with a scheduling gate."""
    scheduled = pod.condition("PodScheduled")
    return scheduled is not None and not scheduled.true and scheduled.reason == "SchedulingGated"


def unschedulable(pod: Pod) -> PodCondition | None:
    scheduled = pod.condition("PodScheduled")
    return scheduled if scheduled and not scheduled.true and scheduled.reason == "Unschedulable" else None


def shortage(pod: Pod) -> Wait:
    """Of an unschedulable pod: what the scheduler found too little of, on most nodes that it names."""
    scheduled = unschedulable(pod)
    counts = reasons.node_counts(scheduled.message if scheduled else "")
    lacking = {wait: counts[words] for words, wait in reasons.SHORTAGES.items() if words in counts}
    return max(lacking, key=lambda wait: lacking[wait], default=Wait.UNSCHEDULABLE)


def _why_unscheduled(pod: Pod) -> str:
    scheduled = unschedulable(pod)
    return _with("no node fits it", scheduled.message if scheduled else "")


def _age(ages: Mapping[PendingCondition, float], condition: PendingCondition) -> float:
    return ages.get(condition, 0.0)


# --- messages ------------------------------------------------------------------------------------------


def digest_of(image_id: str) -> str:
    """The digest in any spelling of an image id.

    >>> digest_of("docker-pullable://registry.example/team/x@sha256:0a"), digest_of("sha256:0a")
    ('sha256:0a', 'sha256:0a')
    """
    return image_id.rpartition("://")[2].rpartition("@")[2]


def _expected(pod: Pod) -> list[Container]:
    return [pod.container(name) for name in names.CONTAINERS]


def _first(pod: Pod, among: frozenset[str], events: Sequence[PodEvent]) -> str:
    return next((_waiting(one, events) for one in pod.containers if one.reason in among), "")


def _waiting(one: Container, events: Sequence[PodEvent]) -> str:
    words = _with(f"container {one.name} cannot start ({one.reason})", one.message)
    last = _last_event(events)
    return words if last in words else _with(words, last)


def _last_event(events: Sequence[PodEvent]) -> str:
    return f"{events[-1].reason}: {events[-1].message}" if events else ""


def _with_status(pod: Pod, words: str) -> str:
    """`words` with the pod's node and its own reason and message."""
    where = f" on node {pod.node}" if pod.node else ""
    return _with(f"{words}{where}", ": ".join(part for part in (pod.reason, pod.message) if part))


def _with(words: str, more: str) -> str:
    return f"{words}: {more.strip()}" if more.strip() else words


def _named(loss: LossClass, pod: Pod, words: str) -> RunnerTermination:
    return RunnerTermination(named=_pod_loss(loss, pod, words))


def _pod_loss(loss: LossClass, pod: Pod, words: str) -> Loss:
    return _loss(loss, _with_status(pod, words))


def _loss(loss: LossClass, message: str, halt: HaltScope = HaltScope.NONE) -> Loss:
    """Without how far the attempt came, which the ledger knows."""
    return Loss(loss=loss, message=message[:MESSAGE_CHARS], agent_started=False, halt=halt)


_PROGRAMS = {"agent": names.AGENT, "tests": names.SCORE}


@dataclass(frozen=True, slots=True)
class TerminationMessage:
    """`end`: the end of this attempt that its runner could not write; `message`: its diagnosis. `program`: the
    container whose program ran last; `over_limits`: the last sample of it was beyond its limits."""

    end: End | None = None
    message: str = ""
    program: str | None = None
    over_limits: bool = False


def last_words(text: str, attempt: tuple[str, int]) -> TerminationMessage:
    """What the runner of `attempt` (trial, number) left. Any other text than a record of ours is only
    diagnosis."""
    if len(text.encode()) > KUBELET_BYTES:
        return TerminationMessage()
    try:
        words = LastWords.model_validate_json(text)
    except ValidationError:
        return TerminationMessage(message=text.strip())
    end = words.end
    if end is not None and ((end.trial, end.attempt) != attempt or end.by != "runner"):
        end = None
    return TerminationMessage(end, words.message, _PROGRAMS.get(words.program or ""), words.over_limits)
