"""What a pilot tells a planner: the control's rate, how far tasks differ, how far effects do. Never its power."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import time

from trialfleet_analysis.comparisons import heterogeneity, variance_components
from trialfleet_analysis.estimates import Interval
from trialfleet_analysis.ledger import Frame, record_look
from trialfleet_analysis.planning.campaigns import Assumption, Assumptions
from trialfleet_analysis.source import find_source
from trialfleet_analysis.tables import Use
from trialfleet_analysis.tables.read import Campaign, open_campaign
from trialfleet_runner.errors import OperatorError


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
    None when it is undefined, 0 when no more than chance was seen. `blocks`: the complete ones, which are used.
    `left_out`: tasks without a valid trial in one of the two."""

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


def read_pilot(campaign: str, store: str | None, treatment: str | None, control: str | None) -> Pilot:
    """Over complete blocks; of a campaign that still runs, the look is recorded. Raises `OperatorError` when its
    contrast is not clear or nothing was measured."""
    source = find_source(campaign, store)
    opened = source.open()
    found = open_campaign(opened, source.campaign, verify=False)
    pilot = _estimated(found, _contrast(found.frame, treatment, control))
    if found.interim:
        at, by = time(), "trialfleet power --pilot"
        record_look(opened, found.ledger, complete_blocks=found.blocks, at=at, by=by)
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
    primary = frame.plan.primary
    pair = treatment or (primary and primary.treatment), control or (primary and primary.control)
    for option, name in zip(("--treatment", "--control"), pair, strict=True):
        if name not in frame.conditions:
            said = f"no condition {name!r} in the pilot" if name else "the pilot declares no primary contrast"
            raise OperatorError(said, where=option, hint=f"one of: {', '.join(frame.conditions)}")
    if pair[0] == pair[1]:
        raise OperatorError("the same condition twice", where="--treatment", hint="name two conditions")
    return str(pair[0]), str(pair[1])


def _counted(found: Campaign, pair: tuple[str, str]) -> tuple[PilotTask, ...]:
    """Every task that comparisons count, in the plan's order."""
    valid, passed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in found.rows:
        if row.in_blocks and row.verdict is not None:
            valid[row.cell] += 1
            passed[row.cell] += row.passed is True
    a, b = pair
    names = [task.task for task in found.tasks if task.use is Use.PRIMARY]
    return tuple(PilotTask(t, passed[t, a], valid[t, a], passed[t, b], valid[t, b]) for t in names)


def _estimated(found: Campaign, pair: tuple[str, str]) -> Pilot:
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
        campaign=found.frame.plan.campaign,
        treatment=pair[0],
        control=pair[1],
        blocks=found.blocks,
        interim=found.interim,
        tasks=tasks,
        left_out=tuple(task.task for task in every if task not in tasks),
        control_rate=sum(t.passes_b / t.trials_b for t in tasks) / len(tasks),
        icc=variance_components(passes_b, trials_b).icc,
        sigma_int=heterogeneity(passes_a, trials_a, passes_b, trials_b).sigma_int,
    )
