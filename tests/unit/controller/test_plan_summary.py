"""What `plan` says first."""

from __future__ import annotations

import pytest

from tests.support.plans import make_plan
from trialfleet_controller.commands.plan import summarise_plan
from trialfleet_ledger.records.agent import Limits

WHAT = "60 trials: 4 tasks under 3 conditions, 5 reps each."


@pytest.mark.parametrize(
    ("each", "cap", "said"),
    [
        (None, None, WHAT),
        (
            2.5,
            None,
            f"{WHAT} At most $150 ($2.50 each); attempts that are lost and tried again cost extra.",
        ),
        (
            2.5,
            1_000,
            f"{WHAT} At most $150 ($2.50 each); attempts that are lost and tried again cost extra, and no "
            "trial starts that might take all of it above $1,000.",
        ),
        (
            2.5,
            100,
            f"{WHAT} At most $150 ($2.50 each), but no trial starts that might take the campaign above $100.",
        ),
    ],
)
def test_trials_and_what_they_may_cost(each: float | None, cap: float | None, said: str) -> None:
    made = make_plan(4, ("none", "flat_llm", "intent_layer"), reps=5, seed=11)
    limits = made.limits.model_copy(update={"cost_usd": each}) if made.limits else Limits(cost_usd=each)
    assert summarise_plan(made.model_copy(update={"limits": limits, "cost_usd_campaign": cap}), 5) == said
