"""What bets on a campaign's pairs have won: evidence that multiplies over campaigns."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_ledger.designs.looks import Verdict
from trialfleet_statistics.estimates import Interval


@dataclass(frozen=True)
class PairEvidence:
    """`log_evidence`: ln E after `blocks`, the last look; `p_value`: the campaign's own, of its largest evidence;
    `difference`: with its confidence sequence; `broken`: pairs of which a trial has no verdict; `side`: which the
    bets favour, 1 the treatment; `ended`: why the campaign is over, None while it may go on."""

    tasks: int
    blocks: int
    won: int
    lost: int
    equal: int
    broken: int
    side: int
    halted: tuple[str, ...]
    log_evidence: float
    p_value: float | None
    difference: Interval
    ended: Verdict | None
