"""What trials may cost, in a sentence that says what the price includes."""

from __future__ import annotations

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
        return f"{said}; attempts that are lost and tried again cost extra, never more than {cap} in all."


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}".removesuffix(".00")
