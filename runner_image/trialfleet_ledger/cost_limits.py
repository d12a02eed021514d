"""What trials may cost, in a sentence that says what the price includes."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CostLimits:
    """US dollars, of one trial and of the whole campaign. None: there is no such limit."""

    trial: float | None = None
    campaign: float | None = None

    def describe(self, trials: int) -> str:
        """Empty without a limit for one trial.

        >>> CostLimits(trial=2).describe(140)
        'At most $280 ($2 each); attempts that are lost and tried again cost extra.'
        >>> CostLimits(trial=2, campaign=500).describe(140)  # doctest: +NORMALIZE_WHITESPACE
        'At most $280 ($2 each); attempts that are lost and tried again cost extra, and no trial starts that might
        take all of it above $500.'
        >>> CostLimits(trial=2.5, campaign=100).describe(140)
        'At most $350 ($2.50 each), but no trial starts that might take the campaign above $100.'
        """
        if self.trial is None:
            return ""
        total = trials * self.trial
        said = f"At most {_dollars(total)} ({_dollars(self.trial)} each)"
        if self.campaign is None:
            return f"{said}; attempts that are lost and tried again cost extra."
        cap = _dollars(self.campaign)
        if self.campaign < total:
            return f"{said}, but no trial starts that might take the campaign above {cap}."
        extra = "attempts that are lost and tried again cost extra"
        return f"{said}; {extra}, and no trial starts that might take all of it above {cap}."


def _dollars(amount: float) -> str:
    """Never rounded to less than may be spent.

    >>> [_dollars(amount) for amount in (280.0, 2.5, 0.0333, 1234.5678)]
    ['$280', '$2.50', '$0.0333', '$1,234.57']
    """
    cents = math.ceil(round(amount * 100, 6))
    return (
        f"${amount:,.4g}" if amount < 1 and cents != amount * 100 else f"${cents / 100:,.2f}".removesuffix(".00")
    )
