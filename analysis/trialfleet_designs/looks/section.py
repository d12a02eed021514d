"""Declared looks: what each saw and decided."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_designs.document.figures import NOTHING, bare_p, decimals, percent, signed
from trialfleet_designs.document.tables import Cell, ReportSection, number, section, table, text
from trialfleet_designs.looks.finding import LookFinding, LooksFinding
from trialfleet_ledger.designs.looks import PEEKING
from trialfleet_ledger.plurals import plural

DECISIONS = {
    "continue": "went on",
    "benefit": "stopped: benefit",
    "harm": "stopped: harm",
    "futility": "stopped: futility",
    "end": "the end",
}


def looks_section(found: LooksFinding) -> ReportSection:
    """No table where none was taken."""
    planned = plural(len(found.planned), "look")
    at = ", ".join(map(str, found.planned))
    revised = "" if found.revised_from is None else ", spaced again once the reps were re-estimated"
    return section(
        "looks",
        "What did the looks say?",
        f"{planned} declared before anything ran{revised}, after blocks {at}; "
        f"spending {found.spending.replace('_', ' ')}. "
        "Each tests the declared contrast exactly, on the blocks up to it, and its decision is kept in the store. "
        f"{_deciding(found.levels)}. Looking at other times is recorded, and stopping for "
        f"what is seen then is not valid: {PEEKING}.{_reestimated(found)}{_dropping(found)}{_others(found)}",
        table(
            "What each look decided",
            found.taken,
            number("Look", lambda one: one.number),
            number("After block", lambda one: one.blocks),
            number("Passes above those expected", lambda one: signed(one.total - one.mean, 1)),
            number("Rejects below", lambda one: _bound(one, one.lower)),
            number("Rejects above", lambda one: _bound(one, one.upper)),
            number("p", lambda one: bare_p(one.p_value)),
            number("May be spent", lambda one: decimals(one.level, 4)),
            number(_chance_of(found), lambda one: percent(one.chance)),
            text("Decision", _decision),
        ),
    )


def _deciding(levels: Sequence[float]) -> str:
    at = ", ".join(decimals(level, 4) for level in levels)
    if len(levels) == 1:
        return f"The look decides when its p is at most {at}"
    return f"Looks decide when their p is at most {at}, in this order"


def _chance_of(found: LooksFinding) -> str:
    return f"Chance of a gain{' or harm, the larger,' if found.futility == 'both' else ''} at the end"


def _reestimated(found: LooksFinding) -> str:
    if not found.reestimate_after:
        return ""
    by = f" at the look after block {found.reestimate_after}, from the pass rates over both sides together"
    if found.revised_from is None:
        return f" The reps are re-estimated{by}; that look has not been taken."
    return (
        f" {plural(found.revised_from, 'rep')} were planned, and {found.planned[-1]} re-estimated{by}: as many as "
        "give one test at the end a power of 80% at the declared effect, within the declared cap. Looks, and what "
        "they may spend, are those of the re-estimated reps from that look on."
    )


def _dropping(found: LooksFinding) -> str:
    """What was declared about saturated tasks, and what came of it."""
    if not found.drop_after:
        return ""
    rule = (
        f" After block {found.drop_after} tasks of which all or none of all conditions' trials passed get no more"
    )
    if found.dropped:
        return f"{rule}: {plural(len(found.dropped), 'task')} since then."
    seen = any(one.blocks == found.drop_after and one.verdict == "continue" for one in found.taken)
    return f"{rule}: there was none." if seen else f"{rule}; no task has been left out."


def _others(found: LooksFinding) -> str:
    if found.ended in (None, "end"):
        return ""
    return (
        " Every other contrast was stopped early for this one: its p on these tasks is a sequential p, by the same"
        " looks on its own trials."
    )


def _bound(one: LookFinding, at: float | None) -> str:
    """Given the margins, the totals from which on the look rejects."""
    return NOTHING if at is None else signed(at - one.mean, 1)


def _decision(one: LookFinding) -> Cell:
    if not one.obeyed:
        return "futility, and the operator went on"
    return DECISIONS[one.verdict]
