"""How many attempts of a campaign may run at once, and which field bounds them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from trialfleet_controller.backends.local.capacity import UNBOUNDED, MachineSize
from trialfleet_controller.backends.protocol import LIVE_PODS
from trialfleet_ledger.halving import halving_block
from trialfleet_ledger.looks import StopRule
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.quantities import MEBIBYTE, size_text

FROZEN = "these fields are part of the plan: another value needs a campaign of another name"


@dataclass(frozen=True, slots=True)
class WidthBound:
    """`attempts`: at once; `cause`: what bounds them; `remedy`: a value with which more run; None: nothing that
    the campaign asks for is held back."""

    attempts: int
    cause: str
    remedy: str | None = None

    @property
    def reason(self) -> str:
        """
        >>> WidthBound(10, "limits.blocks_ahead: 4", "40 with limits.blocks_ahead: 19").reason
        'limits.blocks_ahead: 4; 40 with limits.blocks_ahead: 19'
        """
        return self.cause if self.remedy is None else f"{self.cause}; {self.remedy}"


def width_bound(
    plan: Plan, *, parallel: int | None = None, reps: int | None = None, machine: MachineSize | None = None
) -> WidthBound:
    """The least of what the campaign's fields allow. `parallel`, `reps`: instead of the plan's; `machine`: where a
    campaign without a cluster runs, None: not known. What a cluster's nodes take is not known here."""
    width = plan.parallel if parallel is None else parallel
    trials = len(plan.cells) * (reps or plan.reps)
    bounds = [WidthBound(trials, "all trials of the campaign")]
    if width < UNBOUNDED:
        bounds.append(WidthBound(width, f"limits.parallel: {width}"))
    elif plan.kubernetes is not None:
        pods = LIVE_PODS * len(plan.kubernetes.namespaces)
        bounds.append(WidthBound(pods, f"limits.parallel is not given: {LIVE_PODS} in each namespace"))
    if plan.kubernetes is None and machine is not None:
        wanted = min(trials, width) if width < UNBOUNDED else None
        bounds += _machine_bounds(plan, machine, wanted)
    least = min(bounds, key=lambda bound: bound.attempts)
    for bound in (_look_bound(plan, least.attempts), _block_bound(plan, least.attempts)):
        if bound is not None and bound.attempts < least.attempts:
            least = bound
    return least


def _machine_bounds(plan: Plan, machine: MachineSize, wanted: int | None) -> list[WidthBound]:
    """`wanted`: attempts that the file asks for; None: as many as fit."""
    cpu, memory = plan.limits.cpu, plan.limits.memory_bytes
    by_cpu, by_memory = int(machine.cpus / cpu), machine.memory_bytes // memory
    less_cpu = None if wanted is None else math.floor(100 * machine.cpus / wanted) / 100
    less_memory = None if wanted is None else machine.memory_bytes // wanted // MEBIBYTE * MEBIBYTE
    return [
        WidthBound(
            by_cpu,
            f"limits.cpu: {cpu:g} on this machine's {machine.cpus} CPUs",
            f"{wanted} with limits.cpu: {less_cpu:g}" if less_cpu else None,
        ),
        WidthBound(
            by_memory,
            f"limits.memory: {size_text(memory)} of this machine's {machine.memory_bytes / 2**30:.1f} GiB",
            f"{wanted} with limits.memory: {size_text(less_memory)}"
            if less_memory and less_memory >= 16 * MEBIBYTE
            else None,
        ),
    ]


def _look_bound(plan: Plan, wanted: int) -> WidthBound | None:
    """No block starts before the look that precedes it is taken. None: nothing waits for a look."""
    primary, cells = plan.primary, len(plan.cells)
    if primary is None:
        return None
    if primary.halve:
        first = halving_block(plan.reps)
        blocks = max(first, plan.reps - first)
        return WidthBound(blocks * cells, f"primary.halve: at most {blocks} blocks run", "more without it")
    if not isinstance(primary.stop, StopRule):
        return None
    blocks = max(later - earlier for earlier, later in pairwise((0, *primary.stop.blocks(plan.reps))))
    looks = plan.reps // math.ceil(wanted / cells)
    value = f"{wanted} with primary.stop: {{looks: {looks}}}" if looks > 1 else "more with fewer looks"
    return WidthBound(blocks * cells, f"primary.stop: at most {blocks} blocks run between two looks", value)


def _block_bound(plan: Plan, wanted: int) -> WidthBound:
    """`wanted`: attempts that everything else allows."""
    cells, ahead = len(plan.cells), plan.blocks_ahead
    return WidthBound(
        (ahead + 1) * cells,
        f"limits.blocks_ahead: {ahead} lets the {ahead + 1} oldest open blocks run, of {cells} trials each",
        f"{wanted} with limits.blocks_ahead: {math.ceil(wanted / cells) - 1}",
    )
