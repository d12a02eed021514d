"""How a campaign is divided into shards. Pure: every process of the controller divides it in the same way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from trialfleet_controller.backends.local.capacity import UNBOUNDED
from trialfleet_controller.backends.protocol import LIVE_PODS
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.dispatch.shards import of_shard, shard_of
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.trial_order import Planned


@dataclass(frozen=True, slots=True)
class Shard:
    """`index` of `count`, numbered from 0. `namespace`: where its pods run; None: not on Kubernetes; `namespaces`:
    how many the campaign has."""

    index: int
    count: int
    namespace: str | None = None
    namespaces: int = 1

    def shares_namespace(self, trial_id: str) -> bool:
        """Whether the trial's pods are in this shard's namespace; another shard of it may drive the trial."""
        each = self.count // self.namespaces
        return shard_of(trial_id, self.count, self.namespaces) // each == self.index // each

    def mine(self, trials: Iterable[Planned]) -> list[Planned]:
        """The trials that this shard drives, in launch order."""
        return of_shard(trials, self.index, self.count, self.namespaces)


def width(plan: Plan, options: DriveOptions) -> int:
    """How many attempts may run at once. Without a limit: what one dispatcher in each namespace may hold, because
    the cluster decides how many of those it takes."""
    if plan.kubernetes is None or options.parallel < UNBOUNDED:
        return options.parallel
    return len(plan.kubernetes.namespaces) * LIVE_PODS


def shards(plan: Plan, options: DriveOptions) -> tuple[Shard, ...]:
    """One per namespace; several if a namespace's share of the width is more than one dispatcher should hold.
    The shards of one namespace have consecutive numbers.

    A resume with another width may divide a namespace differently, because no record says which shard drives a
    trial. The trial's namespace stays the same.
    """
    namespaces: tuple[str | None, ...] = (None,) if plan.kubernetes is None else plan.kubernetes.namespaces
    each = max(1, math.ceil(width(plan, options) / len(namespaces) / LIVE_PODS))
    count = each * len(namespaces)
    return tuple(Shard(index, count, namespaces[index // each], len(namespaces)) for index in range(count))
