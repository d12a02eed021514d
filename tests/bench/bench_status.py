"""`trialfleet status` of a campaign with 10,000 finished trials in a directory store."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.figure import Figure, median_wall, trialfleet
from tests.support.plans import CAMPAIGN, make_plan
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Scored, Stop, Verdict
from trialfleet_ledger.trial_order import trials

TRIALS = 10_000


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        seconds = median_wall(trialfleet("status", CAMPAIGN, "--store", folder), times=5)
    return [Figure(f"status of {TRIALS:,} finished trials", seconds, "s", goal=1.0, note="median of 5")]


def _fill(root: Path) -> None:
    """The files as the controller leaves them; written plainly, for their making is not measured."""
    plan = make_plan(
        tasks=20, conditions=("none", "placebo", "flat_llm", "intent_layer", "preamble_only"), reps=100
    )
    outcomes = root / CAMPAIGN / "outcomes"
    outcomes.mkdir(parents=True)
    (root / CAMPAIGN / "campaign.json").write_bytes(canonical_json(plan))
    for number, trial in enumerate(trials(plan)):
        passed = number % 3 == 0
        scored = Scored(
            verdict=Verdict.PASSED if passed else Verdict.FAILED,
            stop=Stop.FINISHED,
            tests_passed=passed,
            metrics=Metrics(turns=9, tool_calls=14, input_tokens=90_000, output_tokens=2_000, cost_usd=0.31),
            delivery=Delivery(files=("CLAUDE.md",)),
        )
        key = f"attempts/{trial.id}/1/bundle.tar.zst"
        outcome = Outcome(
            trial=trial.record(), attempts=1, scored=scored, bundle=key, bundle_sha256=sha256(trial.id.encode())
        )
        (outcomes / f"{trial.id}.json").write_bytes(canonical_json(outcome))
