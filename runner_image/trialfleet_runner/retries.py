"""Which losses another attempt may follow: the rule by which the controller retries and a report checks."""

from __future__ import annotations

from trialfleet_runner.contract import LossClass

# Lost for good whatever the stage: the operator's wish, and a measurement that was made but cannot be trusted
# (running it again would be a re-roll).
FINAL = frozenset({LossClass.CANCELLED, LossClass.QUARANTINED})

# The machine's and the store's: before the agent they spend no budget, else a full disk would abandon a campaign.
# The dispatcher stops when they come in a row.
MACHINE = frozenset({LossClass.HOST_FULL, LossClass.STORE})

# Nothing was tried: the campaign is wider than its cluster, whose nodes come and go.
UNCHARGED = MACHINE | {LossClass.UNSCHEDULABLE}


def free(loss: LossClass, *, before_agent: bool) -> bool:
    """Whether the loss spends none of its stage's budget.

    >>> free(LossClass.STORE, before_agent=True), free(LossClass.STORE, before_agent=False)
    (True, False)
    """
    return before_agent and loss in UNCHARGED


def may_follow(loss: LossClass, *, before_agent: bool, spent: int, budget: int) -> bool:
    """Whether an attempt may follow one that was lost so. `spent`: earlier losses of its stage that were not free;
    `budget`: the retries of that stage.

    >>> may_follow(LossClass.EVICTED, before_agent=False, spent=2, budget=2)
    False
    """
    return loss not in FINAL and (free(loss, before_agent=before_agent) or spent < budget)
