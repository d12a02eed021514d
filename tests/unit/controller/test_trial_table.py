"""The table of a dispatcher's open trials."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.dispatch.trial_table import BUSY, CampaignBudget, OpenTrial, TrialState, TrialTable
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.trial_order import Planned

TRIALS = [Planned(letter * 26, "task", "none", n, 0, n, 0) for n, letter in enumerate("abcd")]


@given(moves=st.lists(st.tuples(st.sampled_from(TRIALS), st.sampled_from([*TrialState, None])), max_size=30))
def test_every_state_can_be_asked_for(moves: list[tuple[Planned, TrialState | None]]) -> None:
    """None: the trial is over."""
    table = TrialTable(TRIALS, blocks_ahead=9, budget=CampaignBudget(cap=None, trial=0.0), metered=())
    places: dict[str, TrialState] = {}
    for trial, place in moves:
        if place is not None:
            table.put(OpenTrial(trial), place)
            places[trial.id] = place
        elif places.pop(trial.id, None) is not None:
            lost = (LossClass.EVICTED,)
            table.conclude(trial, Outcome(trial=trial.record(), attempts=1, abandoned=lost[0], losses=lost))
    for place in TrialState:
        there = {trial for trial, at in places.items() if at is place}
        assert {opened.trial.id for opened in table.in_state(place)} == there
        assert table.count(place) == len(there)
    assert len(table.in_state(*TrialState)) == len(places)
    assert table.busy == sum(Counter(places.values())[place] for place in BUSY)
