"""The words of kubelets, schedulers and controllers, and what each means. Tables only.

Sources: the kubelet's and the scheduler's reasons as Kubernetes 1.36 writes them; KEP-3329 for DisruptionTarget.
"""

from __future__ import annotations

from trialfleet_runner.contract import LossClass

DISRUPTIONS = {
    "PreemptionByScheduler": (LossClass.EVICTED, "preempted by a pod of higher priority"),
    "EvictionByEvictionAPI": (LossClass.EVICTED, "evicted through the eviction API"),
    "TerminationByKubelet": (LossClass.EVICTED, "ended by its node: short of a resource, or shutting down"),
    "DeletionByTaintManager": (LossClass.NODE_LOST, "its node was tainted: unreachable, not ready, or drained"),
    "DeletionByPodGC": (LossClass.NODE_LOST, "its node is gone"),
}

POD_REASONS = {
    "Evicted": LossClass.EVICTED,
    "Preempting": LossClass.EVICTED,
    "NodeLost": LossClass.NODE_LOST,
    "NodeShutdown": LossClass.NODE_LOST,
    "Shutdown": LossClass.NODE_LOST,
    "Terminated": LossClass.NODE_LOST,  # a graceful shutdown of the node
    "NodeAffinity": LossClass.UNSCHEDULABLE,
    "UnexpectedAdmissionError": LossClass.UNSCHEDULABLE,
    "DeadlineExceeded": LossClass.TERMINATED,
}
REFUSED_BY_NODE = "OutOf"  # OutOfcpu, OutOfmemory, OutOfpods…
OWN_DISK = "ephemeral local storage usage exceeds"  # also "… exceeds the total limit of containers"
VOLUME_LIMIT = "Usage of EmptyDir volume"

NO_STATUS = frozenset({"ContainerStatusUnknown", "Unknown"})  # the node restarted under it

BAD_REFERENCE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
PULLING = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
)
MISCONFIGURED = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
CREATING = frozenset({"ContainerCreating", "PodInitializing", ""})
OWN_PATIENCE = "pull QPS exceeded"  # the kubelet's own queue
NO_SUCH_IMAGE = ("not found", "manifest unknown", "denied", "unauthorized", "does not exist")
NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})
NO_SUCH_PROGRAM = ("no such file or directory", "executable file not found", "permission denied")
SANDBOX = frozenset({"FailedCreatePodSandBox"})
MOUNT = frozenset({"FailedMount", "FailedAttachVolume"})
