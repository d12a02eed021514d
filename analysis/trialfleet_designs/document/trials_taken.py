"""What an answer took."""

from __future__ import annotations

from trialfleet_designs.comparison.columns import TrialsTaken
from trialfleet_designs.document.figures import quantity
from trialfleet_ledger.plurals import plural


def trials_taken(found: TrialsTaken) -> str:
    """All that ran, and their money: as far as it is known.

    >>> trials_taken(TrialsTaken(28, 12.5, 3))
    '28 trials and $12.50 (3 of them left no cost)'
    """
    trials = plural(found.trials, "trial")
    if not found.cost_usd:
        return trials
    some = f" ({found.unpriced:,} of them left no cost)" if found.unpriced else ""
    return f"{trials} and {quantity(found.cost_usd, 'usd')}{some}"
