"""What a campaign leaves in its namespaces: pods whose attempts have ended, and the ConfigMap that owns them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

from trialfleet_controller import keys
from trialfleet_controller.kube import names
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Conflict, Forbidden, NotFound
from trialfleet_controller.operate.listing import pods
from trialfleet_runner.campaign import KubernetesSpec, Plan
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store


def ended(store: Store, campaign: str) -> set[tuple[str, int]]:
    """(trial, attempt) of every end in the ledger: whatever its pod still does, it does not count."""
    parsed = (keys.parse_attempt(campaign, entry.key) for entry in store.list(keys.attempts(campaign)))
    return {(key.trial, key.attempt) for key in parsed if key is not None and key.name == "end.json"}


def delete_ended(client: Client, plan: Plan, over: set[tuple[str, int]]) -> int:
    """Deletes the campaign's pods of ended attempts, in every namespace; how many. Raises `OperatorError`."""
    kube, count = _of(plan), 0
    for namespace in kube.namespaces:
        with _said(namespace):
            for pod in list(pods(client, namespace, names.selector(plan.uid))):
                if (pod.label(names.TRIAL), _number(pod.label(names.ATTEMPT))) in over:
                    with suppress(NotFound, Conflict):
                        client.delete_pod(namespace, pod.name, uid=pod.uid, grace_s=0)
                        count += 1
    return count


def delete_owner(client: Client, plan: Plan) -> int:
    """Deletes the campaign's ConfigMap in every namespace, and thereby all its pods; how many there were."""
    count = 0
    for namespace in _of(plan).namespaces:
        with _said(namespace), suppress(NotFound):
            client.delete_config_map(namespace, names.config_map(plan.uid))
            count += 1
    return count


@contextmanager
def _said(namespace: str) -> Generator[None]:
    """A cluster's refusal, as the operator's to mend."""
    try:
        yield
    except ApiError as error:
        hint = "apply the Role of k8s/base" if isinstance(error, Forbidden) else "try again"
        raise OperatorError(str(error), where=f"namespace {namespace}", hint=hint) from error


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _of(plan: Plan) -> KubernetesSpec:
    assert plan.kubernetes is not None, "asked for campaigns on Kubernetes only"
    return plan.kubernetes
