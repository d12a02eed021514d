"""`status` and `show` name a forged pass, and what a pass rests on apart from the product's changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import records
from tests.support.ledgers import Fate, plan, write
from trialfleet_controller.commands.show import lines_of
from trialfleet_controller.status.campaign_status import read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict


def test_status_counts_forged_trials_by_condition(tmp_path: Path) -> None:
    forged = Fate(verdict=Verdict.FORGED, needed=("assertions.py",))
    store = write(tmp_path, plan(), lambda trial: forged if trial.condition == "none" else Fate())
    shown = lines(read_status(store, "demo"))
    assert "none: 10 of 10 measured trials forged a pass, counted as failed; the report names them" in shown
    assert not [line for line in shown if line.startswith("intent_layer: ")]


@pytest.mark.parametrize(
    ("verdict", "needed", "unsteady", "words"),
    [
        (Verdict.PASSED, (), False, "passed (the agent finished, tests passed)"),
        (
            Verdict.PASSED,
            ("a.py", "b.py"),
            False,
            "passed (the agent finished, tests passed, only with a.py, b.py)",
        ),
        (Verdict.PASSED, (), True, "passed (the agent finished, tests passed, also without any change)"),
        (Verdict.FORGED, ("a\x1b.py",), False, "tests passed, by these files alone a"),
    ],
)
def test_show_says_what_a_pass_rests_on(
    verdict: Verdict, needed: tuple[str, ...], unsteady: bool, words: str
) -> None:
    scored = records.scored(verdict, needed=needed, unsteady=unsteady, tests_passed=True)
    outcome = Outcome(trial=records.trial(), attempts=1, scored=scored)
    text = "\n".join(lines_of(records.TRIAL_ID, (), outcome, None, None, ("attempts",), full=False))
    assert words in text
    assert "\x1b" not in text
