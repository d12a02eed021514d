"""The ConfigMap that owns a campaign's pods in one namespace, and the Job that owns the ConfigMap."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from trialfleet_controller.backends.attempt_times import grants_expire_s
from trialfleet_controller.backends.kube import manifest, names
from trialfleet_controller.backends.kube.api_requests import CONFIG_MAPS, JOBS, Json
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError, Backoff, Conflict, Forbidden, Invalid, NotFound
from trialfleet_controller.backends.kube.launcher import REFUSED_S, refusal
from trialfleet_controller.backends.kube.pods import json_object, time_of
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan

KEPT_S = 3 * 86400.0  # how long `--keep-failed` keeps failed pods after the end of the campaign
ROOT_CA = "kube-root-ca.crt"  # the ConfigMap that Kubernetes writes into each namespace
IDENTITY_S = 10.0  # a new namespace has the certificate within moments
_IDENTITY_PAUSE_S = 0.5
_RENEWALS = 8  # while pods may outlive their controller

# Whether the ledger has pods of this namespace that may still run in another cluster than the one with this
# identity (None: not known). The second argument: count only pods whose launch names a cluster.
Elsewhere = Callable[[str | None, bool], bool]


@dataclass(frozen=True)
class Expiry:
    """Safe from any thread. `outlives_s`: how long pods outlive their controller at least; None: until the grants
    of a pod that is created now expire, since it could do nothing after that. Methods raise `ApiError`."""

    client: Client
    namespace: str
    plan: Plan
    outlives_s: float | None = None

    @property
    def every_s(self) -> float:
        """Seconds between two renewals."""
        return self._least_s / _RENEWALS

    @property
    def _least_s(self) -> float:
        return grants_expire_s(self.plan) if self.outlives_s is None else self.outlives_s

    def ensure(self) -> manifest.Owner:
        """The Job; created if it is absent."""
        try:
            job = manifest.expiry_job(self.plan, deadline_s=self._deadline_s(0))
            made = self.client.call(JOBS.create(self.namespace, job))
        except Conflict as error:
            try:
                made = self.renew()
            except NotFound:  # it was deleted a moment ago
                raise error from None
        return manifest.Owner(made["metadata"]["name"], made["metadata"]["uid"])

    def renew(self) -> Json:
        """Move the deadline, by the server's clock: ours may differ. Returns the Job. Raises `Conflict` when it is
        being deleted."""
        name = names.expiry(self.plan.uid)
        found = self.client.call(JOBS.get(self.namespace, name))
        if found["metadata"].get("deletionTimestamp"):
            raise Conflict(f"job {name} has expired and is being deleted", status=409)
        age_s = self.client.server_time() - (time_of(found["metadata"].get("creationTimestamp")) or 0.0)
        changed = {"spec": {"activeDeadlineSeconds": self._deadline_s(age_s)}}
        return self.client.call(JOBS.patch(self.namespace, name, changed))

    def _deadline_s(self, age_s: float) -> int:
        """Some renewals may fail."""
        return math.ceil(age_s + self._least_s + 2 * self.every_s)


class CampaignOwner:
    """The ConfigMap that owns the pods of a namespace. Kubernetes deletes a pod whose owner's uid does not exist,
    so a ConfigMap that is deleted is created again. Safe from any thread, once `ensure` has returned.

    `now`: the owner of new pods, and `cluster_id`: the cluster's identity as far as it is known, since `ensure`.
    `outlives_s`: see `Expiry`.
    """

    now: manifest.Owner
    cluster_id: str | None = None

    def __init__(
        self, client: Client, namespace: str, plan: Plan, store_url: str, outlives_s: float | None = None
    ) -> None:
        self.expiry = Expiry(client, namespace, plan, outlives_s)
        self._client, self._namespace, self._plan, self._store_url = client, namespace, plan, store_url
        self._lock = threading.Lock()

    def ensure(
        self,
        *,
        elsewhere: Elsewhere = lambda _, __: False,
        tell: Callable[[str], None] = lambda _: None,
        patience_s: float = REFUSED_S,
    ) -> manifest.Owner:
        """Return the ConfigMap; create it if it is absent. `elsewhere`: see `Elsewhere`; where the ConfigMap
        exists, only a pod whose launch names another cluster is refused.

        Raises `OperatorError`: the pods are in another cluster, no such namespace, not allowed, the ConfigMap
        belongs to another campaign, no answer within `patience_s`.
        """
        backoff, until = Backoff(), time.monotonic() + patience_s
        while True:
            try:
                self.now = self._ensured(elsewhere)
                return self.now
            except (NotFound, Invalid) as error:
                raise refusal(error, self._namespace, "create configmaps") from error
            except ApiError as error:
                if time.monotonic() >= until:
                    raise self._no_answer(error) from error
                tell(f"waiting for the API server: {error}")
                time.sleep(backoff.again(at_least_s=error.retry_after_s))

    def is_gone(self, uid: str) -> bool:
        """Whether the ConfigMap with this uid no longer exists; `now` is then the one that replaces it. False
        while the API server does not answer. Raises `OperatorError` when the ConfigMap cannot be created again."""
        with self._lock:
            if uid == self.now.uid:
                try:
                    found = self._found()
                except ApiError:
                    return False
                if found is None or self._owner(found).uid != uid:
                    self.ensure()
            return uid != self.now.uid

    def _ensured(self, elsewhere: Elsewhere) -> manifest.Owner:
        found = self._here(elsewhere)
        if found is None:
            found = self._created()
        elif not self._lasts(found):
            raise Conflict("the owner of the campaign's pods has expired and is being deleted", status=409)
        return self._owner(found)

    def _here(self, elsewhere: Elsewhere) -> Json | None:
        """The ConfigMap, if it exists, once no pod may run in another cluster. Another dispatcher may create it
        and begin at any time. Raises `OperatorError`."""
        until = time.monotonic() + IDENTITY_S
        while True:
            found = self._found()
            self.cluster_id = self.cluster_id or self._identity()
            if found is not None:
                if self.cluster_id is not None and elsewhere(self.cluster_id, True):
                    raise self._another_cluster()
                return found
            if not elsewhere(self.cluster_id, False):
                return None
            if (found := self._found()) is None:
                if self.cluster_id is not None or time.monotonic() >= until:
                    raise self._another_cluster()
                time.sleep(_IDENTITY_PAUSE_S)

    def _found(self) -> Json | None:
        try:
            return self._client.call(CONFIG_MAPS.get(self._namespace, names.config_map(self._plan.uid)))
        except NotFound:
            return None

    def _identity(self) -> str | None:
        """SHA-256 of the certificate that the API server publishes in each namespace: two clusters have two. A
        new namespace gets it within moments. None: there is none, or it may not be read."""
        try:
            published = self._client.call(CONFIG_MAPS.get(self._namespace, ROOT_CA))
        except (NotFound, Forbidden):
            return None
        certificate = json_object(published.get("data")).get("ca.crt")
        return sha256(certificate.encode()) if isinstance(certificate, str) and certificate else None

    def _created(self) -> Json:
        body = manifest.config_map(self._plan, store_url=self._store_url, expiry=self.expiry.ensure())
        try:
            return self._client.call(CONFIG_MAPS.create(self._namespace, body))
        except Conflict:
            return self._client.call(CONFIG_MAPS.get(self._namespace, names.config_map(self._plan.uid)))

    def _lasts(self, found: Json) -> bool:
        """Whether the ConfigMap stays: its deadline was moved, or it has none since only the Job was deleted."""
        try:
            self.expiry.renew()
        except NotFound:
            return not json_object(found.get("metadata")).get("ownerReferences")
        return True

    def _owner(self, found: Json) -> manifest.Owner:
        head, namespace = json_object(found.get("metadata")), self._namespace
        if json_object(head.get("labels")).get(names.CAMPAIGN) != self._plan.uid:
            raise OperatorError(
                "a ConfigMap of another campaign has the name that this campaign needs",
                where=f"{namespace}/{head['name']}",
                hint=f"check that nobody needs it, then: kubectl -n {namespace} delete configmap {head['name']}",
            )
        return manifest.Owner(head["name"], head["uid"])

    def _another_cluster(self) -> OperatorError:
        """Their attempts would count as lost and run a second time while the first pods still run."""
        return OperatorError(
            "pods of this campaign that may still run are not in this cluster",
            where=f"{self._client.host}, namespace {self._namespace}",
            hint="set the context of the cluster that has them, or run `trialfleet cancel --now` there; "
            "if that cluster is gone: trialfleet resume --cluster-gone",
        )

    def _no_answer(self, error: ApiError) -> OperatorError:
        if isinstance(error, Forbidden):
            return refusal(error, self._namespace, "create configmaps")
        return OperatorError(
            f"the API server does not answer: {error}",
            where=self._client.host,
            hint="check the connection with `kubectl cluster-info`, then run the same command again",
        )
