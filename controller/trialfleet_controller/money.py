"""The campaign's cost cap, by reservation: what runs may cost the most a trial may. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trialfleet_controller.fold import Chain
from trialfleet_runner.contract import Scored


@dataclass(frozen=True, slots=True)
class Purse:
    """US dollars. `cap`: of the campaign, None: none; `trial`: the most an agent's run may cost."""

    cap: float | None
    trial: float
    spent: float = 0.0

    def allows(self, running: int) -> bool:
        """Whether one more may start beside `running` others."""
        return self.cap is None or self.spent + (running + 1) * self.trial <= self.cap + 1e-9

    def charged(self, cost: float) -> Purse:
        return replace(self, spent=self.spent + cost)

    def price(self, agent_runs: int, scored: Scored | None) -> float:
        """Of one trial: the last run's cost as measured, every other at the most it can have been (a lost attempt
        reports none)."""
        if agent_runs == 0:
            return 0.0
        known = scored.metrics.cost_usd if scored is not None else None
        return agent_runs * self.trial if known is None else known + (agent_runs - 1) * self.trial

    def cost(self, chain: Chain) -> float:
        """Of one trial's attempts that are over, from their ends alone: whoever reads them, whenever."""
        ends = [(attempt, attempt.end) for attempt in chain if attempt.end is not None]
        runs = sum(
            not attempt.intent.score_only and (end.loss is None or end.loss.agent_started) for attempt, end in ends
        )
        return self.price(runs, ends[-1][1].scored if ends else None)
