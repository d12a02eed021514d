"""Tables of the reasons that kubelets, schedulers and controllers report, and what each means.

Sources: the kubelet's and the scheduler's reasons as Kubernetes 1.36 writes them; KEP-3329 for DisruptionTarget;
the pod integration of Kueue 0.15 for TerminationTarget.
"""

from __future__ import annotations

import re

from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.protocol import Wait
from trialfleet_ledger.attempt_ends import EndEvent
from trialfleet_ledger.records.verdicts import LossClass

DISRUPTION = "DisruptionTarget"  # a pod's condition, by Kubernetes' own components
DISRUPTIONS = {
    "PreemptionByScheduler": (EndEvent.PREEMPTED, "preempted by a pod of higher priority"),
    "EvictionByEvictionAPI": (EndEvent.PREEMPTED, "evicted through the eviction API"),
    "TerminationByKubelet": (EndEvent.NODE_GONE, "ended by its node, which shuts down"),
    "DeletionByTaintManager": (EndEvent.NODE_GONE, "its node was tainted: unreachable, not ready, or drained"),
    "DeletionByPodGC": (EndEvent.NODE_GONE, "its node is gone"),
}

QUEUE_DISRUPTION = (
    "TerminationTarget"  # a pod's condition, by Kueue; its reasons are many, and all are the queue's
)
QUEUE_DISRUPTIONS = {
    "WorkloadEvictedDueToPreempted": "preempted by another workload of its queue",
    "WorkloadEvictedDueToClusterQueueStopped": "its queue was stopped",
    "WorkloadEvictedDueToLocalQueueStopped": "its queue was stopped",
    "WorkloadEvictedDueToNodeFailures": "its queue saw its node fail",
    "WorkloadDeleted": "its workload was deleted from the queue",
}

EVICTED = "Evicted"  # the reason of a pod that its kubelet evicted; evictions through the API have none
POD_EVENTS = {
    "Preempting": EndEvent.PREEMPTED,
    "NodeLost": EndEvent.NODE_GONE,
    "NodeShutdown": EndEvent.NODE_GONE,
    "Shutdown": EndEvent.NODE_GONE,
    "Terminated": EndEvent.NODE_GONE,  # a graceful shutdown of the node
}
POD_REASONS = {  # of pods in which nothing has run, or whose own deadline has passed
    "NodeAffinity": LossClass.UNSCHEDULABLE,
    "UnexpectedAdmissionError": LossClass.UNSCHEDULABLE,
    "DeadlineExceeded": LossClass.TERMINATED,
}
REFUSED_BY_NODE = "OutOf"  # OutOfcpu, OutOfmemory, OutOfpods…
# A kubelet's messages when it evicts a pod for more than a limit, and the container whose limit that is; `POD`:
# the sum of all. The first match counts. A container that used more than its request, on a node under pressure, is
# within its limits.
POD = "pod"
OVER_LIMIT = {
    f'Usage of EmptyDir volume "{names.AGENT}': names.AGENT,
    f'Usage of EmptyDir volume "{names.SCORE}': names.SCORE,
    f"Container {names.AGENT} exceeded its local ephemeral storage limit": names.AGENT,
    f"Container {names.SCORE} exceeded its local ephemeral storage limit": names.SCORE,
    "ephemeral local storage usage exceeds": POD,  # "… the total limit of containers"
    "exceeded its local ephemeral storage limit": names.RUNNER,
    "Usage of EmptyDir volume": names.RUNNER,
}

# A scheduler's words for what its nodes lack.
SHORTAGES = {
    "Insufficient cpu": Wait.NO_CPU,
    "Insufficient memory": Wait.NO_MEMORY,
    "Insufficient ephemeral-storage": Wait.NO_DISK,
    "Too many pods": Wait.NO_POD,
}
_ON_NODES = re.compile(rf"\b([0-9]{{1,9}}) ({'|'.join(SHORTAGES)})\b")


def node_counts(message: str) -> dict[str, int]:
    """How many nodes lack what, as a scheduler says it.

    >>> node_counts("0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemp…")
    {'Insufficient cpu': 2}
    """
    return {words: int(count) for count, words in _ON_NODES.findall(message)}


NO_STATUS = frozenset({"ContainerStatusUnknown", "Unknown"})  # the node restarted

BAD_REFERENCE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
PULLING = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
)
MISCONFIGURED = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
CREATING = frozenset({"ContainerCreating", "PodInitializing", ""})
PULL_QUEUE = "pull QPS exceeded"  # the pull waits in the kubelet's own queue
NO_SUCH_IMAGE = ("not found", "manifest unknown", "denied", "unauthorized", "does not exist")
NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})
NO_SUCH_PROGRAM = ("no such file or directory", "executable file not found", "permission denied")
SANDBOX = frozenset({"FailedCreatePodSandBox"})
MOUNT = frozenset({"FailedMount", "FailedAttachVolume"})
