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

# The infrastructure removed the attempt, as the API server says. A loss that an agent could cause (`overuse`,
# `terminated`…, a second lost node) spends `mid_run`; otherwise an agent could try until it passes.
DISRUPTIONS = frozenset({LossClass.EVICTED, LossClass.NODE_LOST})

# How many runs of a trial's agent the operator may interrupt and have repeated. No plan sets it: an operator who
# watches a campaign could otherwise repeat trials that look bad until they pass.
INTERRUPTIONS = 2

# How often the agent of a trial runs again because the model provider gave up. No plan sets it.
PROVIDER_REDRAWS = 1


class RetryBudget(StrEnum):
    """What a loss spends. The values are the names of the fields of the plan's `retries`, but for `INTERRUPTIONS`
    and `PROVIDER_REDRAWS`, which no plan sets."""

    BEFORE_AGENT = "before_agent"
    MID_RUN = "mid_run"
    SCORING = "scoring"
    DISRUPTIONS = "disruptions"
    INTERRUPTIONS = "interruptions"
    PROVIDER_REDRAWS = "provider_redraws"

    def size(self, retries: RetrySpec) -> int:
        """How many losses may spend it in one trial."""
        if self is RetryBudget.INTERRUPTIONS:
            return INTERRUPTIONS
        if self is RetryBudget.PROVIDER_REDRAWS:
            return min(PROVIDER_REDRAWS, retries.mid_run)
        size: int = getattr(retries, self.value)
        return size


_OF_STAGE = {
    Stage.BEFORE_AGENT: RetryBudget.BEFORE_AGENT,
    Stage.MID_RUN: RetryBudget.MID_RUN,
    Stage.AFTER_PATCH: RetryBudget.SCORING,
}


def budget_of(loss: LossClass, stage: Stage) -> RetryBudget | None:
    """Which budget the loss spends; None: none. A second lost node of a trial spends another (`may_follow`).

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
    if stage is Stage.MID_RUN and loss is LossClass.PROVIDER:
        return RetryBudget.PROVIDER_REDRAWS
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

    The first node that is lost under an agent is a disruption; each further one spends `mid_run`, because an agent
    that breaks nodes would otherwise have twenty more tries.

    >>> lost = (LossClass.NODE_LOST, Stage.MID_RUN)
    >>> [may_follow(*lost, earlier=[lost] * n, retries=RetrySpec(mid_run=2)) for n in range(4)]
    [True, True, True, False]
    """
    if loss in FINAL or stage is Stage.UNKNOWN:
        return False
    before, budget = list(earlier), budget_of(loss, stage)
    if (loss, stage) == _NODE and _NODE in before:
        budget = RetryBudget.MID_RUN
    return budget is None or _spent(budget, before) < budget.size(retries)


_NODE = (LossClass.NODE_LOST, Stage.MID_RUN)


def _spent(budget: RetryBudget, losses: list[tuple[LossClass, Stage]]) -> int:
    """How many of the losses spent the budget, in any order."""
    further = max(0, losses.count(_NODE) - 1)
    moved = {RetryBudget.DISRUPTIONS: -further, RetryBudget.MID_RUN: further}.get(budget, 0)
    return moved + sum(budget_of(*one) is budget for one in losses)
