"""Crashed agents: from how many on a reader is warned, and when a condition halts for them. Pure.

The runner decides once whether an agent crashed (`trialfleet_runner.attempt.crash`) and records it as its `Stop`.
"""

from __future__ import annotations

from collections.abc import Iterable

from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Stop

CRASHED = "crashed before it began to work"
FIRST_TRIALS = 3  # of a condition: when all of them crashed, it halts
_FEWEST = 2
_PERCENT = 3


def needs_caution(crashed: int, measured: int) -> bool:
    """Whether so many of a condition's measured trials are worth a warning: two or more, and more than 3%.

    >>> needs_caution(1, 1), needs_caution(2, 66), needs_caution(2, 67), needs_caution(3, 100)
    (False, True, False, False)
    """
    return crashed >= _FEWEST and 100 * crashed > _PERCENT * measured


def begins_with_crashes(outcomes: Iterable[Outcome | None]) -> bool:
    """Whether the agent crashed in each of the first three measured trials. `outcomes`: of one condition's trials
    in launch order; None: not over yet.

    Launch order, not the order of arrival, so that every controller decides alike. A crash is quick: by arrival, a
    condition whose other agents still work could halt.
    """
    crashes = 0
    for outcome in outcomes:
        if outcome is None:
            return False
        if outcome.scored is None:
            continue
        if outcome.scored.stop is not Stop.CRASHED:
            return False
        crashes += 1
        if crashes == FIRST_TRIALS:
            return True
    return False


def reason_to_halt(condition: str) -> str:
    """For the operator; always the same text for a condition."""
    return (
        f"agent: in each of the first {FIRST_TRIALS} measured trials of condition {condition} it {CRASHED}; "
        "`trialfleet logs` of such a trial shows what it printed. Fix the agent, or the settings that the "
        "condition gives it, and start a campaign of another name; if this is intended, "
        "`trialfleet resume --lift` continues and never halts the condition for it again"
    )
