"""The campaign that a plan is about: its tasks × reps and what it declares, from its file or its frozen plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_analysis.ledger import read_frame
from trialfleet_analysis.planning.campaigns import Declared
from trialfleet_analysis.source import find_source
from trialfleet_runner import yamlfile
from trialfleet_runner.campaign import CampaignSpec, Primary
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.task import Status
from trialfleet_runner.taskfile import campaign_tasks


@dataclass(frozen=True)
class Subject:
    """`tasks`: those that comparisons count. `alpha`: of the primary contrast; None when none is declared."""

    declared: Declared
    tasks: int
    reps: int
    alpha: float | None


def read_subject(campaign: str, store: str | None) -> Subject:
    """Raises `OperatorError` when it cannot be read or compares nothing. No result is looked at."""
    path = Path(campaign)
    subject = _from_file(path) if path.is_file() and path.name != "campaign.json" else _frozen(campaign, store)
    if subject.tasks < 1:
        raise OperatorError(
            "no task has a test that fails before the fix: nothing is compared",
            where=campaign,
            hint="add tasks that `trialfleet validate` accepts",
        )
    return subject


def _from_file(path: Path) -> Subject:
    loaded = yamlfile.read(path, CampaignSpec)
    spec, tasks = loaded.value, campaign_tasks(loaded)
    compared = sum(task.spec.status is not Status.NO_ORACLE for task in tasks)
    _comparing(len(spec.conditions), loaded.where("conditions"))
    return _subject(spec.campaign, spec.primary, compared, len(tasks) - compared, spec.reps)


def _frozen(campaign: str, store: str | None) -> Subject:
    source = find_source(campaign, store)
    frame = read_frame(source.open(), source.campaign)
    compared = sum(task.primary for task in frame.plan.tasks)
    _comparing(len(frame.conditions), campaign)
    return _subject(
        frame.plan.campaign, frame.plan.primary, compared, len(frame.plan.tasks) - compared, frame.reps
    )


def _subject(name: str, primary: Primary | None, tasks: int, apart: int, reps: int) -> Subject:
    if primary is None:
        return Subject(Declared(name, None, None, None, apart=apart), tasks, reps, None)
    declared = Declared(name, primary.treatment, primary.control, primary.estimand, primary.effect, apart)
    return Subject(declared, tasks, reps, primary.alpha)


def _comparing(conditions: int, where: str) -> None:
    if conditions < 2:
        raise OperatorError(
            "one condition alone is compared with nothing", where=where, hint="add a control, such as none"
        )
