"""How many trials a campaign takes that leaves out two of four treatments on the way."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import TREATMENTS, halving_block
from trialfleet_ledger.designs.schedules import AtHalving


@dataclass(frozen=True)
class HalvingPlan:
    """Of the control and the four treatments together. `after`: the block after which two treatments are left out;
    `trials`: what is run, without losses, and `cost` in US dollars (None: no price is known); `whole`: the trials
    if every treatment went on to the end."""

    tasks: int
    reps: int
    after: int
    trials: int
    whole: int
    cost: float | None


def halving_plan(primary: Primary | None, tasks: int, reps: int, cost_rep: float | None) -> HalvingPlan | None:
    """None where nothing is halved. `cost_rep`: of one rep of a task in two conditions.

    >>> primary = Primary(treatment="flat_llm", control="none", halve=True)
    >>> found = halving_plan(primary, tasks=12, reps=25, cost_rep=None)
    >>> found.after, found.trials, found.whole
    (10, 1140, 1500)
    """
    if primary is None or not primary.halve:
        return None
    others = [str(other) for other in range(TREATMENTS - 1)]
    cells = [(str(n), name) for n in range(tasks) for name in (primary.treatment, primary.control, *others)]
    trials = PlannedReps(reps, undecided=AtHalving().undecided(reps, others)).trials(cells)
    cost = None if cost_rep is None else trials * cost_rep / 2
    return HalvingPlan(tasks, reps, halving_block(reps), trials, len(cells) * reps, cost)
