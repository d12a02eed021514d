"""A campaign without a fixed end: what its bets have won after each block."""

from __future__ import annotations

import math

from trialfleet_designs.anytime.finding import AnytimeFinding, AnytimeLook
from trialfleet_designs.document.figures import bare_p, decimals, evidence
from trialfleet_designs.document.tables import ReportSection, TableColumn, number, section, table
from trialfleet_designs.protocol import Reported
from trialfleet_ledger.plurals import plural

SHOWN = 20  # rows of a campaign of many blocks


def blocks_section(found: AnytimeFinding, reported: Reported) -> ReportSection:
    """Some blocks, the last one always."""
    alpha = reported.alpha
    every = max(1, math.ceil(len(found.taken) / SHOWN))
    return section(
        "looks",
        "What did the looks say?",
        "This campaign has no fixed end: after every complete block, bets on the declared contrast are settled. A "
        "pair is one trial of each side in a task and block; where there is no difference, a pair that one side "
        f"alone passes favours either with probability ½. E is what a stake of 1 has become: {_bets(found)}. "
        f"Where there is no difference, E ever reaches {1 / alpha:g} in at most {100 * alpha:g}% of campaigns, so "
        "that looking at any time, stopping, and adding reps before the decision are all valid. "
        f"{_left_out(reported, found)}",
        table(
            "What the bets had won" + (f", every {plural(every, 'block')}" if every > 1 else ""),
            [*found.taken[every - 1 : -1 : every], *found.taken[-1:]],
            *COLUMNS,
        ),
    )


COLUMNS: tuple[TableColumn[AnytimeLook], ...] = (
    number("After block", lambda one: one.blocks),
    number("Treatment alone passed", lambda one: one.won),
    number("Control alone passed", lambda one: one.lost),
    number("Equal", lambda one: one.equal),
    number("E", lambda one: evidence(one.log_evidence)),
    number("p, at any look", lambda one: bare_p(one.p_value)),
)


def _bets(found: AnytimeFinding) -> str:
    if found.stake is None:
        return "bets of all sizes, the small ones more often"
    return f"half of it bet {decimals(found.stake)} at a time, as the declared effect asks, half bets of all sizes"


def _left_out(reported: Reported, found: AnytimeFinding) -> str:
    """What limits the guarantee, or is in no pair."""
    said = ["Effects that cancel over the tasks do not reject too often either."]
    if found.broken:
        said.append(
            f"{plural(found.broken, 'pair')} lost a trial: blocks are then settled together, with stakes by which "
            "every task weighs the same. This needs losses that, within a task and a condition, do not depend on "
            "what the trial would have shown."
        )
    if found.open_blocks:
        last = "block" if found.open_blocks == 1 else plural(found.open_blocks, "block")
        said.append(f"The last {last} will be settled together with later ones.")
    if gone := (*found.left, *found.halted):
        said.append(f"Not bet on any more, since they were halted or lost: {', '.join(gone)}.")
    after = reported.after_decision
    if found.ended and after:
        said.append(f"{plural(after, 'trial')} of later blocks ended after the decision, and are in no pair.")
    return " ".join(said)
