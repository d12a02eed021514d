"""The ConfigMap that owns a campaign's pods in one namespace."""

from __future__ import annotations

import time
from collections.abc import Callable

from trialfleet_controller.kube import manifest, names
from trialfleet_controller.kube.backoff import Backoff
from trialfleet_controller.kube.client import Client, Json
from trialfleet_controller.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, Throttled
from trialfleet_controller.kube.launcher import REFUSED_S, refusal
from trialfleet_controller.kube.pods import json_object
from trialfleet_runner.campaign import Plan
from trialfleet_runner.errors import OperatorError


def ensure_owner(
    client: Client,
    namespace: str,
    plan: Plan,
    store_url: str,
    *,
    begun: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda _: None,
    patience_s: float = REFUSED_S,
) -> manifest.Owner:
    """Made now, or by an earlier controller of this very campaign.

    `begun`: whether the ledger has pods of this namespace that nobody saw end; asked when they have no owner.
    Raises `OperatorError`: they are in another cluster, no such namespace, not allowed, another campaign's, no
    answer within `patience_s`.
    """
    backoff, until = Backoff(), time.monotonic() + patience_s
    while True:
        try:
            found = _found(client, namespace, plan)
            # Asked again: another dispatcher may have made it, and begun, in between.
            if found is None and begun() and (found := _found(client, namespace, plan)) is None:
                raise _another_cluster(client, namespace)
            return _owner(found or _made(client, namespace, plan, store_url), namespace, plan)
        except (NotFound, Invalid) as error:
            raise refusal(error, namespace, "create configmaps") from error
        except ApiError as error:
            if time.monotonic() >= until:
                raise _patience_over(error, client, namespace) from error
            at_least_s = error.retry_after_s if isinstance(error, Throttled) else 0.0
            tell(f"waiting for the API server: {error}")
            time.sleep(backoff.again(at_least_s=at_least_s))


def _found(client: Client, namespace: str, plan: Plan) -> Json | None:
    try:
        return client.get_config_map(namespace, names.config_map(plan.uid))
    except NotFound:
        return None


def _made(client: Client, namespace: str, plan: Plan, store_url: str) -> Json:
    try:
        return client.create_config_map(namespace, manifest.config_map(plan, store_url=store_url))
    except Conflict:
        return client.get_config_map(namespace, names.config_map(plan.uid))


def _owner(made: Json, namespace: str, plan: Plan) -> manifest.Owner:
    head = json_object(made.get("metadata"))
    if json_object(head.get("labels")).get(names.CAMPAIGN) != plan.uid:
        raise OperatorError(
            "a ConfigMap of another campaign has the name of this one's",
            where=f"{namespace}/{head['name']}",
            hint=f"look at it, then delete it: kubectl -n {namespace} delete configmap {head['name']}",
        )
    return manifest.Owner(head["name"], head["uid"])


def _another_cluster(client: Client, namespace: str) -> OperatorError:
    """Their attempts would be lost, and run again beside them."""
    return OperatorError(
        "pods of this campaign that may still run are not in this cluster",
        where=f"{client.host}, namespace {namespace}",
        hint="give the context of the cluster where they are, or `trialfleet cancel --now` there; "
        "when they are gone with it: trialfleet resume --cluster-gone",
    )


def _patience_over(error: ApiError, client: Client, namespace: str) -> OperatorError:
    if isinstance(error, Forbidden):
        return refusal(error, namespace, "create configmaps")
    return OperatorError(
        f"the API server does not answer: {error}",
        where=client.host,
        hint="kubectl cluster-info says whether it is reachable from here; then run the same command again",
    )
