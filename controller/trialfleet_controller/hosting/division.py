"""How a campaign is divided into shards. Pure, the same in every process of the controller."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from trialfleet_controller.capacity import UNBOUNDED
from trialfleet_controller.plan import Planned
from trialfleet_controller.shards import of_shard, shard_of
from trialfleet_runner.campaign import Plan

LIVE_PODS = 2500  # of one dispatcher


@dataclass(frozen=True, slots=True)
class Shard:
    """`index` of `count`, numbered from 0. `namespace`: where its pods run; None: not on Kubernetes; `namespaces`:
    how many the campaign has."""

    index: int
    count: int
    namespace: str | None = None
    namespaces: int = 1

    def shares_namespace(self, trial_id: str) -> bool:
        """Whether the trial's pods are in its namespace, whichever shard drives it."""
        each = self.count // self.namespaces
        return shard_of(trial_id, self.count, self.namespaces) // each == self.index // each

    def mine(self, trials: Iterable[Planned]) -> list[Planned]:
        """Those that it drives, in launch order."""
        return of_shard(trials, self.index, self.count, self.namespaces)


def width(plan: Plan) -> int:
    """How many attempts may run at once. Where the plan leaves it open: what one dispatcher in each namespace may
    hold, because the cluster decides how many of those it takes."""
    if plan.kubernetes is None or plan.parallel < UNBOUNDED:
        return plan.parallel
    return len(plan.kubernetes.namespaces) * LIVE_PODS


def shards(plan: Plan) -> tuple[Shard, ...]:
    """One per namespace; several when a namespace's share of the width is more than one dispatcher should hold.
    Those of one namespace follow each other.

    A resume of another width may divide a namespace otherwise: which shard drives a trial is written nowhere. Its
    namespace stays.
    """
    namespaces: tuple[str | None, ...] = (None,) if plan.kubernetes is None else plan.kubernetes.namespaces
    each = max(1, math.ceil(width(plan) / len(namespaces) / LIVE_PODS))
    count = each * len(namespaces)
    return tuple(Shard(index, count, namespaces[index // each], len(namespaces)) for index in range(count))
