"""The state machine of one trial, over all sequences of events."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import records
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.lifecycle import (
    AttemptLost,
    Event,
    IllegalTransition,
    Placed,
    TrialPhase,
    TrialProgress,
    VerdictCommitted,
    advance,
)
from trialfleet_ledger.records.verdicts import LossClass, Scored, Verdict
from trialfleet_ledger.retries import DISRUPTIONS, FINAL, UNCHARGED, RetryBudget, budget_of, may_follow
from trialfleet_ledger.stage_reached import Stage

RETRIES = RetrySpec(before_agent=3, mid_run=2, scoring=3, disruptions=4)
NONE = RetrySpec(before_agent=0, mid_run=0, scoring=0, disruptions=0)


def scored(verdict: Verdict) -> Scored:
    return records.scored(verdict)


losses = st.builds(AttemptLost, st.sampled_from(LossClass), st.sampled_from(Stage))
verdicts = st.sampled_from(Verdict).map(lambda verdict: VerdictCommitted(scored(verdict)))
ends: st.SearchStrategy[Event] = st.one_of(losses, losses, verdicts)


@given(st.lists(ends, max_size=30))
def test_every_history_ends_measured_or_abandoned_or_goes_on(history: list[Event]) -> None:
    now = TrialProgress()
    for end in history:
        if now.terminal:
            break
        now = advance(advance(now, Placed(), retries=RETRIES), end, retries=RETRIES)
    spent = [budget_of(lost.loss, lost.stage) for lost in now.losses]
    allowed = {budget: budget.size(RETRIES) for budget in RetryBudget}
    assert now.attempts - spent.count(None) <= 1 + sum(allowed.values())
    assert (now.phase is TrialPhase.MEASURED) == (now.scored is not None)
    assert (now.phase is TrialPhase.ABANDONED) == (now.abandoned is not None)
    allowed[RetryBudget.DISRUPTIONS] += RETRIES.mid_run  # lost nodes after the first
    for budget in RetryBudget:
        assert spent.count(budget) <= allowed[budget] + (now.phase is TrialPhase.ABANDONED)


@given(ends, st.one_of(st.just(Placed()), ends))
def test_terminal_stays_terminal(first: Event, event: Event) -> None:
    now = advance(advance(TrialProgress(), Placed(), retries=NONE), first, retries=NONE)
    free = isinstance(first, AttemptLost) and may_follow(first.loss, first.stage, earlier=(), retries=NONE)
    if isinstance(first, AttemptLost) and first.loss is not LossClass.INTERRUPTED:
        assert free is (first.loss in UNCHARGED and first.stage is Stage.BEFORE_AGENT)
    assert now.terminal is not free
    assume(now.terminal)
    with pytest.raises(IllegalTransition):
        advance(now, event, retries=RETRIES)


@given(st.one_of(losses, verdicts))
def test_nothing_ends_before_it_is_placed(event: Event) -> None:
    with pytest.raises(IllegalTransition):
        advance(TrialProgress(), event, retries=RETRIES)


def test_nothing_is_placed_twice_at_once() -> None:
    running = advance(TrialProgress(), Placed(), retries=RETRIES)
    with pytest.raises(IllegalTransition):
        advance(running, Placed(), retries=RETRIES)


def after(*losses: AttemptLost) -> TrialProgress:
    now = TrialProgress()
    for lost in losses:
        assert not now.terminal, lost
        now = advance(advance(now, Placed(), retries=RETRIES), lost, retries=RETRIES)
    return now


@pytest.mark.parametrize(
    ("lost", "budget"),
    [
        (AttemptLost(LossClass.EVICTED, Stage.BEFORE_AGENT), RETRIES.before_agent),
        (AttemptLost(LossClass.TERMINATED, Stage.BEFORE_AGENT), RETRIES.before_agent),
        (AttemptLost(LossClass.TERMINATED, Stage.MID_RUN), RETRIES.mid_run),
        (AttemptLost(LossClass.OVERUSE, Stage.MID_RUN), RETRIES.mid_run),
        (AttemptLost(LossClass.EVICTED, Stage.MID_RUN), RETRIES.disruptions),
        (AttemptLost(LossClass.NODE_LOST, Stage.MID_RUN), 1 + RETRIES.mid_run),
        (AttemptLost(LossClass.NODE_LOST, Stage.AFTER_PATCH), RETRIES.disruptions),
        (AttemptLost(LossClass.PROVIDER, Stage.MID_RUN), 1),
        (AttemptLost(LossClass.SCORING, Stage.AFTER_PATCH), RETRIES.scoring),
        (AttemptLost(LossClass.EVICTED, Stage.AFTER_PATCH), RETRIES.disruptions),
        (AttemptLost(LossClass.INTERRUPTED, Stage.MID_RUN), 2),
        (AttemptLost(LossClass.EVICTED, Stage.UNKNOWN), 0),
    ],
)
def test_each_budget_gives_so_many_retries(lost: AttemptLost, budget: int) -> None:
    now = after(*[lost] * (budget + 1))
    assert now.phase is TrialPhase.ABANDONED
    assert now.abandoned is lost.loss
    assert len(now.losses) == budget + 1


@given(st.lists(losses, max_size=12), st.sampled_from(sorted(DISRUPTIONS)), st.sampled_from(sorted(LossClass)))
def test_disruptions_and_other_losses_do_not_spend_each_others_budgets(
    history: list[AttemptLost], disruption: LossClass, other: LossClass
) -> None:
    """A disruption after the agent began is decided by earlier disruptions alone, any other loss by the others.
    Nodes that are lost under the agent are in both budgets."""
    lost_node = AttemptLost(LossClass.NODE_LOST, Stage.MID_RUN)
    history = [one for one in history if one != lost_node]

    def disrupted(lost: AttemptLost) -> bool:
        return lost.loss in DISRUPTIONS and lost.stage in (Stage.MID_RUN, Stage.AFTER_PATCH)

    for lost in (
        AttemptLost(disruption, Stage.MID_RUN),
        AttemptLost(disruption, Stage.AFTER_PATCH),
        AttemptLost(other, Stage.MID_RUN),
    ):
        same = tuple(
            one
            for one in history
            if disrupted(one) == disrupted(lost)
            and (one.loss is LossClass.INTERRUPTED) == (lost.loss is LossClass.INTERRUPTED)
        )
        whole = lost.may_be_followed(TrialProgress(losses=tuple(history)), RETRIES)
        assert whole == lost.may_be_followed(TrialProgress(losses=same), RETRIES)


@pytest.mark.parametrize(("loss", "times"), [(LossClass.EVICTED, 20), (LossClass.NODE_LOST, 3)])
def test_reclaims_abandon_nothing_by_default(loss: LossClass, times: int) -> None:
    now = TrialProgress()
    for _ in range(times):
        reclaimed = AttemptLost(loss, Stage.MID_RUN)
        now = advance(advance(now, Placed(), retries=RetrySpec()), reclaimed, retries=RetrySpec())
    assert now.phase is TrialPhase.WAITING


@pytest.mark.parametrize("loss", sorted(FINAL))
def test_some_losses_are_never_retried(loss: LossClass) -> None:
    now = advance(TrialProgress(), Placed(), retries=RETRIES)
    assert advance(now, AttemptLost(loss, Stage.BEFORE_AGENT), retries=RETRIES).abandoned is loss


@given(st.lists(losses, max_size=6), losses)
def test_the_retry_decision_sees_losses_only(before: list[AttemptLost], loss: AttemptLost) -> None:
    """Neither condition, task nor an outcome is an argument: the same losses decide the same, in any order."""
    one = TrialProgress(losses=tuple(before))
    other = TrialProgress(losses=tuple(reversed(before)), attempts=99)
    assert loss.may_be_followed(one, RETRIES) == loss.may_be_followed(other, RETRIES)


def test_a_place_that_was_never_found_is_never_charged() -> None:
    """However often the cluster had no room, it is not what abandons a trial."""
    now = TrialProgress()
    for _ in range(50):
        now = advance(
            advance(now, Placed(), retries=NONE),
            AttemptLost(LossClass.UNSCHEDULABLE, Stage.BEFORE_AGENT),
            retries=NONE,
        )
    assert now.phase is TrialPhase.WAITING
    begun = AttemptLost(LossClass.UNSCHEDULABLE, Stage.MID_RUN)
    assert advance(advance(now, Placed(), retries=NONE), begun, retries=NONE).phase is TrialPhase.ABANDONED


@given(st.lists(losses, max_size=12), st.sampled_from(sorted(LossClass)), st.sampled_from(sorted(Stage)))
def test_interruptions_and_all_other_losses_do_not_spend_each_others_budgets(
    history: list[AttemptLost], loss: LossClass, reached: Stage
) -> None:
    lost, interrupted = AttemptLost(loss, reached), loss is LossClass.INTERRUPTED
    same = tuple(one for one in history if (one.loss is LossClass.INTERRUPTED) == interrupted)
    whole = lost.may_be_followed(TrialProgress(losses=tuple(history)), RETRIES)
    assert whole == lost.may_be_followed(TrialProgress(losses=same), RETRIES)


@pytest.mark.parametrize("reached", [Stage.BEFORE_AGENT, Stage.AFTER_PATCH])
def test_an_interruption_that_repeats_no_run_of_the_agent_abandons_nothing(reached: Stage) -> None:
    """Otherwise an operator could make a trial missing whose patch is stored already."""
    now = after(*[AttemptLost(LossClass.INTERRUPTED, reached)] * 30)
    assert now.phase is TrialPhase.WAITING


def test_the_third_interrupted_run_abandons_the_trial_whatever_the_plan_says() -> None:
    interrupted, generous = AttemptLost(LossClass.INTERRUPTED, Stage.MID_RUN), RetrySpec(mid_run=20)
    now = TrialProgress()
    for _ in range(3):
        assert not now.terminal
        now = advance(advance(now, Placed(), retries=generous), interrupted, retries=generous)
    assert now.abandoned is LossClass.INTERRUPTED
