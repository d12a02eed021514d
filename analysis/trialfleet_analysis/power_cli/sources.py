"""Where a plan's numbers come from: the campaign that it is about, and a pilot's rates, never its power."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import time

import numpy as np
from pydantic import ValidationError

from trialfleet_analysis.ledger import Frame, read_frame
from trialfleet_analysis.power_cli.plans import Assumption, Assumptions, DeclaredDesign
from trialfleet_analysis.source import find_source
from trialfleet_analysis.tables.columns import among, codes, known, numbers, some, truths
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.tables.rows import Use
from trialfleet_analysis.tables.table import Table
from trialfleet_designs.comparison.tasks_like_these import name_repositories
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.cost_limits import CostLimits
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.declaration import Declaration, Place
from trialfleet_ledger.designs.metric import MAY_BE_ABSENT, PARTS
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import Status
from trialfleet_statistics.comparisons import heterogeneity, variance_components
from trialfleet_statistics.comparisons.repositories import UNKNOWN, TaskRepositories
from trialfleet_statistics.continuous import pool_mean_variation, pool_variation
from trialfleet_statistics.estimates import Floats, Integers, Interval, floats
from trialfleet_tasks import yamlfile
from trialfleet_tasks.taskfile import campaign_tasks


@dataclass(frozen=True)
class Subject:
    """`tasks`: those that comparisons count, by id. `alpha`: of the primary contrast, or trend; None
    when none is declared."""

    declared: DeclaredDesign
    names: tuple[str, ...]
    reps: int
    alpha: float | None
    primary: Primary | None = None
    in_place: Declaration | None = None  # declared in place of a contrast
    repositories: tuple[str, ...] = ()  # of each task; empty where one is not known
    limits: CostLimits | None = None

    @property
    def tasks(self) -> int:
        return len(self.names)

    def claim_of(self, tasks: int | None) -> TaskRepositories:
        """What a plan of so many tasks (None: its own) is judged by: others than its own are taken to be of one
        repository each."""
        others = self.primary is not None and self.primary.estimand == "other_repositories"
        if tasks is None or tasks == self.tasks:
            return TaskRepositories(self.repositories, "other_repositories" if others else "these_repositories")
        return TaskRepositories(tuple(range(tasks)), "other_repositories") if others else UNKNOWN

    def take_alpha(self, alpha: float | None) -> Subject:
        """With another alpha of what is declared, so that every figure of an answer is at the same one; None: as
        it is. Raises `OperatorError` for one that the declaration cannot have."""
        declared = self.primary or self.in_place
        if alpha is None or declared is None:
            return self if alpha is None else replace(self, alpha=alpha)
        try:
            changed = type(declared).model_validate({**declared.model_dump(), "alpha": alpha})
        except ValidationError as error:
            raise OperatorError(
                f"{alpha:g} is no level for what is declared: {error.errors()[0]['msg']}",
                where="--alpha",
                hint="give a smaller one, usually 0.05",
            ) from None
        tested = changed.tested.test_alpha
        if isinstance(changed, Primary):
            return replace(self, alpha=tested, primary=changed)
        return replace(self, alpha=tested, in_place=changed)


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
    kept = [task for task in tasks if task.spec.status is not Status.NO_ORACLE]
    compared = tuple(task.spec.id for task in kept)
    _comparing(len(spec.single_conditions), loaded.where("conditions"))
    found = _subject(spec.campaign, spec.primary, compared, len(tasks) - len(compared), spec.reps)
    repositories, cost = name_repositories([task.repository for task in kept]), spec.limits.cost_usd
    return replace(found, repositories=repositories, limits=CostLimits(cost.trial, cost.campaign))


def _frozen(campaign: str, store: str | None) -> Subject:
    source = find_source(campaign, store)
    frame = read_frame(source.open(), source.campaign)
    compared = tuple(task.order.id for task in frame.plan.tasks if task.primary)
    _comparing(len(frame.conditions), campaign)
    plan = frame.plan
    found = _subject(plan.title, plan.declared, compared, len(plan.tasks) - len(compared), frame.reps)
    repositories = name_repositories([task.repository for task in plan.tasks if task.primary])
    limits = CostLimits(plan.limits.cost_usd, plan.cost_usd_campaign)
    return replace(found, repositories=repositories, limits=limits)


def _subject(name: str, declared: Declaration | None, tasks: tuple[str, ...], apart: int, reps: int) -> Subject:
    if declared is None:
        return Subject(DeclaredDesign(name, None, None, None, apart=apart), tasks, reps, None)
    alpha, effect = declared.tested.test_alpha, declared.planned_effect
    if not isinstance(declared, Primary):
        own = DeclaredDesign(name, None, None, "these_tasks", effect, apart)
        return Subject(own, tasks, reps, alpha, in_place=declared)
    sides = declared.treatment, declared.control
    return Subject(
        DeclaredDesign(name, *sides, declared.reach, effect, apart), tasks, reps, alpha, primary=declared
    )


def _comparing(conditions: int, where: str) -> None:
    if conditions < 2:
        raise OperatorError(
            "one condition alone is compared with nothing", where=where, hint="add a control, such as none"
        )


@dataclass(frozen=True)
class PilotTask:
    """One task's counts: a is the treatment, b the control."""

    task: str
    passes_a: int
    trials_a: int
    passes_b: int
    trials_b: int


@dataclass(frozen=True)
class Pilot:
    """`icc`: of the control's tasks. `sigma_int`: SD of the true effect between tasks beyond chance, rate scale;
    None when it is undefined, 0 when no more than chance was seen. `cost_rep`: US dollars of a task's rep in both
    conditions, None where not all costs are known. `blocks`: the complete ones, which are used.
    `left_out`: tasks without a valid trial in one of the two. `variation`: of each metric that a campaign may
    declare, its coefficient of variation within a task and condition; `mean_variation`: the same for a difference
    of means."""

    campaign: str
    treatment: str
    control: str
    blocks: int
    interim: bool
    tasks: tuple[PilotTask, ...]
    left_out: tuple[str, ...]
    control_rate: float
    icc: Interval
    sigma_int: float | None
    cost_rep: float | None
    variation: Mapping[str, float]
    mean_variation: Mapping[str, float]


def read_pilot(campaign: str, store: str | None, treatment: str | None, control: str | None) -> Pilot:
    """Over complete blocks; of a campaign that still runs, the look is recorded. Raises `OperatorError` when its
    contrast is not clear or nothing was measured."""
    source = find_source(campaign, store)
    opened = source.open()
    found = open_campaign(opened, source.campaign, verify=False)
    pilot = _estimated(found, _contrast(found.frame, treatment, control))
    found.record_look(opened, at=time(), by="trialfleet power --pilot")
    return pilot


def from_pilot(pilot: Pilot, assumed: Assumptions) -> Assumptions:
    """The pilot's estimates where the planner gave none. A sigma_int of 0 is what few reps cannot see, not what is
    not there: it stays as assumed."""
    control = _unless_given(assumed.control, pilot.control_rate)
    if not 0 < control.value < 1:
        raise OperatorError(
            f"{pilot.control} passed {100 * control.value:.0f}% of the pilot's trials: no rate to plan with",
            where="--pilot",
            hint="say what you expect of it: --from 0.1",
        )
    return Assumptions(
        control,
        _unless_given(assumed.icc, pilot.icc.estimate),
        _unless_given(assumed.sigma_int, pilot.sigma_int or None),
    )


def _unless_given(assumption: Assumption, estimate: float | None) -> Assumption:
    if assumption.origin == "given" or estimate is None:
        return assumption
    return Assumption(estimate, "pilot")


def _contrast(frame: Frame, treatment: str | None, control: str | None) -> tuple[str, str]:
    declared = frame.plan.declared
    sides: Mapping[Place, str] = {} if declared is None else declared.sides
    pair = treatment or sides.get(("treatment",)), control or sides.get(("control",))
    for option, name in zip(("--treatment", "--control"), pair, strict=True):
        if name not in frame.conditions:
            said = f"no condition {name!r} in the pilot" if name else "the pilot declares no primary contrast"
            raise OperatorError(said, where=option, hint=f"one of: {', '.join(frame.conditions)}")
    if pair[0] == pair[1]:
        raise OperatorError("the same condition twice", where="--treatment", hint="name two conditions")
    return str(pair[0]), str(pair[1])


def _counted(found: CampaignTables, pair: tuple[str, str]) -> tuple[PilotTask, ...]:
    """Every task that comparisons count, in the plan's order."""
    names = [task.task for task in found.tasks if task.use is Use.PRIMARY]
    used = some(found.trials, truths(found.trials, "in_blocks") & known(found.trials, "verdict"))
    task, condition, passed = codes(used, "task", names), codes(used, "condition", pair), truths(used, "passed")
    counts = (
        [
            int(np.sum((task == n) & (condition == side) & which))
            for side in (0, 1)
            for which in (passed, task >= 0)
        ]
        for n in range(len(names))
    )
    return tuple(PilotTask(name, *of) for name, of in zip(names, counts, strict=True))


def _estimated(found: CampaignTables, pair: tuple[str, str]) -> Pilot:
    every = _counted(found, pair)
    tasks = tuple(task for task in every if task.trials_a and task.trials_b)
    if not tasks:
        raise OperatorError(
            f"no task is measured under both {pair[0]} and {pair[1]} in complete blocks",
            where=found.frame.plan.campaign,
            hint="let the pilot finish a block, or plan with --from, --icc and --sigma-int",
        )
    passes_a, trials_a = [t.passes_a for t in tasks], [t.trials_a for t in tasks]
    passes_b, trials_b = [t.passes_b for t in tasks], [t.trials_b for t in tasks]
    return Pilot(
        campaign=found.frame.plan.title,
        treatment=pair[0],
        control=pair[1],
        blocks=found.blocks,
        interim=found.interim,
        tasks=tasks,
        left_out=tuple(task.task for task in every if task not in tasks),
        control_rate=sum(t.passes_b / t.trials_b for t in tasks) / len(tasks),
        icc=variance_components(passes_b, trials_b).icc,
        sigma_int=heterogeneity(passes_a, trials_a, passes_b, trials_b).sigma_int,
        cost_rep=_cost_rep(found, pair),
        variation=_variation(found, pair, pool_variation),
        mean_variation=_variation(found, pair, pool_mean_variation),
    )


def _variation(
    found: CampaignTables, pair: tuple[str, str], pool: Callable[[Floats, Integers], float | None]
) -> dict[str, float]:
    """Of a dry run none: its trials have no agent."""
    if found.frame.plan.dry_run:
        return {}
    used = _measured(found, *pair)
    tasks = [task.task for task in found.tasks]
    cells = 2 * codes(used, "task", tasks) + codes(used, "condition", pair)
    variation: dict[str, float] = {}
    for metric, parts in PARTS.items():
        each = {name: numbers(used, name) for name in parts}
        every = [np.nan_to_num(one) if name in MAY_BE_ABSENT else one for name, one in each.items()]
        if (pooled := pool(floats(np.sum(every, axis=0)), cells)) is not None:
            variation[metric] = pooled
    return variation


def _cost_rep(found: CampaignTables, pair: tuple[str, str]) -> float | None:
    """The two conditions' mean costs of a trial, together."""
    means: list[float] = []
    for condition in pair:
        used = _measured(found, condition)
        costs = numbers(used, "cost_usd")
        if not costs.size or not np.isfinite(costs).all():
            return None
        means.append(float(costs.mean()))
    return sum(means)


def _measured(found: CampaignTables, *conditions: str) -> Table:
    """Their valid trials in complete blocks, of the tasks that comparisons count."""
    names = [task.task for task in found.tasks if task.use is Use.PRIMARY]
    which = truths(found.trials, "in_blocks") & known(found.trials, "verdict")
    return some(
        found.trials, which & among(found.trials, "condition", conditions) & among(found.trials, "task", names)
    )


@dataclass(frozen=True)
class EarlierTask:
    """A task's passes under the condition that stands for the control, in an earlier campaign."""

    task: str
    passes: int
    trials: int


@dataclass(frozen=True)
class EarlierCampaign:
    """`cost_rep`: US dollars of a task's rep in both arms, at the price of a trial of this condition, or of the
    two of its primary contrast; None where not all costs are known. `sigma_int`: of that contrast, as in `Pilot`;
    None where the condition is not its control."""

    campaign: str
    condition: str
    blocks: int
    interim: bool
    tasks: tuple[EarlierTask, ...]
    cost_rep: float | None
    sigma_int: float | None


def read_earlier(campaign: str, store: str | None, condition: str | None) -> EarlierCampaign:
    """Over complete blocks; of a campaign that still runs, the look is recorded. `condition`: None: the control of
    its primary contrast. Raises `OperatorError` when there is none."""
    source = find_source(campaign, store)
    opened = source.open()
    found = open_campaign(opened, source.campaign, verify=False)
    primary = found.frame.plan.primary
    name = condition or (primary and primary.control)
    if name not in found.frame.conditions:
        said = f"no condition {name!r} in that campaign" if name else "that campaign declares no primary contrast"
        raise OperatorError(said, where="--control", hint=f"one of: {', '.join(found.frame.conditions)}")
    found.record_look(opened, at=time(), by="trialfleet power --from-campaign")
    pair = (primary.treatment, name) if primary is not None and primary.control == name else (name, name)
    return EarlierCampaign(
        campaign=found.frame.plan.title,
        condition=name,
        blocks=found.blocks,
        interim=found.interim,
        tasks=_passes(found, name),
        cost_rep=_cost_rep(found, pair),
        sigma_int=_sigma_int(found, pair),
    )


def _sigma_int(found: CampaignTables, pair: tuple[str, str]) -> float | None:
    """Over the tasks that are measured under both."""
    tasks = [task for task in _counted(found, pair) if task.trials_a and task.trials_b]
    if pair[0] == pair[1] or not tasks:
        return None
    passes, trials = [t.passes_a for t in tasks], [t.trials_a for t in tasks]
    return heterogeneity(passes, trials, [t.passes_b for t in tasks], [t.trials_b for t in tasks]).sigma_int


def _passes(found: CampaignTables, condition: str) -> tuple[EarlierTask, ...]:
    """In the plan's order; a task without a valid trial is left out."""
    names = [task.task for task in found.tasks if task.use is Use.PRIMARY]
    used = _measured(found, condition)
    task, passed = codes(used, "task", names), truths(used, "passed")
    counts = ((name, int(np.sum((task == n) & passed)), int(np.sum(task == n))) for n, name in enumerate(names))
    return tuple(EarlierTask(*of) for of in counts if of[2])
