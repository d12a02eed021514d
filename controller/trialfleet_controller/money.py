"""The campaign's cost cap, by reservation: what runs may cost the most a trial may. Pure values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trialfleet_runner.campaign import Plan
from trialfleet_runner.contract import Outcome, Scored


@dataclass(frozen=True, slots=True)
class Purse:
    """US dollars. `cap`: of the campaign, None: none; `trial`: the most an agent's run may cost."""

    cap: float | None
    trial: float
    spent: float = 0.0

    @staticmethod
    def of(plan: Plan) -> Purse:
        return Purse(plan.cost_usd_campaign, plan.limits.cost_usd or 0.0)

    def allows(self, running: int) -> bool:
        """Whether one more may start beside `running` others."""
        return self.cap is None or self.spent + (running + 1) * self.trial <= self.cap + 1e-9

    def paid(self, agent_runs: int, scored: Scored | None, *, metered: bool) -> Purse:
        """After a trial's attempts: the last run's cost as measured, every other at the most it can have been
        (a lost attempt reports none). `metered`: the agent buys from a model provider at all."""
        if not metered or agent_runs == 0:
            return self
        known = scored.metrics.cost_usd if scored is not None else None
        cost = agent_runs * self.trial if known is None else known + (agent_runs - 1) * self.trial
        return replace(self, spent=self.spent + cost)


def settled(purse: Purse, outcomes: Iterable[Outcome], agent_runs: dict[str, int], *, metered: bool) -> Purse:
    """The purse after what earlier controllers spent on finished trials."""
    for outcome in outcomes:
        purse = purse.paid(agent_runs.get(outcome.trial.id, 0), outcome.scored, metered=metered)
    return purse
