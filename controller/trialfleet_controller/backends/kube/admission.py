"""Reads why an API server forbids an object from its message: who refuses, whether waiting helps, and the field of
the campaign file that changes it. Pure.

Source: the messages of Kubernetes 1.30 to 1.37 (plugin/pkg/admission, apiserver's quota and webhook packages); no
field of a `Status` names the plugin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from trialfleet_ledger.quantities import parse_quantity


class DenialDuration(StrEnum):
    """How long the same object stays refused."""

    UNTIL_ROOM = "until_room"  # until other pods end
    A_MINUTE = "a_minute"  # at most, if a server, a webhook or the namespace has yet to become ready
    FOREVER = "forever"


@dataclass(frozen=True, slots=True)
class Denial:
    """`by`: who refuses, in words; `hint`: how to change it, with NAMESPACE for the namespace's name."""

    by: str
    lasts: DenialDuration
    hint: str


WEBHOOK_HINT = (
    "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations lists the cluster's webhooks; "
    "one that has not seen a new namespace yet does so within a minute or two: try again"
)
_ROLE_HINT = "apply the Role of k8s/base; kubectl auth can-i --list -n NAMESPACE shows what is allowed"
_FIELDS = {
    "cpu": "limits.cpu or kubernetes.runner.cpu",
    "memory": "limits.memory or kubernetes.runner.memory",
    "ephemeral-storage": "limits.disk",
    "pods": "limits.parallel",
}
_RUNNER_EXAMPLES = {"cpu": "0.5", "memory": "512Mi"}
# A part of the message, who refuses, how long it lasts, the hint. The first match counts.
_KNOWN = (
    (
        r"violates PodSecurity \"?(?P<name>[^\s\"]*)",
        "Pod Security level {name}",
        DenialDuration.FOREVER,
        "attempts obey `restricted`: find the webhook that adds what the message names",
    ),
    (
        r"RuntimeClass \"?(?P<name>[^\s\"]*)",
        "RuntimeClass {name}",
        DenialDuration.FOREVER,
        "correct or remove kubernetes.runtime_class; kubectl get runtimeclass lists them",
    ),
    (
        r"PriorityClass with name (?P<name>\S+)|PriorityClass",
        "PriorityClass {name}",
        DenialDuration.FOREVER,
        "correct or remove kubernetes.priority_class; kubectl get priorityclass lists them",
    ),
    (
        r"(?i)service account",
        "the service account of the namespace",
        DenialDuration.A_MINUTE,
        "check: kubectl -n NAMESPACE get serviceaccount default; a new namespace gets it soon",
    ),
    (
        r"because it is being terminated",
        "the namespace, which is being deleted",
        DenialDuration.FOREVER,
        "wait until kubectl get namespace NAMESPACE finds nothing, make it again with kubectl apply --server-side "
        "-k k8s/base, then run the same command",
    ),
    (r"cannot \w+ resource", "RBAC", DenialDuration.A_MINUTE, _ROLE_HINT),
    (
        r"^Unauthorized",
        "the API server, which does not accept these credentials",
        DenialDuration.A_MINUTE,
        "renew them (kubectl get pods tests them), or choose another kubernetes.context",
    ),
)
_WEBHOOK = re.compile(r"admission webhook \"(?P<name>[^\"]*)\"")
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<name>[^']*)'")
_UNSPECIFIED = re.compile(r"failed quota: (?P<name>[^:\s]+): must specify (?P<what>.*)")
_EXCEEDED = re.compile(
    r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<requested>\S+), "
    r"used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_BOUND = re.compile(
    r"(?:(?:maximum|minimum) (?P<resource>\S+) usage|(?P<ratio>\S+) max limit to request ratio) per \w+ is "
    r"[^,\]]*(?:, but [^,\]]*)?"
)


def read_denial(message: str) -> Denial:
    """A message that nothing here knows counts as RBAC's would: it may pass within a minute."""
    if (webhook := _WEBHOOK.search(message)) is not None:
        return Denial(f"the admission webhook {webhook['name']}", DenialDuration.A_MINUTE, WEBHOOK_HINT)
    if (policy := _POLICY.search(message)) is not None:
        hint = "change what the message names in the section kubernetes: of the campaign file, or the policy"
        return Denial(f"the ValidatingAdmissionPolicy {policy['name']}", DenialDuration.FOREVER, hint)
    if (found := _UNSPECIFIED.search(message)) is not None:
        return _unspecified(found["name"], found["what"])
    if (found := _EXCEEDED.search(message)) is not None:
        return _exceeded(found)
    if "exceeded quota" in message or "status unknown for quota" in message:
        return Denial("a ResourceQuota", DenialDuration.UNTIL_ROOM, "kubectl -n NAMESPACE describe quota shows it")
    if bounds := list(_BOUND.finditer(message)):
        return _out_of_bounds(bounds)
    for pattern, by, lasts, hint in _KNOWN:
        if (found := re.search(pattern, message)) is not None:
            name = found.groupdict().get("name") or ""
            return Denial(by.format(name=name).strip(), lasts, hint)
    return Denial("the API server", DenialDuration.A_MINUTE, _ROLE_HINT)


def _unspecified(quota: str, what: str) -> Denial:
    """Quotas on limits refuse a pod that has a container without that limit; only the runner may lack one, of CPU
    or memory."""
    limits = [name for name in _RUNNER_EXAMPLES if f"limits.{name}" in what]
    fields = " and ".join(f"kubernetes.runner.{name}" for name in limits)
    example = ", ".join(f"{name}: {_RUNNER_EXAMPLES[name]}" for name in limits)
    hint = f"set {fields} in the campaign file, as in kubernetes: {{runner: {{{example}}}}}"
    if not limits:
        hint = (
            "attempts set no such value: change the quota, or give it a default: kubectl explain limitrange.spec"
        )
    return Denial(f"the ResourceQuota {quota}, which wants {what}", DenialDuration.FOREVER, hint)


def _exceeded(found: re.Match[str]) -> Denial:
    """An attempt that needs more than the whole quota never fits; another waits until others end."""
    requested, used, limited = (_amounts(found[part]) for part in ("requested", "used", "limited"))
    name = f"the ResourceQuota {found['name']}"
    never = [
        key
        for key, amount in requested.items()
        if parse_quantity(amount) > parse_quantity(limited.get(key, amount))
    ]
    if never:
        words = ", ".join(f"{key} {limited[key]}, and one attempt needs {requested[key]}" for key in never)
        fields = " and ".join(sorted({_quota_field(key) for key in never}))
        return Denial(
            f"{name}: it allows {words}",
            DenialDuration.FOREVER,
            f"lower {fields}, or raise the quota in NAMESPACE",
        )
    words = ", ".join(f"{used.get(key, '?')} of {limited.get(key, '?')} {key}" for key in requested)
    hint = "attempts wait until others end; kubectl -n NAMESPACE describe quota shows who uses it"
    return Denial(f"{name}: {words} are in use", DenialDuration.UNTIL_ROOM, hint)


def _out_of_bounds(bounds: list[re.Match[str]]) -> Denial:
    words = "; ".join(bound[0] for bound in bounds)
    fields = " and ".join(sorted({_field(bound["resource"]) for bound in bounds if not _is_of_requests(bound)}))
    hints = [f"change {fields}, or the LimitRange"] if fields else []
    if any(map(_is_of_requests, bounds)):
        hints.append(
            "the requests of runner and score are fixed: lower the LimitRange's minimum or raise its ratio"
        )
    hint = "; ".join(hints) + ": kubectl -n NAMESPACE describe limitrange"
    return Denial(f"a LimitRange: {words}", DenialDuration.FOREVER, hint)


def _is_of_requests(bound: re.Match[str]) -> bool:
    """Whether a request is too low, which no field changes: the agent's requests are its limits, and the others'
    are fixed."""
    return bound["ratio"] is not None or (bound[0].startswith("minimum") and "but limit is" not in bound[0])


def _amounts(text: str) -> dict[str, str]:
    """
    >>> _amounts("limits.cpu=1500m,pods=1")
    {'limits.cpu': '1500m', 'pods': '1'}
    """
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _quota_field(key: str) -> str:
    """Of requests, which "cpu" and "memory" mean alone, only the agent's can be changed: they are its limits.

    >>> _quota_field("requests.cpu"), _quota_field("memory"), _quota_field("limits.cpu")
    ('limits.cpu', 'limits.memory', 'limits.cpu or kubernetes.runner.cpu')
    """
    is_limit = key.startswith("limits.")
    return _field(key) if is_limit else _field(key).partition(" or ")[0]


def _field(resource: str) -> str:
    """
    >>> _field("limits.cpu"), _field("count/pods"), _field("nvidia.com/gpu")
    ('limits.cpu or kubernetes.runner.cpu', 'limits.parallel', 'limits')
    """
    return _FIELDS.get(resource.rpartition(".")[2].rpartition("/")[2], "limits")
