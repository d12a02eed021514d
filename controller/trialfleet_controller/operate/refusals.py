"""What an API server says no to, as something an operator can mend. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_controller.checks import Check
from trialfleet_controller.kube.errors import ApiError, Forbidden, NotFound, Throttled, Unreachable
from trialfleet_controller.operate.permissions import Need, lacking

_APPLY = "kubectl apply --server-side -k k8s/base makes the namespace with its labels, Role and policies"

# Of a refused pod: words of the server's message, and the way out. The first that is found counts.
_POD_REFUSALS = (
    ("RuntimeClass", "kubectl get runtimeclass lists them; mend kubernetes.runtime_class or leave it out"),
    ("PriorityClass", "kubectl get priorityclass lists them; mend kubernetes.priority_class or leave it out"),
    ("exceeded quota", "kubectl describe quota; raise it, or lower limits.cpu, memory or disk"),
    (
        "must specify",
        "the namespace's quota counts something that attempts do not ask for: kubectl describe quota",
    ),
    ("violates PodSecurity", "attempts keep to `restricted`: see what the message names, and what adds to pods"),
    ("service account", "kubectl -n NAMESPACE get serviceaccount default; a new namespace has it in a moment"),
    ("LimitRange", "kubectl describe limitrange; widen it, or change limits.cpu, memory or disk"),
    ("maximum", "kubectl describe limitrange; widen it, or change limits.cpu, memory or disk"),
)


def unreachable(error: ApiError, host: str) -> Check:
    """No answer, or none that is about the question."""
    if isinstance(error, Forbidden):
        return Check(
            "cluster",
            "missing",
            f"{host} does not know these credentials: {error.message}",
            "kubectl get pods says whether they hold; renew them, or choose kubernetes.context",
        )
    return Check(
        "cluster", "missing", f"{host}: {error}", "kubectl version; start the cluster, or mend KUBECONFIG"
    )


def no_namespace(namespace: str) -> Check:
    return Check(
        f"namespace {namespace}",
        "missing",
        "there is no such namespace",
        f"{_APPLY}; or kubectl create namespace {namespace}, or name another one in kubernetes.namespaces",
    )


def not_allowed(namespace: str, lack: Sequence[Need], *, nothing_at_all: bool) -> Check:
    """`nothing_at_all`: as in a namespace that does not exist, which who may not read namespaces is not told."""
    role = "trialfleet-submitter" if any(need.group for need in lack) else "trialfleet-controller"
    bind = f"kubectl -n {namespace} create rolebinding {role}-too --role={role} --user=YOU"
    if nothing_at_all:
        found = f"nothing that is needed; is there such a namespace? {lacking(lack)}"
        return Check(f"permissions in {namespace}", "missing", found, f"{_APPLY}; then {bind}")
    return Check(
        f"permissions in {namespace}",
        "missing",
        lacking(lack),
        f"bind the Role of k8s/base to these credentials: {bind}",
    )


def refused_pod(error: ApiError, namespace: str) -> Check:
    """Why the namespace does not take an attempt's pod, told by the server's own message."""
    name = f"pods in {namespace}"
    if isinstance(error, NotFound) and "namespaces" in error.message:
        return no_namespace(namespace)
    if isinstance(error, Unreachable | Throttled):
        return Check(name, "missing", str(error), "the API server is not well: try again")
    mend = next((way for words, way in _POD_REFUSALS if words in error.message), None)
    if mend is None and isinstance(error, Forbidden) and "cannot create resource" in error.message:
        mend = "apply the Role of k8s/base, or ask who may"
    return Check(
        name,
        "missing",
        f"an attempt's pod is refused: {error.message}",
        (mend or "mend what the message names in the section kubernetes of the campaign file").replace(
            "NAMESPACE", namespace
        ),
    )
