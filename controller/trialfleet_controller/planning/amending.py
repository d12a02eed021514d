"""Amends a frozen campaign: more reps, other limits, lifted halts. Each change is a record."""

from __future__ import annotations

import time

from trialfleet_controller.dispatch.journal_check import check_ledger
from trialfleet_ledger.designs.looks import stopped
from trialfleet_ledger.errors import FieldError, OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.directives import Amendment
from trialfleet_ledger.trial_order import check_size


def amend(
    ledger: Ledger,
    *,
    reps: int | None = None,
    cost_usd: float | None = None,
    wall_clock_s: float | None = None,
    lift: bool = False,
) -> Amendment | None:
    """Write the requested amendment; None if nothing changes. Raises `OperatorError` if it is not possible.

    A cap may also be lowered: this only stops the campaign earlier and does not depend on results.
    """
    plan = ledger.plan()
    now = ledger.directives.planned_reps(plan).most
    if reps is not None and reps <= now:
        raise OperatorError(
            f"the campaign has {plural(now, 'rep')} already",
            where="--reps",
            hint=f"give {now + 1} or more: reps can only grow, because measured trials stay",
        )
    if reps is not None:
        check_size(len(plan.tasks), len(plan.conditions), reps, where="--reps")
        _refuse_open_looks(ledger, plan)
    if cost_usd is not None and plan.limits.cost_usd is None:
        raise OperatorError(
            "the plan has no cost limit per trial, so a cost cap cannot be enforced",
            where="--cost",
            hint="plan a campaign with another name and limits.cost_usd.trial",
        )
    passed_s = time.time() - (ledger.directives.first_driven_at() or time.time())
    if wall_clock_s is not None and wall_clock_s <= passed_s:
        raise OperatorError(
            f"{passed_s:.0f} s have passed since the campaign was first driven",
            where="--wall-clock",
            hint=f"give more than {passed_s:.0f}: the limit counts from that moment",
        )
    lifts = tuple(halt.number for halt in ledger.directives.halts()) if lift else ()
    if reps is None and cost_usd is None and wall_clock_s is None and not lifts:
        return None
    # A finished campaign has been reported: extending it is a decision after a look, recorded or not.
    planned = ledger.directives.planned_reps(plan).trials(plan.cell_names)
    checked = check_ledger(ledger)
    finished = len(checked.listing.done) + len(checked.tampered) >= planned
    after_look = reps is not None and (finished or bool(ledger.directives.looks()) or _decided_on(ledger, plan))
    return ledger.directives.amend(
        reps=reps, cost_usd=cost_usd, wall_clock_s=wall_clock_s, after_look=after_look, lifts=lifts
    )


def _decided_on(ledger: Ledger, plan: Plan) -> bool:
    """Whether decisions make more reps an extension. Without a fixed end only the one that ended it does."""
    schedule = plan.schedule
    return schedule is not None and schedule.is_decided(ledger.directives.decisions())


def _refuse_open_looks(ledger: Ledger, plan: Plan) -> None:
    """More reps would move the end that the declared looks, or the halving, were planned for."""
    schedule = plan.schedule
    try:
        if schedule is not None:
            schedule.refuse_more_reps(plan.reps, ledger.directives.decisions())
    except FieldError as error:
        raise OperatorError(str(error), where="--reps", hint=error.hint) from None


def grow_until_decided(ledger: Ledger, most_reps: int) -> Amendment | None:
    """Allow the campaign so many reps before anything has decided; None if it has them, or is decided. Raises
    `OperatorError` for a campaign with a fixed end, and for fewer reps than it has."""
    plan = ledger.plan()
    schedule = plan.schedule
    if schedule is None or schedule.has_fixed_end:
        raise OperatorError(
            "the campaign has a fixed end: growing until something shows would find it by chance",
            where="--until-decided",
            hint="declare primary: stop: {anytime: half} (with effect:) in a campaign of another name",
        )
    now = ledger.directives.planned_reps(plan).most
    if most_reps == now or stopped(ledger.directives.decisions()):
        return None
    return amend(ledger, reps=most_reps)


def described(amendment: Amendment) -> str:
    """The amendment as one line for the operator."""
    note = " (after a look: the report says so)" if amendment.after_look else ""
    reps = [f"{plural(amendment.reps, 'rep')}{note}"] if amendment.reps is not None else []
    cost = [] if amendment.cost_usd_campaign is None else [f"cost cap ${amendment.cost_usd_campaign:g}"]
    clock = [] if amendment.wall_clock_s is None else [f"wall-clock limit {amendment.wall_clock_s:g} s"]
    return f"amended: {', '.join([*reps, *cost, *clock, *(f'halt {n} lifted' for n in amendment.lifts)])}"
