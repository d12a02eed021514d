"""Every state that a pod can be lost in, as kubelets, schedulers and controllers word it."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import pytest

from tests.support import records
from tests.support.plans import GRACES, IMAGE_ID
from tests.support.raw_pods import TRIAL, raw_pod, status
from trialfleet_controller.backends.kube import reasons, signals
from trialfleet_controller.backends.kube.pods import parse
from trialfleet_controller.backends.kube.signals import (
    PendingCondition,
    PodEvent,
    PodFinding,
    last_words,
)
from trialfleet_controller.backends.runner_termination import RunnerTermination, classify
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.attempt import KUBELET_BYTES, End, LastWords
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass

ATTEMPT = (TRIAL, 1)
LONG = dict.fromkeys(PendingCondition, 1000000.0)


def judged(raw: dict[str, Any], *, ages: Any = None, events: tuple[PodEvent, ...] = ()) -> PodFinding | None:
    """`ages` default to none at all, and are cut to the concerns that the pod raises, as a tracker does."""
    pod = parse(raw)
    present = signals.pending_conditions(pod)
    kept = {concern: age for concern, age in (ages or {}).items() if concern in present}
    return signals.judge(pod, ages=kept, graces=GRACES, image_id=IMAGE_ID, attempt=ATTEMPT, events=events)


def loss_of(finding: PodFinding | None) -> Loss:
    assert finding is not None
    return classify(finding.termination, started=True, patched=False)


def stuck(finding: PodFinding | None) -> bool:
    assert finding is not None
    return finding.stuck


def ended(reason: str = "Error", code: int = 137, name: str = "runner", **more: Any) -> dict[str, Any]:
    one = status(name, terminated={"exitCode": code, "reason": reason, **more})
    others = [status(other, running={}) for other in ("runner", "agent", "score") if other != name]
    return raw_pod(containers=[one, *others], phase="Failed" if name == "runner" else "Running")


def waiting(reason: str, message: str = "", name: str = "runner") -> dict[str, Any]:
    return raw_pod(phase="Pending", containers=[status(name, waiting={"reason": reason, "message": message})])


def failed(reason: str, message: str = "") -> dict[str, Any]:
    return raw_pod(phase="Failed", containers=[], reason=reason, message=message)


def unbound() -> dict[str, Any]:
    """Deleted while it waited for a node: the garbage collector of pods marks it as failed."""
    pod = failed("")
    del pod["spec"]["nodeName"]
    return pod


INODES = (
    "The node was low on resource: inodes. Container {} was using 650000, request is 0, has larger consumption of "
    "inodes. "
)


def disrupted(reason: str, *, kind: str = "DisruptionTarget") -> dict[str, Any]:
    pod = ended()
    pod["status"]["conditions"] = [{"type": kind, "status": "True", "reason": reason, "message": "by the cluster"}]
    return pod


def under_pressure(container: str) -> dict[str, Any]:
    """Evicted by its kubelet, which names the container that used more than it had requested."""
    pod = disrupted("TerminationByKubelet")
    pod["status"] |= {"reason": "Evicted", "message": INODES.format(container)}
    return pod


# What kubelets say of a limit, and whose limit it is.
LIMITS = [
    ('Usage of EmptyDir volume "agent" exceeds the limit "8Gi". ', "agent"),
    ('Usage of EmptyDir volume "agent-shm" exceeds the limit "64Mi". ', "agent"),
    ('Usage of EmptyDir volume "score" exceeds the limit "8Gi". ', "tests"),
    ('Container agent exceeded its local ephemeral storage limit "8Gi". ', "agent"),
    ('Container score exceeded its local ephemeral storage limit "8Gi". ', "tests"),
    ("Pod ephemeral local storage usage exceeds the total limit of containers 25Gi. ", "pod"),
    ('Usage of EmptyDir volume "runner" exceeds the limit "8Gi". ', "runner"),
    ('Container runner exceeded its local ephemeral storage limit "9Gi". ', "runner"),
]
PRESSURE = [(INODES.format("agent"), ""), ("The node was low on resource: memory. ", ""), ("", "")]
PROGRAMS: tuple[Literal["agent", "tests"] | None, ...] = (None, "agent", "tests")


# --- over -------------------------------------------------------------------------------------------

OVER = [
    (disrupted("PreemptionByScheduler"), LossClass.EVICTED, "preempted"),
    (disrupted("EvictionByEvictionAPI"), LossClass.EVICTED, "eviction API"),
    (disrupted("TerminationByKubelet"), LossClass.NODE_LOST, "by its node"),
    (disrupted("DeletionByTaintManager"), LossClass.NODE_LOST, "tainted"),
    (disrupted("DeletionByPodGC"), LossClass.NODE_LOST, "node is gone"),
    (disrupted("SomethingNew"), LossClass.EVICTED, "SomethingNew"),
    *(
        (disrupted(reason, kind="TerminationTarget"), LossClass.EVICTED, f"{words} ({reason}): by the cluster")
        for reason, words in reasons.QUEUE_DISRUPTIONS.items()
    ),
    (disrupted("NotAdmitted", kind="TerminationTarget"), LossClass.EVICTED, "its queue withdrew its quota (NotA"),
    (failed("Evicted", "Pod ephemeral local storage usage exceeds"), LossClass.OVERUSE, "more than its limit"),
    (failed("Evicted", 'Usage of EmptyDir volume "agent" exceeds'), LossClass.OVERUSE, 'volume "agent"'),
    (failed("Evicted", "agent exceeded its local ephemeral storage limit"), LossClass.OVERUSE, "storage limit"),
    (failed("Evicted", "The node was low on resource: memory."), LossClass.OVERUSE, "low on resource: memory"),
    (under_pressure("agent"), LossClass.OVERUSE, "Container agent was using 650000"),
    (under_pressure("score"), LossClass.OVERUSE, "Container score was using 650000"),
    (under_pressure("runner"), LossClass.OVERUSE, "its node is short of a resource"),
    (failed("Evicted", "The node was low on resource: inodes."), LossClass.OVERUSE, "short of a resource"),
    (failed("Evicted", "The node was low on resource: pids."), LossClass.OVERUSE, "short of a resource"),
    (failed("NodeLost"), LossClass.NODE_LOST, "NodeLost"),
    (failed("NodeShutdown"), LossClass.NODE_LOST, "NodeShutdown"),
    (failed("Terminated", "in response to imminent node shutdown."), LossClass.NODE_LOST, "node shutdown"),
    (failed("OutOfcpu"), LossClass.UNSCHEDULABLE, "refused it"),
    (failed("OutOfephemeral-storage"), LossClass.UNSCHEDULABLE, "refused"),
    (failed("NodeAffinity"), LossClass.UNSCHEDULABLE, "NodeAffinity"),
    (failed("UnexpectedAdmissionError"), LossClass.UNSCHEDULABLE, "UnexpectedAdmissionError"),
    (failed("TopologyAffinityError"), LossClass.UNSCHEDULABLE, "refused it on node node-1: TopologyAffinityError"),
    (failed("SomethingNew"), LossClass.UNSCHEDULABLE, "refused it"),
    (failed("Preempting"), LossClass.EVICTED, "Preempting"),
    (failed("Shutdown"), LossClass.NODE_LOST, "Shutdown"),
    (failed("DeadlineExceeded", "Pod was active longer than"), LossClass.TERMINATED, "longer than"),
    (failed(""), LossClass.RUNNER, "status of its runner is not known"),
    (unbound(), LossClass.TERMINATED, "deleted before it had a node"),
    (ended("OOMKilled"), LossClass.RUNNER, "runner's container ran out of memory"),
    (ended("OOMKilled", 0), LossClass.RUNNER, "ran out of memory"),  # cgroup v1: by reason, not by code
    (ended("ContainerStatusUnknown"), LossClass.NODE_LOST, "ContainerStatusUnknown"),
    (ended("Unknown", 255), LossClass.NODE_LOST, "node lost the container"),
    (ended("Completed", 0), LossClass.RUNNER, "left no end"),
    (ended("Error", 1), LossClass.RUNNER, "exited 1"),
    (ended("Error", 2), LossClass.SETUP, "until the operator fixes this"),
    (ended("Error", 3), LossClass.TERMINATED, "another runner"),
    (ended("Error", 75), LossClass.STORE, "did not answer"),
    (ended("Error", 143), LossClass.TERMINATED, "told to stop"),
    (ended("Error", 137), LossClass.TERMINATED, "killed (SIGKILL)"),
    (ended("StartError", 128, message="exec: no such file or directory"), LossClass.SETUP, "did not start"),
    (ended("ContainerCannotRun", 127, message="exec format error"), LossClass.SETUP, "did not start"),
]


@pytest.mark.parametrize(("raw", "loss", "words"), OVER, ids=[f"{n}-{row[2]}" for n, row in enumerate(OVER)])
def test_pods_that_are_over(raw: dict[str, Any], loss: LossClass, words: str) -> None:
    finding = judged(raw)
    assert not stuck(finding)
    assert (found := loss_of(finding)).loss is loss
    assert words in found.message


@pytest.mark.parametrize(("message", "limit"), LIMITS + PRESSURE)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("over_limits", [False, True])
def test_an_eviction_by_the_kubelet(
    message: str, limit: str, program: Literal["agent", "tests"] | None, over_limits: bool
) -> None:
    """Beyond its limits by the kubelet's words or the runner's last sample: the agent is exhausted, the tests have
    died once. A loss otherwise, also if nobody says what ran."""
    words = LastWords(state="running", program=program, over_limits=over_limits)
    pod = ended("Error", 137, message=words.model_dump_json(exclude_defaults=True))
    pod["status"] |= {"reason": "Evicted", "message": message}
    over = program is not None and (over_limits or limit in (program, "pod"))
    found = judged(pod)
    assert found is not None
    loss = loss_of(found)
    assert found.termination.exhausted is (over and program == "agent")
    assert loss.by_patch is (over and program == "tests")
    assert loss.loss is (LossClass.SCORING if loss.by_patch else LossClass.OVERUSE)
    assert message.strip() in loss.message


def test_only_an_eviction_by_the_kubelet_exhausts() -> None:
    words = LastWords(state="running", program="agent", over_limits=True).model_dump_json(exclude_defaults=True)
    for pod in (ended("Error", 137, message=words), disrupted("PreemptionByScheduler")):
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = words
        finding = judged(pod)
        assert finding is not None
        assert not finding.termination.exhausted


def test_a_missing_program_halts_the_task_and_a_hiccup_of_the_runtime_does_not() -> None:
    absent = ended("StartError", 128, message='exec: "trialfleet-pod": executable file not found in $PATH')
    hiccup = ended("StartError", 128, message="failed to create task: context deadline exceeded")
    assert loss_of(judged(absent)).halt is HaltScope.TASK
    assert loss_of(judged(hiccup)).halt is HaltScope.NONE


def test_a_runner_that_names_the_operators_error_halts_the_campaign_with_its_words() -> None:
    words = LastWords(state="misconfigured", message="no grants that this image can read: missing")
    loss = loss_of(judged(ended("Error", RunnerExit.REFUSED, message=words.model_dump_json())))
    assert (loss.loss, loss.halt) == (LossClass.SETUP, HaltScope.CAMPAIGN)
    assert loss.message.endswith(": no grants that this image can read: missing")
    assert loss_of(judged(ended("Error", RunnerExit.UNANSWERED))).halt is HaltScope.NONE


@pytest.mark.parametrize("name", ["agent", "score"])
def test_a_container_that_never_ran_is_told_at_once_while_its_runner_waits_for_it(name: str) -> None:
    absent = judged(ended("StartError", 128, name, message="exec: no such file or directory"))
    hiccup = judged(ended("StartError", 128, name, message="failed to create task: context deadline exceeded"))
    for finding, halt in ((absent, HaltScope.TASK), (hiccup, HaltScope.NONE)):
        assert stuck(finding)
        loss = loss_of(finding)
        assert (loss.loss, loss.halt) == (LossClass.SETUP, halt)
        assert loss.message.startswith(f"the {name} did not start (StartError)")


def test_a_container_that_never_ran_is_why_its_runner_went() -> None:
    pod = ended("Error", 75)
    pod["status"]["containerStatuses"][1] = status("agent", terminated={"exitCode": 128, "reason": "StartError"})
    finding = judged(pod)
    assert not stuck(finding)
    assert loss_of(finding).message.startswith("the agent did not start")


def test_memory_of_the_other_containers() -> None:
    agent_only = ended("OOMKilled", name="agent")
    assert judged(agent_only, ages=LONG) is None, "the runner's verdict decides"
    pod = ended("Error", 1)
    pod["status"]["containerStatuses"][2] = status("score", terminated={"exitCode": 137, "reason": "OOMKilled"})
    killed = loss_of(judged(pod))
    assert (killed.loss, killed.by_patch) == (LossClass.SCORING, True)
    pod["status"]["containerStatuses"][2] = status("agent", terminated={"exitCode": 137, "reason": "OOMKilled"})
    assert loss_of(judged(pod)).loss is LossClass.RUNNER


def test_the_phase_decides_nothing_while_the_runner_runs() -> None:
    for name in ("agent", "score"):
        assert judged(ended("Completed", 0, name), ages=LONG) is None


def test_the_clusters_own_act_comes_before_the_exit_code_that_it_caused() -> None:
    pod = disrupted("PreemptionByScheduler")
    assert loss_of(judged(pod)).loss is LossClass.EVICTED
    pod["status"]["conditions"][0]["status"] = "False"
    assert loss_of(judged(pod)).loss is LossClass.TERMINATED


# --- not there yet ----------------------------------------------------------------------------------

STUCK = [
    (waiting("InvalidImageName", "couldn't parse image name"), LossClass.IMAGE_PULL, HaltScope.TASK, None),
    (waiting("ErrImageNeverPull"), LossClass.IMAGE_PULL, HaltScope.TASK, None),
    (waiting("RunContainerError", "oci runtime error"), LossClass.SETUP, HaltScope.TASK, 120),
    (waiting("ImageInspectError", "containerd: i/o timeout"), LossClass.IMAGE_PULL, HaltScope.NONE, 900),
    (waiting("RegistryUnavailable", "503"), LossClass.IMAGE_PULL, HaltScope.NONE, 900),
    (waiting("SignatureValidationFailed", "no signature"), LossClass.IMAGE_PULL, HaltScope.NONE, 900),
    (waiting("ImagePullBackOff", "manifest unknown"), LossClass.IMAGE_PULL, HaltScope.TASK, 900),
    (waiting("ImagePullBackOff", "401 unauthorized"), LossClass.IMAGE_PULL, HaltScope.TASK, 900),
    (waiting("ImagePullBackOff", "repository does not exist"), LossClass.IMAGE_PULL, HaltScope.TASK, 900),
    (waiting("CreateContainerConfigError", 'secret "k" not found'), LossClass.SETUP, HaltScope.TASK, 120),
    (waiting("CreateContainerError", "context deadline exceeded"), LossClass.SETUP, HaltScope.TASK, 120),
    (waiting("CreateContainerConfigError", name="agent"), LossClass.SETUP, HaltScope.TASK, 120),
    (waiting("ErrImagePull", "dial tcp: i/o timeout"), LossClass.IMAGE_PULL, HaltScope.NONE, 900),
    (waiting("ImagePullBackOff", "x:1: not found"), LossClass.IMAGE_PULL, HaltScope.TASK, 900),
    (waiting("ErrImagePull", "pull access denied"), LossClass.IMAGE_PULL, HaltScope.TASK, 900),
    (waiting("ErrImagePull", "pull QPS exceeded"), LossClass.SETUP, HaltScope.NONE, 1800),
    (waiting("SomethingNew"), LossClass.SETUP, HaltScope.NONE, 1800),
]
EXPLAINED = [
    (
        "ContainerCreating",
        PodEvent("FailedMount", 'MountVolume.SetUp failed: secret "model" not found'),
        HaltScope.TASK,
    ),
    ("PodInitializing", PodEvent("FailedMount", "timed out waiting for the condition"), HaltScope.NONE),
    ("ContainerCreating", PodEvent("FailedAttachVolume", "the volume is used by another node"), HaltScope.NONE),
    ("", PodEvent("FailedCreatePodSandBox", 'no runtime for "gvisor" is configured'), HaltScope.NONE),
]
CLOCKS = {120: PendingCondition.CONFIG, 900: PendingCondition.IMAGE_PULL, 1800: PendingCondition.PENDING}


@pytest.mark.parametrize(("raw", "loss", "halt", "grace"), STUCK)
def test_what_never_starts_and_when_that_is_said(
    raw: dict[str, Any], loss: LossClass, halt: HaltScope, grace: int | None
) -> None:
    if grace is None:
        finding = judged(raw)
    else:
        assert judged(raw, ages={CLOCKS[grace]: grace - 1.0}) is None
        finding = judged(raw, ages={CLOCKS[grace]: grace + 1.0})
    assert stuck(finding)
    assert (loss_of(finding).loss, loss_of(finding).halt) == (loss, halt)


def test_every_word_of_the_tables_has_its_row() -> None:
    """A reason that is added and never tried would be a guess."""
    tried = repr(OVER) + repr(STUCK) + repr(EXPLAINED) + repr(LIMITS)
    words = {*reasons.DISRUPTIONS, *reasons.POD_REASONS, *reasons.NO_STATUS, *reasons.NEVER_RAN}
    words |= {*reasons.BAD_REFERENCE, *reasons.PULLING, *reasons.MISCONFIGURED, *reasons.CREATING}
    words |= {*reasons.OVER_LIMIT, reasons.PULL_QUEUE, reasons.REFUSED_BY_NODE}
    words |= {*reasons.NO_SUCH_IMAGE, *reasons.SANDBOX, *reasons.MOUNT}
    assert sorted(word for word in words if word not in tried) == []


def pending(reason: str, message: str = "") -> dict[str, Any]:
    told = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    raw = raw_pod(phase="Pending", containers=[], conditions=[told])
    return raw | {"spec": {}}


def test_unschedulable_and_gated_pods() -> None:
    full = pending("Unschedulable", "0/3 nodes are available: 3 Insufficient memory.")
    assert judged(full, ages={PendingCondition.UNSCHEDULABLE: 1199, PendingCondition.PENDING: 1199}) is None
    finding = judged(full, ages={PendingCondition.UNSCHEDULABLE: 1201, PendingCondition.PENDING: 1201})
    assert stuck(finding)
    assert loss_of(finding).loss is LossClass.UNSCHEDULABLE
    assert "Insufficient memory" in loss_of(finding).message
    assert judged(pending("SchedulingGated"), ages=LONG) is None, "a queue lets it go when its turn comes"


@pytest.mark.parametrize(("why", "event", "halt"), EXPLAINED)
def test_a_container_that_stays_creating_is_explained_by_events(
    why: str, event: PodEvent, halt: HaltScope
) -> None:
    raw = waiting(why)
    late = {PendingCondition.CREATING: 121.0, PendingCondition.PENDING: 121.0}
    assert judged(raw, ages=late) is None, "a slow node is no reason"
    assert judged(raw, ages={PendingCondition.CREATING: 119.0}, events=(event,)) is None
    finding = judged(raw, ages=late, events=(event, PodEvent("Pulling", "pulling image")))
    assert stuck(finding)
    assert (loss_of(finding).loss, loss_of(finding).halt) == (LossClass.SETUP, halt)
    assert event.message in loss_of(finding).message


def test_a_deleted_pod_whose_node_is_silent() -> None:
    raw = raw_pod(metadata={"deletionTimestamp": "2026-11-21T10:00:00Z", "deletionGracePeriodSeconds": 30})
    assert judged(raw, ages={PendingCondition.TERMINATING: 89}) is None
    finding = judged(raw, ages={PendingCondition.TERMINATING: 91})
    assert not stuck(finding)
    assert loss_of(finding).loss is LossClass.NODE_LOST


def test_another_image_than_the_plans_halts_the_campaign() -> None:
    raw = raw_pod()
    raw["status"]["containerStatuses"][1]["imageID"] = "docker-pullable://example/x@sha256:" + "ff" * 32
    finding = judged(raw)
    assert stuck(finding)
    assert loss_of(finding).halt is HaltScope.CAMPAIGN
    assert "agent" in loss_of(finding).message


def test_a_running_pod_is_fine_and_no_clock_runs() -> None:
    assert signals.pending_conditions(parse(raw_pod())) == frozenset()
    assert judged(raw_pod(), ages=LONG) is None


# --- vanished ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "loss", "words"),
    [
        (None, LossClass.TERMINATED, "never listed"),
        (raw_pod(), LossClass.TERMINATED, "deleted"),
        (disrupted("DeletionByPodGC"), LossClass.NODE_LOST, "node is gone"),
        (ended("Error", 75), LossClass.STORE, "did not answer"),
        (failed("Evicted"), LossClass.OVERUSE, "Evicted"),
    ],
)
def test_a_pod_that_is_not_there_any_more(last: dict[str, Any] | None, loss: LossClass, words: str) -> None:
    found = loss_of(signals.vanished(None if last is None else parse(last), ATTEMPT, image_id=IMAGE_ID))
    assert found.loss is loss
    assert words in found.message


def test_another_image_is_told_though_its_pod_is_not_there_any_more() -> None:
    for raw in (ended("Completed", 0), raw_pod()):
        raw["status"]["containerStatuses"][0]["imageID"] = IMAGE_ID.replace("0a", "0b")
        gone = signals.vanished(parse(raw), ATTEMPT, image_id=IMAGE_ID).termination
        assert gone.unplanned is not None
        assert IMAGE_ID in gone.unplanned.message


# --- last words -------------------------------------------------------------------------------------

END = records.end(Loss(loss=LossClass.STORE, message="403", agent_started=True), trial=TRIAL)


def said(words: LastWords) -> dict[str, Any]:
    return ended("Error", 75, message=words.model_dump_json())


def test_an_end_that_the_store_refused_travels() -> None:
    finding = judged(said(LastWords(state="refused", end=END, message="the signature has expired")))
    assert finding is not None
    assert finding.termination.last_words == END
    assert "expired" in loss_of(finding).message


@pytest.mark.parametrize(
    "end",
    [
        END.model_copy(update={"trial": "z" * 26}),
        END.model_copy(update={"attempt": 2}),
        END.model_copy(update={"by": "controller"}),
    ],
)
def test_an_end_of_another_attempt_is_ignored(end: End) -> None:
    finding = judged(said(LastWords(state="refused", end=end)))
    assert finding is not None
    assert finding.termination.last_words is None


def test_only_the_runner_may_speak() -> None:
    forged = LastWords(state="refused", end=END).model_dump_json()
    pod = ended("Error", 1)
    pod["status"]["containerStatuses"][1] = status("agent", terminated={"exitCode": 0, "message": forged})
    finding = judged(pod)
    assert finding is not None
    assert finding.termination.last_words is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"state":"refused","end":{}}', "Traceback …", "\x00"])
def test_what_is_no_record_is_diagnosis_at_best(text: str) -> None:
    assert last_words(text, ATTEMPT).end is None


def test_too_long_is_not_even_read() -> None:
    long = LastWords(state="refused", end=END, message="x" * KUBELET_BYTES).model_dump_json()
    assert last_words(long, ATTEMPT) == last_words("", ATTEMPT)


def test_it_cannot_see_task_condition_or_outcome() -> None:
    parameters = set(inspect.signature(signals.judge).parameters)
    assert parameters == {"pod", "ages", "graces", "image_id", "attempt", "events"}


def test_every_loss_leaves_how_far_it_came_to_the_ledger() -> None:
    finding = judged(disrupted("DeletionByPodGC"))
    assert finding is not None
    loss = classify(finding.termination, started=False, patched=True)
    assert (loss.agent_started, loss.patched) == (False, True)
    assert isinstance(finding.termination, RunnerTermination)
