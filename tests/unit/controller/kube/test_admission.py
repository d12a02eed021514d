"""Who refuses an object, by the messages that Kubernetes writes."""

from __future__ import annotations

import pytest

from trialfleet_controller.backends.kube.admission import DenialDuration, read_denial

POD = 'pods "t-a-a1" is forbidden: '
COMPUTE = f"{POD}exceeded quota: compute, requested: {{requested}}, used: {{used}}, limited: {{limited}}"


def exceeded(requested: str, used: str, limited: str) -> str:
    return COMPUTE.format(requested=requested, used=used, limited=limited)


FIXED = "the requests of runner and score are fixed: lower the LimitRange's minimum or raise its ratio"


@pytest.mark.parametrize(
    ("message", "by", "lasts", "hint"),
    [
        (
            f'{POD}User "x" cannot create resource "pods" in API group "" in the namespace "trials"',
            "RBAC",
            DenialDuration.A_MINUTE,
            "kubectl auth can-i --list",
        ),
        ("Unauthorized", "does not accept these credentials", DenialDuration.A_MINUTE, "renew them"),
        (
            exceeded("limits.cpu=1500m,pods=1", "limits.cpu=3,pods=2", "limits.cpu=4,pods=9"),
            "ResourceQuota compute: 3 of 4 limits.cpu, 2 of 9 pods are in use",
            DenialDuration.UNTIL_ROOM,
            "attempts wait until others end",
        ),
        (
            exceeded("requests.memory=4Gi", "requests.memory=0", "requests.memory=2Gi"),
            "allows requests.memory 2Gi, and one attempt needs 4Gi",
            DenialDuration.FOREVER,
            "lower limits.memory, or raise the quota",
        ),
        (
            f"{POD}failed quota: compute: must specify limits.cpu for: runner",
            "ResourceQuota compute, which wants limits.cpu for: runner",
            DenialDuration.FOREVER,
            "set kubernetes.runner.cpu in the campaign file",
        ),
        (
            f"{POD}[maximum cpu usage per Container is 500m, but limit is 1, maximum cpu usage per Pod is 1, but "
            "limit is 2]",
            "a LimitRange: maximum cpu usage per Container is 500m, but limit is 1; maximum cpu usage per Pod is",
            DenialDuration.FOREVER,
            "change limits.cpu or kubernetes.runner.cpu, or the LimitRange",
        ),
        (
            f"{POD}maximum memory usage per Container is 1Gi.  No limit is specified",
            "maximum memory usage per Container is 1Gi.  No limit is specified",
            DenialDuration.FOREVER,
            "limits.memory",
        ),
        (
            f"{POD}cpu max limit to request ratio per Container is 2, but provided ratio is 50.000000",
            "cpu max limit to request ratio per Container is 2, but provided ratio is 50.000000",
            DenialDuration.FOREVER,
            FIXED,
        ),
        (
            f"{POD}minimum cpu usage per Container is 100m, but request is 10m",
            "minimum cpu usage per Container is 100m, but request is 10m",
            DenialDuration.FOREVER,
            FIXED,
        ),
        (
            f"{POD}minimum memory usage per Pod is 1Gi.  No request is specified",
            "No request is specified",
            DenialDuration.FOREVER,
            FIXED,
        ),
        (
            f"{POD}[minimum cpu usage per Container is 100m, but request is 10m, maximum memory usage per Pod is "
            "1Gi, but limit is 4Gi]",
            "maximum memory usage per Pod is 1Gi, but limit is 4Gi",
            DenialDuration.FOREVER,
            f"change limits.memory or kubernetes.runner.memory, or the LimitRange; {FIXED}",
        ),
        (
            f"{POD}minimum cpu usage per Container is 2, but limit is 1",
            "but limit is 1",
            DenialDuration.FOREVER,
            "change limits.cpu or kubernetes.runner.cpu, or the LimitRange: kubectl",
        ),
        (
            f"{POD}failed quota: disk: must specify limits.ephemeral-storage for: x",
            "ResourceQuota disk, which wants limits.ephemeral-storage",
            DenialDuration.FOREVER,
            "attempts set no such value: change the quota",
        ),
        (
            f'{POD}violates PodSecurity "restricted:latest": seccompProfile (…)',
            "Pod Security level restricted:latest",
            DenialDuration.FOREVER,
            "the webhook that adds",
        ),
        (
            f"{POD}no PriorityClass with name high was found",
            "PriorityClass high",
            DenialDuration.FOREVER,
            "kubernetes.priority_class",
        ),
        (
            f'{POD}pod rejected: RuntimeClass "gvisor" not found',
            "RuntimeClass gvisor",
            DenialDuration.FOREVER,
            "kubernetes.runtime_class",
        ),
        (
            'admission webhook "policy.example" denied the request: exceeded quota: mine',
            "the admission webhook policy.example",
            DenialDuration.A_MINUTE,
            "validatingwebhookconfigurations",
        ),
        (
            f"{POD}ValidatingAdmissionPolicy 'team' with binding 'b' denied request: no team label",
            "the ValidatingAdmissionPolicy team",
            DenialDuration.FOREVER,
            "kubernetes:",
        ),
        (
            f'{POD}error looking up service account trials/default: serviceaccount "default" not found',
            "the service account",
            DenialDuration.A_MINUTE,
            "get serviceaccount default",
        ),
        (
            f"{POD}unable to create new content in namespace trials because it is being terminated",
            "being deleted",
            DenialDuration.FOREVER,
            "make it again",
        ),
        ("something new", "the API server", DenialDuration.A_MINUTE, "kubectl auth can-i"),
    ],
)
def test_a_refusal_names_who_refuses_and_what_changes_it(
    message: str, by: str, lasts: DenialDuration, hint: str
) -> None:
    denial = read_denial(message)
    assert by in denial.by
    assert denial.lasts is lasts
    assert hint in denial.hint
