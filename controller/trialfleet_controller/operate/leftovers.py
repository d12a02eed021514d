"""Deletes what a campaign leaves in its namespaces: pods of ended attempts, and the ConfigMap that owns all
pods."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.api_requests import CONFIG_MAPS, JOBS, PODS
from trialfleet_controller.backends.kube.client import Client, pods
from trialfleet_controller.backends.kube.errors import ApiError, Conflict, Forbidden, NotFound
from trialfleet_controller.backends.kube.owner import KEPT_S, Expiry
from trialfleet_ledger import keys
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.protocol import Store


def ended(store: Store, campaign: str) -> set[tuple[str, int]]:
    """(trial, attempt) of every end in the ledger. What its pod still does has no effect."""
    parsed = (keys.parse_attempt(campaign, entry.key) for entry in store.list(keys.attempts(campaign)))
    return {(key.trial, key.attempt) for key in parsed if key is not None and key.name == "end.json"}


def delete_ended(client: Client, plan: Plan, over: set[tuple[str, int]]) -> int:
    """Deletes the pods of ended attempts in every namespace; returns how many. Raises `OperatorError`."""
    kube, count = _of(plan), 0
    for namespace in kube.namespaces:
        with _operator_errors(namespace):
            for pod in list(pods(client, namespace, names.selector(plan.uid))):
                if (pod.label(names.TRIAL), _number(pod.label(names.ATTEMPT))) in over:
                    with suppress(NotFound, Conflict):
                        client.call(PODS.delete(namespace, pod.name, uid=pod.uid, grace_s=0))
                        count += 1
    return count


def delete_owner(client: Client, plan: Plan) -> int:
    """Deletes the campaign's ConfigMap in every namespace, and thereby all its pods; returns how many there
    were."""
    count = 0
    for namespace in _of(plan).namespaces:
        with _operator_errors(namespace):
            with suppress(NotFound):
                client.call(CONFIG_MAPS.delete(namespace, names.config_map(plan.uid)))
                count += 1
            with suppress(NotFound):
                client.call(JOBS.delete(namespace, names.expiry(plan.uid), propagation="Background"))
    return count


def keep_owner(client: Client, plan: Plan) -> None:
    """Keeps failed pods for inspection: they stay for `KEPT_S` more, or until `gc`."""
    for namespace in _of(plan).namespaces:
        with _operator_errors(namespace), suppress(NotFound):
            Expiry(client, namespace, plan, KEPT_S).renew()


@contextmanager
def _operator_errors(namespace: str) -> Generator[None]:
    """Turns an API error into one that the operator can fix."""
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
