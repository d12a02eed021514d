"""The state machine of one trial, over all sequences of events."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trialfleet_controller.lifecycle import (
    Budgets,
    Event,
    IllegalTransition,
    Lost,
    Phase,
    Placed,
    Progress,
    VerdictCommitted,
    advance,
)
from trialfleet_runner.contract import Delivery, LossClass, Metrics, Scored, Stop, Verdict
from trialfleet_runner.retries import FINAL
from trialfleet_runner.stages import Stage

BUDGETS = Budgets(before_agent=3, mid_run=2, scoring=3)


def scored(verdict: Verdict) -> Scored:
    return Scored(
        verdict=verdict,
        stop=Stop.FINISHED,
        tests_passed=verdict is Verdict.PASSED,
        metrics=Metrics(),
        delivery=Delivery(),
    )


losses = st.builds(Lost, st.sampled_from(LossClass), st.sampled_from(Stage))
verdicts = st.sampled_from(Verdict).map(lambda verdict: VerdictCommitted(scored(verdict)))
ends: st.SearchStrategy[Event] = st.one_of(losses, losses, verdicts)


@given(st.lists(ends, max_size=30))
def test_every_history_ends_measured_or_abandoned_or_goes_on(history: list[Event]) -> None:
    now = Progress()
    for end in history:
        if now.terminal:
            break
        now = advance(advance(now, Placed(), budgets=BUDGETS), end, budgets=BUDGETS)
    free = sum(lost.free for lost in now.losses)
    assert now.attempts - free <= 1 + BUDGETS.before_agent + BUDGETS.mid_run + BUDGETS.scoring
    assert (now.phase is Phase.MEASURED) == (now.scored is not None)
    assert (now.phase is Phase.ABANDONED) == (now.abandoned is not None)
    for stage in Stage:
        assert now.lost_in(stage) <= BUDGETS.at(stage) + (now.phase is Phase.ABANDONED)


@given(ends, st.one_of(st.just(Placed()), ends))
def test_terminal_stays_terminal(first: Event, event: Event) -> None:
    now = advance(advance(Progress(), Placed(), budgets=Budgets(0, 0, 0)), first, budgets=Budgets(0, 0, 0))
    assert now.terminal is not (isinstance(first, Lost) and first.free)
    assume(now.terminal)
    with pytest.raises(IllegalTransition):
        advance(now, event, budgets=BUDGETS)


@given(st.one_of(losses, verdicts))
def test_nothing_ends_before_it_is_placed(event: Event) -> None:
    with pytest.raises(IllegalTransition):
        advance(Progress(), event, budgets=BUDGETS)


def test_nothing_is_placed_twice_at_once() -> None:
    running = advance(Progress(), Placed(), budgets=BUDGETS)
    with pytest.raises(IllegalTransition):
        advance(running, Placed(), budgets=BUDGETS)


@pytest.mark.parametrize(("stage", "budget"), [(stage, BUDGETS.at(stage)) for stage in Stage])
def test_each_stage_has_its_own_budget_of_retries(stage: Stage, budget: int) -> None:
    now = Progress()
    for n in range(budget + 1):
        assert not now.terminal, n
        now = advance(now, Placed(), budgets=BUDGETS)
        now = advance(now, Lost(LossClass.EVICTED, stage), budgets=BUDGETS)
    assert now.phase is Phase.ABANDONED
    assert now.abandoned is LossClass.EVICTED
    assert len(now.losses) == budget + 1


def test_losses_of_one_stage_do_not_spend_anothers_budget() -> None:
    now = Progress()
    for stage in (Stage.BEFORE_AGENT, Stage.MID_RUN, Stage.AFTER_PATCH, Stage.BEFORE_AGENT, Stage.MID_RUN):
        now = advance(advance(now, Placed(), budgets=BUDGETS), Lost(LossClass.EVICTED, stage), budgets=BUDGETS)
        assert not now.terminal
    now = advance(now, Placed(), budgets=BUDGETS)
    assert advance(now, Lost(LossClass.EVICTED, Stage.MID_RUN), budgets=BUDGETS).terminal


@pytest.mark.parametrize("loss", sorted(FINAL))
def test_some_losses_are_never_retried(loss: LossClass) -> None:
    now = advance(Progress(), Placed(), budgets=BUDGETS)
    assert advance(now, Lost(loss, Stage.BEFORE_AGENT), budgets=BUDGETS).abandoned is loss


@given(st.lists(losses, max_size=6), losses)
def test_the_retry_decision_sees_losses_only(before: list[Lost], loss: Lost) -> None:
    """Neither condition, task nor an outcome is an argument: the same losses decide the same, in any order."""
    one = Progress(losses=tuple(before))
    other = Progress(losses=tuple(reversed(before)), attempts=99)
    assert BUDGETS.allow(one, loss) == BUDGETS.allow(other, loss)


def test_a_place_that_was_never_found_is_never_charged() -> None:
    """However often the cluster had no room, it is not what abandons a trial."""
    now, none = Progress(), Budgets(0, 0, 0)
    for _ in range(50):
        now = advance(
            advance(now, Placed(), budgets=none), Lost(LossClass.UNSCHEDULABLE, Stage.BEFORE_AGENT), budgets=none
        )
    assert now.phase is Phase.WAITING
    begun = Lost(LossClass.UNSCHEDULABLE, Stage.MID_RUN)
    assert advance(advance(now, Placed(), budgets=none), begun, budgets=none).phase is Phase.ABANDONED
