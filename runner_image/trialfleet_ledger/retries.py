"""Decides which losses are retried: the rule of the controller, which a report checks again."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.stage_reached import Stage

# Never retried, at any stage: the operator's request, and a measurement that was made but cannot be trusted
# (running it again would be a second draw).
FINAL = frozenset({LossClass.CANCELLED, LossClass.QUARANTINED})

# Losses of machine and store: before the agent they spend no budget, or a full disk would abandon a campaign.
# The dispatcher stops if they follow each other.
MACHINE = frozenset({LossClass.HOST_FULL, LossClass.STORE, LossClass.UNSAVED})

# No attempt was made: the campaign is wider than its cluster, whose size changes.
UNCHARGED = MACHINE | {LossClass.UNSCHEDULABLE}

# The infrastructure removed the attempt. No agent can cause these. A loss that an agent could cause (`overuse`,
# `terminated`…) spends `mid_run`; otherwise an agent could try until it passes.
DISRUPTIONS = frozenset({LossClass.EVICTED, LossClass.NODE_LOST})

# How many runs of a trial's agent the operator may interrupt and have repeated. No plan sets it: an operator who
# watches a campaign could otherwise repeat trials that look bad until they pass.
INTERRUPTIONS = 2


class RetryBudget(StrEnum):
    """What a loss spends. The values are the names of the fields of the plan's `retries`, but for `INTERRUPTIONS`,
    which no plan sets."""

    BEFORE_AGENT = "before_agent"
    MID_RUN = "mid_run"
    SCORING = "scoring"
    DISRUPTIONS = "disruptions"
    INTERRUPTIONS = "interruptions"

    def size(self, retries: RetrySpec) -> int:
        """How many losses may spend it in one trial."""
        size: int = INTERRUPTIONS if self is RetryBudget.INTERRUPTIONS else getattr(retries, self.value)
        return size


_OF_STAGE = {
    Stage.BEFORE_AGENT: RetryBudget.BEFORE_AGENT,
    Stage.MID_RUN: RetryBudget.MID_RUN,
    Stage.AFTER_PATCH: RetryBudget.SCORING,
}


def budget_of(loss: LossClass, stage: Stage) -> RetryBudget | None:
    """Which budget the loss spends; None: none.

    >>> budget_of(LossClass.EVICTED, Stage.MID_RUN).value, budget_of(LossClass.RUNNER, Stage.MID_RUN).value
    ('disruptions', 'mid_run')
    >>> budget_of(LossClass.STORE, Stage.BEFORE_AGENT), budget_of(LossClass.STORE, Stage.MID_RUN).value
    (None, 'mid_run')

    An interruption spends only its own budget, and only where the agent's run is thrown away: nothing is drawn
    again before the agent starts, nor when a stored patch is scored.

    >>> [budget_of(LossClass.INTERRUPTED, stage) for stage in (Stage.BEFORE_AGENT, Stage.AFTER_PATCH)]
    [None, None]
    """
    if loss is LossClass.INTERRUPTED:
        return RetryBudget.INTERRUPTIONS if stage is Stage.MID_RUN else None
    if stage is Stage.BEFORE_AGENT and loss in UNCHARGED:
        return None
    if stage in (Stage.MID_RUN, Stage.AFTER_PATCH) and loss in DISRUPTIONS:
        return RetryBudget.DISRUPTIONS
    return _OF_STAGE.get(stage)


def may_follow(
    loss: LossClass, stage: Stage, *, earlier: Iterable[tuple[LossClass, Stage]], retries: RetrySpec
) -> bool:
    """Whether an attempt may follow one that was lost so. `earlier`: the trial's losses before it.

    >>> evicted = (LossClass.EVICTED, Stage.MID_RUN)
    >>> may_follow(*evicted, earlier=[evicted] * 2, retries=RetrySpec(disruptions=2))
    False
    """
    if loss in FINAL or stage is Stage.UNKNOWN:
        return False
    budget = budget_of(loss, stage)
    return budget is None or sum(budget_of(*one) is budget for one in earlier) < budget.size(retries)
