"""What amendments and looks make of a frozen plan: its reps, its cost cap, the halts that hold. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from trialfleet_ledger.blocks import CellName, PlannedReps
from trialfleet_ledger.designs.looks import Decision, halving_of, planned_after, revised_reps, stopped
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Amendment, Halt


def effective_reps(plan: Plan, amendments: Sequence[Amendment], decisions: Sequence[Decision]) -> int:
    """The plan's reps, or those that a look has re-estimated; or the largest number that an amendment sets."""
    planned = revised_reps(decisions) or plan.reps
    return max([planned, *(a.reps for a in amendments if a.reps is not None)])


def most_reps(plan: Plan, reps: int) -> int:
    """`reps`, or as many as a look may still make of them."""
    schedule = plan.schedule
    return reps if schedule is None else schedule.most_reps(reps)


def planned_reps(
    plan: Plan, amendments: Sequence[Amendment], decisions: Sequence[Decision], halts: Collection[Halt]
) -> PlannedReps:
    """Of every cell: `effective_reps`, without the blocks that a decision has left it out of, or is certain to.
    `halts`: those in force."""
    planned = planned_after(decisions, effective_reps(plan, amendments, decisions))
    if plan.schedule is None or not _may_change(plan, planned, decisions, halts):
        return planned
    return replace(planned, undecided=plan.schedule.undecided(plan.reps, _others(plan, halts)))


def largest_reps(
    plan: Plan, planned: PlannedReps, decisions: Sequence[Decision], halts: Collection[Halt]
) -> PlannedReps:
    """`planned`, with as many reps as a look may still make of them."""
    may_grow = _may_change(plan, planned, decisions, halts)
    return replace(planned, most=most_reps(plan, planned.most)) if may_grow else planned


def _may_change(plan: Plan, planned: PlannedReps, decisions: Sequence[Decision], halts: Collection[Halt]) -> bool:
    """Whether a look may still leave treatments out, or re-estimate the reps."""
    decided = halving_of(decisions) or revised_reps(decisions) or stopped(decisions)
    return plan.schedule is not None and not decided and explain_void(plan, planned.most, decisions, halts) is None


def explain_void(plan: Plan, reps: int, decisions: Sequence[Decision], halts: Collection[Halt]) -> str | None:
    """Why the looks that are left are not taken, and nothing waits for one: a side of the comparison is halted, or
    so many treatments that there is nothing to halve. None: they are, or none is left. `reps`: with amendments;
    `halts`: those in force."""
    schedule = plan.schedule
    if plan.declared is None or schedule is None or stopped(decisions) is not None:
        return None
    if len(decisions) >= len(schedule.blocks_at(plan.reps, reps, decisions)):
        return None
    halted = {*plan.declared.sides.values()}.intersection(halt.condition or "" for halt in halts)
    if halted:
        names = ", ".join(sorted(halted))
        return f"no look is taken, and nothing waits for one, since a side of the comparison is halted: {names}"
    if len(_others(plan, halts)) < schedule.needs_others:
        return "no treatment is left out, and nothing waits for that, since too many are halted to choose between"
    return None


def _others(plan: Plan, halts: Collection[Halt]) -> list[str]:
    """The conditions that are not halted, without those that the declared result compares."""
    sides = () if plan.declared is None else plan.declared.sides.values()
    return [name for name in plan.condition_names if name not in {*sides, *(halt.condition for halt in halts)}]


def effective_cost(plan: Plan, amendments: Sequence[Amendment]) -> float | None:
    """The campaign's cost cap in US dollars: the latest amendment's, else the plan's. None: there is none."""
    amended = (a.cost_usd_campaign for a in reversed(amendments) if a.cost_usd_campaign is not None)
    return next(amended, plan.cost_usd_campaign)


def in_force(halts: Sequence[Halt], amendments: Sequence[Amendment]) -> tuple[Halt, ...]:
    """The halts that no amendment has lifted."""
    lifted = {number for amendment in amendments for number in amendment.lifts}
    return tuple(halt for halt in halts if halt.number not in lifted)


def select_halted_cells(cells: Iterable[CellName], halts: Iterable[Halt]) -> frozenset[CellName]:
    """The cells of halted tasks and of halted conditions. A halt of the whole campaign leaves its cells as they
    are: the campaign is not finished."""
    narrow = [halt for halt in halts if not halt.of_campaign]
    return frozenset(cell for cell in cells if any(halt.covers(*cell) for halt in narrow))


def ending_look(decisions: Sequence[Decision], amendments: Sequence[Amendment]) -> Decision | None:
    """The look that ended the campaign; None: none did, or reps were added since."""
    end = stopped(decisions)
    if end is None or any(one.reps is not None for one in amendments[end.amendments :]):
        return None
    return end


def explain_end(decisions: Sequence[Decision], amendments: Sequence[Amendment], *, cancelled: bool) -> str | None:
    """Why nothing more starts, whatever `resume` is told; None: trials may."""
    if cancelled:
        return "it was cancelled, and nothing more starts"
    ended = ending_look(decisions, amendments) is not None
    return "a declared look has ended it, and nothing more starts" if ended else None


def word_resume(*, halted: bool, out_of_time: bool, out_of_money: bool) -> str:
    """The command that continues a campaign, with every option that it needs.

    >>> word_resume(halted=True, out_of_time=True, out_of_money=False)
    '`trialfleet resume --lift --wall-clock SECONDS`'
    """
    needed = {"--lift": halted, "--wall-clock SECONDS": out_of_time, "--cost USD": out_of_money}
    return f"`{' '.join(('trialfleet resume', *(option for option, needs in needed.items() if needs)))}`"


def wall_clock_s(plan: Plan, amendments: Sequence[Amendment]) -> float | None:
    """The limit in force: the latest amendment's, else the plan's. None: there is none."""
    return next((a.wall_clock_s for a in reversed(amendments) if a.wall_clock_s is not None), plan.wall_clock_s)


def ends_at(plan: Plan, amendments: Sequence[Amendment], first_at: float | None) -> float | None:
    """When the wall-clock limit is reached, in seconds since 1970. `first_at`: of the first epoch; None: there is
    none yet."""
    limit_s = wall_clock_s(plan, amendments)
    return None if limit_s is None or first_at is None else first_at + limit_s
