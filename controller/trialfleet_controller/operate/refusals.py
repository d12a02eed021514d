"""Turns an API server's refusal into a finding that an operator can fix. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_controller.backends.kube.admission import DenialDuration
from trialfleet_controller.backends.kube.errors import ApiError, Forbidden, NotFound, Throttled, Unreachable
from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_controller.operate.permissions import Need, lacking
from trialfleet_ledger.errors import OperatorError

_APPLY = "kubectl apply --server-side -k k8s/base creates the namespace with its labels, Role and policies"


def error_of_check(check: DoctorCheck) -> OperatorError:
    return OperatorError(check.found, where=check.name, hint=check.fix)


def unreachable(error: ApiError, host: str) -> DoctorCheck:
    """The API server gave no usable answer."""
    if isinstance(error, Forbidden):
        return DoctorCheck(
            "cluster",
            "missing",
            f"{host} does not accept these credentials: {error.message}",
            "renew them (kubectl get pods tests them), or choose another kubernetes.context",
        )
    return DoctorCheck(
        "cluster",
        "missing",
        f"{host}: {error}",
        "start the cluster or correct KUBECONFIG; kubectl version tests the connection",
    )


def no_namespace(namespace: str) -> DoctorCheck:
    return DoctorCheck(
        f"namespace {namespace}",
        "missing",
        "the namespace does not exist",
        f"{_APPLY}; or kubectl create namespace {namespace}; or change kubernetes.namespaces",
    )


def not_allowed(namespace: str, lack: Sequence[Need], *, nothing_at_all: bool) -> DoctorCheck:
    """`nothing_at_all`: the namespace may not exist; credentials that cannot read namespaces do not learn it."""
    role = "trialfleet-controller"
    bind = f"kubectl -n {namespace} create rolebinding {role}-too --role={role} --user=YOU"
    if nothing_at_all:
        found = f"none of the permissions; the namespace may not exist: {lacking(lack)}"
        return DoctorCheck(f"permissions in {namespace}", "missing", found, f"{_APPLY}; then {bind}")
    return DoctorCheck(
        f"permissions in {namespace}",
        "missing",
        lacking(lack),
        f"bind the Role of k8s/base to these credentials: {bind}",
    )


def refused_pod(error: ApiError, namespace: str) -> DoctorCheck:
    """Why the namespace refuses an attempt's pod, by the server's message."""
    name = f"pods in {namespace}"
    if isinstance(error, NotFound) and "namespaces" in error.message:
        return no_namespace(namespace)
    if isinstance(error, Unreachable | Throttled):
        return DoctorCheck(name, "missing", str(error), "the API server does not answer properly: try again")
    if isinstance(error, Forbidden):
        denial = error.denial
        found = f"{denial.by} refuses an attempt's pod: {error.message}"
        waits = denial.lasts is DenialDuration.UNTIL_ROOM
        return DoctorCheck(
            name, "warning" if waits else "missing", found, denial.hint.replace("NAMESPACE", namespace)
        )
    return DoctorCheck(
        name,
        "missing",
        f"an attempt's pod is refused: {error.message}",
        "correct what the message names in the section kubernetes of the campaign file",
    )
