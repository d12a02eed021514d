"""The word before the answer says what the first sentence says, in every state of a campaign."""

from __future__ import annotations

import pytest

from tests.support.random_campaigns import draw_campaign
from trialfleet_analysis.report.verdict_label import label_verdict

SAID = {  # label -> what the first sentence of such an answer may hold
    "Better": (" more often than ",),
    "Worse": (" less often than ",),
    "Alike within the margin": (" is no larger than ",),
    "Undecided": ("No difference was shown between ", " it was not shown that ", "No trend ", "no difference in "),
    "Not finished: no conclusion yet": (" so far", "not valid under monitoring", " it was not shown"),
    "Contradictory": ("no direction can be stated",),
    "No answer": (" no answer", "No answer"),
    "Less": (" less ", " fewer "),
    "More": (" more ",),
    "Rises with the dose": (" rises ", " rose ", "rise"),
    "Falls with the dose": (" falls ", " fell ", "fall"),
    "Worse than the margin": (" it was not shown that ",),
    "Differs by more than the margin": (" it was not shown that ",),
    "Cost more": (" it was not shown that ",),
    "Took more turns": (" it was not shown that ",),
    "Shown": ("On ",),
}
SEEDS = range(66)


@pytest.mark.parametrize("part", range(6))
def test_the_label_is_what_the_first_sentence_says(part: int) -> None:
    seen = set[str]()
    for seed in SEEDS[part::6]:
        report = draw_campaign(seed, largest=3).report
        label = label_verdict(report)
        assert label is not None, seed
        seen.add(label)
        assert any(words in " ".join(report.answer[:2]) for words in SAID[label]), (seed, label, report.answer)
        if label in ("Undecided", "Better", "Worse"):
            assert " is no larger than " not in report.answer[0], (seed, report.answer)
    assert len(seen) >= 2
