"""Small campaigns with given passes per task, as a store and as a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.ledgers import MID_RUN, Fate, plan, read, write
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict

TREATMENT, CONTROL = "placebo", "none"
PRIMARY = Primary(treatment=TREATMENT, control=CONTROL)
DEMO_LIKE = {"setext": (0, 0), "abbr": (5, 5), "sqlparse": (3, 0), "mistune": (0, 0)}
LOST = Fate(verdict=None, losses=(MID_RUN,) * 3)


def weak(
    root: Path,
    passes: Mapping[str, tuple[int, int]],
    *,
    reps: int = 5,
    valid: Mapping[str, tuple[int, int]] | None = None,
    primary: Primary | None = PRIMARY,
    cost_usd: float | None = None,
) -> Report:
    """`passes` of treatment and control; `valid`: trials that were not lost, where some were; `cost_usd`: of a
    trial."""
    metrics = Metrics(cost_usd=cost_usd)

    def fate(trial: Trial) -> Fate:
        arm = 0 if trial.condition == TREATMENT else 1
        if valid is not None and trial.rep >= valid[trial.task][arm]:
            return LOST
        passed = trial.rep < passes[trial.task][arm]
        return Fate(Verdict.PASSED if passed else Verdict.FAILED, metrics=metrics)

    return read(write(root, plan(tuple(passes), (TREATMENT, CONTROL), reps=reps, primary=primary), fate))
