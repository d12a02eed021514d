"""How many attempts of a campaign may run at once, and which field bounds them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trialfleet_controller.backends.local.capacity import UNBOUNDED, MachineSize
from trialfleet_controller.backends.protocol import LIVE_PODS
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural
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


@dataclass(frozen=True, slots=True)
class _Field:
    """What one field allows. `remedy`: the field with a value that allows so many attempts, or words that begin
    with "more"; None: there is no such value."""

    attempts: int
    cause: str
    remedy: Callable[[int], str | None] = lambda _: None


def width_bound(
    plan: Plan, *, parallel: int | None = None, reps: int | None = None, machine: MachineSize | None = None
) -> WidthBound:
    """The least of what the campaign's fields allow. `parallel`, `reps`: instead of the plan's; `machine`: where a
    campaign without a cluster runs, None: not known. What a cluster's nodes take is not known here."""
    width = plan.parallel if parallel is None else parallel
    fields = [
        _Field(len(plan.cells) * (reps or plan.reps), "all trials of the campaign"),
        *_parallel(plan, width),
        *(_of_machine(plan, machine, asked=width < UNBOUNDED) if plan.kubernetes is None and machine else ()),
        *_between_looks(plan),
        _blocks(plan),
    ]
    least = min(fields, key=lambda one: one.attempts)
    bounding = [one for one in fields if one.attempts == least.attempts]
    next_bound = min((one.attempts for one in fields if one.attempts > least.attempts), default=None)
    return WidthBound(least.attempts, least.cause, _remedy(bounding, next_bound))


def _remedy(bounding: Sequence[_Field], wanted: int | None) -> str | None:
    """The values with which `wanted` attempts run, which is what the other fields allow."""
    found = [None if wanted is None else one.remedy(wanted) for one in bounding]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return None
    if any(value.startswith("more") for value in values):
        return values[0] if len(values) == 1 else None
    return f"{wanted} with {' and '.join(values)}"


def _parallel(plan: Plan, width: int) -> list[_Field]:
    if width < UNBOUNDED:
        return [_Field(width, f"limits.parallel: {width}")]
    if plan.kubernetes is None:
        return []
    pods = LIVE_PODS * len(plan.kubernetes.namespaces)
    return [_Field(pods, f"limits.parallel is not given: {LIVE_PODS} in each namespace")]


def _of_machine(plan: Plan, machine: MachineSize, *, asked: bool) -> list[_Field]:
    """`asked`: the file asks for a number of attempts; otherwise for as many as fit."""
    cpu, memory = plan.limits.cpu, plan.limits.memory_bytes

    def less_cpu(wanted: int) -> str | None:
        hundredths = math.floor(100 * machine.cpus / wanted)
        while hundredths and int(machine.cpus / (hundredths / 100)) < wanted:  # as it is divided above
            hundredths -= 1
        return f"limits.cpu: {hundredths / 100:g}" if asked and hundredths else None

    def less_memory(wanted: int) -> str | None:
        less = machine.memory_bytes // wanted // MEBIBYTE * MEBIBYTE
        return f"limits.memory: {size_text(less)}" if asked and less >= 16 * MEBIBYTE else None

    room = f"{machine.memory_bytes / 2**30:.1f} GiB"
    return [
        _Field(int(machine.cpus / cpu), f"limits.cpu: {cpu:g} on this machine's {machine.cpus} CPUs", less_cpu),
        _Field(
            machine.memory_bytes // memory,
            f"limits.memory: {size_text(memory)} of this machine's {room}",
            less_memory,
        ),
    ]


def _between_looks(plan: Plan) -> list[_Field]:
    """No block starts before the look that precedes it is taken."""
    schedule, cells = plan.schedule, len(plan.cells)
    stage = None if schedule is None else schedule.longest_stage(plan.reps)
    if schedule is None or stage is None:
        return []
    blocks, why = stage

    def remedy(wanted: int) -> str:
        return schedule.allow_more(plan.reps, math.ceil(wanted / cells))

    return [_Field(blocks * cells, f"primary.{schedule.key}: {why}", remedy)]


def _blocks(plan: Plan) -> _Field:
    cells, ahead = len(plan.cells), plan.blocks_ahead
    which = "oldest open block run" if ahead == 0 else f"{plural(ahead + 1, 'oldest open block')} run"
    return _Field(
        (ahead + 1) * cells,
        f"limits.blocks_ahead: {ahead} lets the {which}, of {plural(cells, 'trial')} each",
        lambda wanted: f"limits.blocks_ahead: {math.ceil(wanted / cells) - 1}",
    )
