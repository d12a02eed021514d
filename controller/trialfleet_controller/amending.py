"""Changing a campaign that is frozen: more reps, another cost cap, halts lifted. Each change is a record."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_controller.ledger import Ledger
from trialfleet_runner.campaign import Amendment, Plan
from trialfleet_runner.errors import OperatorError


def effective_reps(plan: Plan, amendments: Sequence[Amendment]) -> int:
    """The plan's reps, or those of the amendment that asks for most."""
    return max([plan.reps, *(a.reps for a in amendments if a.reps is not None)])


def effective_cost(plan: Plan, amendments: Sequence[Amendment]) -> float | None:
    """The campaign's cost cap in US dollars: the latest amendment's, else the plan's. None: there is none."""
    amended = [a.cost_usd_campaign for a in amendments if a.cost_usd_campaign is not None]
    return amended[-1] if amended else plan.cost_usd_campaign


def amend(
    ledger: Ledger, *, reps: int | None = None, cost_usd: float | None = None, lift: bool = False
) -> Amendment | None:
    """Write what is asked for; None when that is nothing. Raises `OperatorError` when it cannot be.

    A cap may also be lowered: it only stops the campaign earlier, and is no wish about results.
    """
    plan, amendments = ledger.plan(), ledger.amendments()
    now = effective_reps(plan, amendments)
    if reps is not None and reps <= now:
        raise OperatorError(
            f"the campaign has {now} reps already",
            where="--reps",
            hint="reps only grow: what is measured stays",
        )
    if cost_usd is not None and plan.limits.cost_usd is None:
        raise OperatorError(
            "what a trial may cost at most is not in the plan, so a cap cannot be kept",
            where="--cost",
            hint="plan a campaign of another name with limits.cost_usd.trial",
        )
    lifts = tuple(halt.number for halt in ledger.halts()) if lift else ()
    if reps is None and cost_usd is None and not lifts:
        return None
    # A finished campaign has been reported: extending it is a decision after a look, recorded or not.
    finished = sum(1 for _ in ledger.outcome_ids()) >= now * len(plan.cells)
    after_look = reps is not None and (finished or ledger.looks() > 0)
    return ledger.amend(reps=reps, cost_usd=cost_usd, after_look=after_look, lifts=lifts)


def described(amendment: Amendment) -> str:
    """One line for who asked for it."""
    note = " (after a look: the report says so)" if amendment.after_look else ""
    reps = [f"{amendment.reps} reps{note}"] if amendment.reps is not None else []
    cost = [] if amendment.cost_usd_campaign is None else [f"cost cap {amendment.cost_usd_campaign:g} USD"]
    return f"amended: {', '.join([*reps, *cost, *(f'halt {n} lifted' for n in amendment.lifts)])}"
