"""The viewer's page of a trial says what a pass rests on apart from the product's changes."""

from __future__ import annotations

from xml.etree.ElementTree import tostring

import pytest

from tests.support import records
from trialfleet_analysis.report.html.markup import h
from trialfleet_analysis.viewer.pages.trial_page import chips, warnings_of
from trialfleet_analysis.viewer.trial_list import OUTCOMES
from trialfleet_analysis.viewer.trial_record import TrialRecord
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict


@pytest.mark.parametrize(
    ("verdict", "needed", "unsteady", "words"),
    [
        (Verdict.FORGED, ("a<b>.py",), False, "Forged: the tests pass by these files alone, which are not the"),
        (Verdict.PASSED, ("a<b>.py",), False, "The tests pass only with these files, which are not the"),
        (Verdict.PASSED, (), True, "tests also pass without any change"),
    ],
)
def test_a_trial_names_what_its_pass_rests_on(
    verdict: Verdict, needed: tuple[str, ...], unsteady: bool, words: str
) -> None:
    scored = records.scored(verdict, needed=needed, unsteady=unsteady)
    outcome = Outcome(trial=records.trial(), attempts=1, scored=scored)
    record = TrialRecord(records.TRIAL_ID, outcome.trial, outcome, (), 0, None, None, None, None, None, ())
    text = tostring(h("div", chips(record), warnings_of(record)), encoding="unicode")
    assert words in text
    assert "<b>" not in text
    assert verdict in OUTCOMES
