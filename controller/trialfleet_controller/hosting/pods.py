"""A campaign's pods, as a dispatcher anywhere reaches them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trialfleet_controller.backend import Backend
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.ledger import Ledger
from trialfleet_runner.campaign import Plan, StoreSpec
from trialfleet_runner.store.open import open_store
from trialfleet_runner.store.protocol import Store


@dataclass(frozen=True)
class Pods:
    """`address`: the store; its `pod_endpoint` is what grants are signed for. `context`: of the kubeconfig; None:
    as the dispatcher's machine has it, a pod by its service account. `parallel`, `max_pending`, `creates_per_s`
    and `creates_burst`: this time, whatever is frozen. `keep_failed`: failed pods that stay; `cluster_gone`:
    pods that nobody saw end are lost with theirs."""

    address: StoreSpec
    context: str | None
    parallel: int
    max_pending: int
    creates_per_s: float
    creates_burst: int
    keep_failed: int = 0
    cluster_gone: bool = False

    def store(self) -> Store:
        return open_store(
            self.address.url,
            endpoint=self.address.endpoint,
            grant_endpoint=self.address.pod_endpoint,
            path_style=self.address.path_style,
        )

    def as_asked(self, plan: Plan) -> Plan:
        """The frozen plan, but for the way to the cluster and how much is asked of it."""
        assert plan.kubernetes is not None
        kube = plan.kubernetes.model_copy(
            update={
                "context": self.context,
                "max_pending": self.max_pending,
                "creates_per_s": self.creates_per_s,
                "creates_burst": self.creates_burst,
            }
        )
        return plan.model_copy(update={"kubernetes": kube, "parallel": self.parallel})

    def backend(self, plan: Plan, shard: Shard, tell: Callable[[str], None]) -> Backend:
        from trialfleet_controller.kube.backend import KubernetesBackend

        return KubernetesBackend.open(
            self.as_asked(plan),
            store_url=self.address.url,
            namespace=shard.namespace,
            shard=shard.index,
            keep_failed=self.keep_failed,
            begun=lambda: not self.cluster_gone and begun(Ledger(self.store(), plan.campaign), shard),
            tell=tell,
        )


def begun(ledger: Ledger, shard: Shard) -> bool:
    """Whether a pod of the shard's namespace has written its start and no end."""
    return any(
        attempt.start is not None and attempt.start.pod is not None and attempt.end is None
        for trial in ledger.survey().open
        if shard.shares_namespace(trial)
        for attempt in ledger.chain(trial)
    )
