"""Finished campaigns whose counts are given: passes and trials of a treatment and a control, by task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.ledgers import MID_RUN, Fate, plan, write
from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.make import make_combination
from trialfleet_analysis.source import CampaignSource
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore

TREATMENT, CONTROL = "intent_layer", "none"
Passes = Sequence[tuple[int, int]]  # of the treatment, of the control; one entry per task

ONE: Passes = [(5, 2), (3, 3), (4, 1), (2, 0)]
TWO: Passes = [(4, 3), (5, 2), (2, 2), (1, 0)]


def campaign(name: str, passes: Passes, *, reps: int = 5, uid: str | None = None, **fields: Any) -> Plan:
    """Its plan. `fields`: of the plan."""
    declared = fields.pop("primary", Primary(treatment=TREATMENT, control=CONTROL))
    tasks = [f"task-{number}" for number in range(len(passes))]
    frozen = plan(tasks, (CONTROL, TREATMENT), name=name, reps=reps, primary=declared)
    return frozen.model_copy(update={"uid": uid or name.encode().hex().ljust(32, "0")[:32], **fields})


def ran(root: Path, frozen: Plan, passes: Passes, *, lost: frozenset[tuple[str, str, int]] = frozenset()) -> None:
    """Its trials: the first reps of a cell pass. `lost`: those of them without a verdict."""

    def fate(trial: Trial) -> Fate:
        if (trial.task, trial.condition, trial.rep) in lost:
            return Fate(verdict=None, losses=(MID_RUN,) * 3)
        wanted = passes[int(trial.task.rpartition("-")[2])][trial.condition == CONTROL]
        return Fate(verdict=Verdict.PASSED if trial.rep < wanted else Verdict.FAILED)

    write(root, frozen, fate)


def made(root: Path, name: str, passes: Passes, **fields: Any) -> CampaignSource:
    ran(root, campaign(name, passes, **fields), passes)
    return CampaignSource(str(root), name)


def added_up(sources: Sequence[CampaignSource], **options: Any) -> Combination:
    """Campaigns with a fixed end, combined."""
    found = make_combination(sources, **options)
    assert isinstance(found, Combination)
    return found


def combined(root: Path, *several: Passes, **options: Any) -> Combination:
    """Campaigns `c0`, `c1` … of these counts, combined."""
    sources = [made(root, f"c{number}", passes) for number, passes in enumerate(several)]
    return added_up(sources, **options)


def store_of(source: CampaignSource) -> DirectoryStore:
    return DirectoryStore(Path(source.store))
