"""What may differ from the frozen plan while a campaign is driven. The plan itself is never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_ledger.amendments import effective_cost, effective_reps, ends_at
from trialfleet_ledger.designs.looks import Decision
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Amendment


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """What an operator may choose each time a campaign is driven; it changes no result.

    `parallel`: attempts that may run at once. The rest is for Kubernetes. `context`: of the kubeconfig; None: its
    current context, or the pod's service account. `max_pending`, `creates_per_s`, `creates_burst`: the load on the
    cluster; `creates_per_s` None: no limit. `keep_failed`: how many failed pods are kept in each namespace.
    `cluster_gone`: the cluster where the campaign began is gone, and what ran there is lost. `obey_futility`: a
    declared look that finds a gain too unlikely ends the campaign.
    """

    parallel: int
    context: str | None = None
    max_pending: int = 0
    creates_per_s: float | None = None
    creates_burst: int = 1
    keep_failed: int = 0
    cluster_gone: bool = False
    obey_futility: bool = True

    @staticmethod
    def of(
        plan: Plan, *, keep_failed: int = 0, cluster_gone: bool = False, obey_futility: bool = True
    ) -> DriveOptions:
        """The plan's own values. `plan` may be newer than the frozen one: made from a campaign file that means the
        same and names another width or context."""
        kube = plan.kubernetes
        if kube is None:
            return DriveOptions(plan.parallel, obey_futility=obey_futility)
        return DriveOptions(
            plan.parallel,
            context=kube.context,
            max_pending=kube.max_pending,
            creates_per_s=kube.creates_per_s,
            creates_burst=kube.creates_burst,
            keep_failed=keep_failed,
            cluster_gone=cluster_gone,
            obey_futility=obey_futility,
        )


@dataclass(frozen=True, slots=True)
class AmendedLimits:
    """The campaign's limits with every amendment. `cost_usd`: the cap; None: there is none. `ends_at`: when the
    wall-clock limit is reached, in seconds since 1970; None: there is no limit."""

    reps: int
    cost_usd: float | None = None
    ends_at: float | None = None

    @staticmethod
    def of(
        plan: Plan,
        amendments: Sequence[Amendment] = (),
        first_driven_at: float | None = None,
        decisions: Sequence[Decision] = (),
    ) -> AmendedLimits:
        return AmendedLimits(
            effective_reps(plan, amendments, decisions),
            effective_cost(plan, amendments),
            ends_at(plan, amendments, first_driven_at),
        )
