"""The status of a campaign as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trialfleet_controller.backends.protocol import wait_words
from trialfleet_controller.status.campaign_status import CampaignStatus, Controller, State
from trialfleet_ledger.amendments import word_resume
from trialfleet_ledger.crashed_agents import CRASHED, needs_caution
from trialfleet_ledger.designs.looks import PEEKING
from trialfleet_ledger.designs.schedules import word_p
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS, LossClass
from trialfleet_ledger.stored_journal import GIVE_UP, RESTORE, explain_absence

SHOWN = 8  # tampered records


def lines(status: CampaignStatus, *, rates: bool = True) -> list[str]:
    """The report for people."""
    return [
        f"{status.title}: {status.state}; {status.terminal} of {plural(status.planned, 'trial')}",
        *_of_state(status),
        *([status.banner] if status.banner else []),
        *(f"tampered: {one_line(one)}" for one in status.tampered[:SHOWN]),
        *(
            [f"tampered: {plural(len(status.tampered) - SHOWN, 'more record')}"]
            if len(status.tampered) > SHOWN
            else []
        ),
        *filter(None, [explain_absence(status.tampered).strip()]),
        *map(one_line, status.deliveries),
        *([f"cancelled by {one_line(status.cancelled)}"] if status.cancelled else []),
        *(f"halted: {one_line(halt, MESSAGE_CHARS)}" for halt in status.halts),
        *(f"cannot be read: {one_line(record)}" for record in status.unreadable),
        *(
            [f"left out: {plural(status.unplanned, 'outcome')} that the plan has no place for"]
            * bool(status.unplanned)
        ),
        *_of_looks(status),
        *status.equal_arms,
        *_of_agents(status),
        *_of_forged(status),
        *(["extended after a look"] if status.after_look else []),
        "",
        *_table(status, rates=rates),
        "",
        *(_of_rates(status) if rates else ()),
        *([f"pending: {wait_words(status.pending)}"] if status.pending else []),
        *(text for text in (status.unplaced, status.width) if text is not None),
        *([f"attempts lost: {_counts(status.losses)}"] if status.losses else ["no attempt was lost"]),
        *(f"{LossClass(loss).words}: {count}" for loss, count in status.stops.items()),
        *_of_costs(status),
        *([f"quarantined bundles: {status.quarantined}"] if status.quarantined else []),
    ]


def _of_agents(status: CampaignStatus) -> list[str]:
    """Every condition with crashed agents; from how many on they matter."""
    return [
        f"{one_line(name)}: in {c.crashed} of {plural(c.measured, 'measured trial')} the "
        f"agent {CRASHED}, counted as "
        "failed"
        + ("; `trialfleet logs` of one shows what it printed" if needs_caution(c.crashed, c.measured) else "")
        for name, c in status.conditions.items()
        if c.crashed
    ]


def _of_forged(status: CampaignStatus) -> list[str]:
    return [
        f"{one_line(name)}: {c.forged} of {plural(c.measured, 'measured trial')} forged a pass, counted as "
        "failed; the report names them"
        for name, c in status.conditions.items()
        if c.forged
    ]


def _of_looks(status: CampaignStatus) -> list[str]:
    none = [one_line(status.no_look)] if status.no_look else []
    if status.halving_after:
        return none or [_of_halving(status)]
    if not status.looks_planned:
        return []
    if status.anytime:
        return [_of_blocks(status), *none]
    return [*_of_declared(status), *_of_dropped(status), *none]


def _of_declared(status: CampaignStatus) -> list[str]:
    revised = f"; reps re-estimated: {status.reps}, planned {status.revised_from}" if status.revised_from else ""
    taken = f"{status.looks_taken} of {status.looks_planned} declared looks are taken{revised}"
    if status.decided is not None:
        return [f"{taken}; the last one decided: {status.decided}"]
    if status.looks_taken >= status.looks_planned or status.no_look:
        return [taken]
    return [
        taken,
        *(_table_of_looks(status.look_bounds) if status.look_bounds else ()),
        f"stopping for what is seen in between is not valid: {PEEKING}",
    ]


def _table_of_looks(bounds: Mapping[int, float]) -> list[str]:
    """Two rows, a column for each look."""
    ps = [word_p(level) for level in bounds.values()]
    blocks = [f"{block:>{len(p)}}" for block, p in zip(bounds, ps, strict=True)]
    return ["  ".join(["check after block", *blocks]), "  ".join(["decides if p ≤   ", *ps])]


def _of_dropped(status: CampaignStatus) -> list[str]:
    if not status.dropped:
        return []
    after, names = max(status.dropped.values()), ", ".join(map(one_line, sorted(status.dropped)))
    return [f"left out after block {after}, since all or none of their trials passed: {names}"]


def _of_halving(status: CampaignStatus) -> str:
    block, names = status.halving_after, status.halved
    if names is None:
        with_them = f"and {plural(status.to_halve, 'trial')} of the table with them"
        return f"treatments are left out after block {block}, {with_them}; nothing later starts until then"
    return f"left out after block {block}, by their pass rates, and not tested: {', '.join(map(one_line, names))}"


def _of_blocks(status: CampaignStatus) -> str:
    blocks = plural(status.looks_taken, "block")
    if status.decided is not None:
        return f"decided after {blocks}: {status.decided}"
    return f"{blocks} looked at, none has decided; the declared contrast may be looked at, and grow, at any time"


def _of_state(status: CampaignStatus) -> list[str]:
    """Who drives the campaign, and what to do next."""
    over = status.state in (State.COMPLETE, State.CANCELLED, State.DECIDED)
    if status.refused is not None and not over and not (status.controller and status.controller.alive):
        return [f"`trialfleet resume` refuses it: {one_line(status.refused)}", GIVE_UP]
    return [*_of_next_step(status), *_of_left_out(status)]


def _of_left_out(status: CampaignStatus) -> list[str]:
    if not status.left_out:
        return []
    return [
        f"{plural(status.left_out, 'trial')} left out as missing data and never run again, since records were "
        f"changed or deleted; {RESTORE}, then `trialfleet resume`"
    ]


def _of_next_step(status: CampaignStatus) -> list[str]:
    match status.state:
        case State.PLANNED:
            return ["nothing has started: `trialfleet run` or `trialfleet submit` drives it"]
        case State.RUNNING | State.CANCELLED if status.controller is not None and status.controller.alive:
            return [f"its controller is alive: {_named(status.controller)}"]
        case State.STALLED if status.controller is not None:
            gone = _named(status.controller)
            first = "fix what halted it, then " if status.halts else ""
            ended = f"its controller has ended: {gone}; pods may still run"
            return ["; ".join((ended, *_of_limits(status), f"{first}{_resume(status)} continues"))]
        case State.HALTED:
            fix = f"fix what halted it, then {_resume(status)}"
            return ["; ".join(("no controller drives it", *_of_limits(status), fix))]
        case State.INCOMPLETE if status.terminal < status.planned:
            return [_of_open(status)]
        case State.INCOMPLETE:
            return ["every trial has ended; those that are abandoned have no measurement"]
        case _:
            return []


def _of_open(status: CampaignStatus) -> str:
    rest = f"trials without an outcome: {status.planned - status.terminal}"
    limits = _of_limits(status)
    if limits:
        return "; ".join((*limits, rest, f"{_resume(status)} starts them"))
    return f"no controller drives it; {rest}; {_resume(status)} continues"


def _of_limits(status: CampaignStatus) -> list[str]:
    return [
        *(["the wall-clock limit is reached"] if status.out_of_time else []),
        *(["the cost cap allows no other trial"] if status.out_of_money else []),
    ]


def _resume(status: CampaignStatus) -> str:
    limits = {"out_of_time": status.out_of_time, "out_of_money": status.out_of_money}
    return word_resume(halted=bool(status.halts), **limits)


def _named(controller: Controller) -> str:
    age = controller.heartbeat_age_s
    last = "" if age is None else f", heartbeat {age:.0f} s ago"
    where = (
        f"process {controller.pid} on {one_line(controller.host)}"
        if controller.host
        else "its record is unreadable"
    )
    return f"{where} (epoch {controller.epoch}{last})"


def _of_rates(status: CampaignStatus) -> list[str]:
    return [
        f"pass rates: {status.complete_blocks} of {plural(status.blocks, 'block')} complete; only these are used,",
        "and each rate is the mean of its tasks' rates; the report may compare fewer tasks",
    ]


def _of_costs(status: CampaignStatus) -> list[str]:
    if status.cost_usd is None:
        return []
    so_far = f"cost: ${status.cost_usd:,.2f} for measured trials"
    over = status.terminal == status.planned or status.state in (State.CANCELLED, State.DECIDED)
    if status.projected_cost_usd is None or over:
        return [so_far]
    return [f"{so_far}, about ${status.projected_cost_usd:,.2f} for all; lost attempts are not counted"]


def _table(status: CampaignStatus, *, rates: bool) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("condition", "planned", "measured", "running", "pending", "abandoned", "attempts lost", "passed")
    ]
    for name, c in status.conditions.items():
        rate = c.interim_rate
        passed = "–" if rate is None else f"{rate:.1%} ({c.interim_passed}/{c.interim_measured})"
        counts = (c.planned, c.measured, c.running, c.pending, c.abandoned, c.lost_attempts)
        rows.append((name, *map(str, counts), passed))
    rows = rows if rates else [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [_row(row, widths) for row in rows]


def _row(cells: Sequence[str], widths: list[int]) -> str:
    first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join((first.strip().ljust(widths[0]), *rest))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
