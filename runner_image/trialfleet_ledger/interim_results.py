"""That outcomes of an unfinished campaign were shown: what shows some calls this, or `Directives.look` with counts
that it has."""

from __future__ import annotations

from collections.abc import Collection

from trialfleet_ledger.amendments import select_halted_cells
from trialfleet_ledger.blocks import complete_blocks
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Look
from trialfleet_ledger.trial_order import planned_trials


def record_shown_outcomes(
    ledger: Ledger, plan: Plan, *, by: str, ended: Collection[str] | None = None
) -> Look | None:
    """From listings alone. `ended`: ids of trials with an outcome, if the caller has them. None: the campaign has
    ended, or nothing has."""
    over = set(ledger.attempts.outcome_ids() if ended is None else ended)
    planned = ledger.directives.planned_reps(plan)
    every = planned_trials(plan, planned)
    terminal = [(one.task, one.condition, one.block, None) for one in every if one.id in over]
    halted = select_halted_cells(plan.cell_names, ledger.directives.halts())
    return ledger.directives.look(
        planned=planned.trials(plan.cell_names),
        terminal=len(over),
        complete_blocks=complete_blocks(plan.cell_names, terminal, planned, halted=halted),
        by=by,
    )
