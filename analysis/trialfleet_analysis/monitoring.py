"""What the exact group-sequential test says at a look of a campaign: called by the controller, and by the report.

The controller finds `look_result` through the entry point `trialfleet.looks`, so that neither package imports the
other. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_analysis.statistics.sequential import (
    Futility,
    SequentialDesign,
    SequentialLook,
    SequentialStage,
    chance_of_gain,
    futile,
    monitor,
    stage,
)
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.looks import Decision, LookResult, StageCounts, Verdict


def look_result(
    primary: Primary, reps: int, earlier: Sequence[Decision], counts: Sequence[StageCounts]
) -> LookResult:
    """The next look of a campaign of so many planned `reps`: `counts` are of the blocks since the last of the
    `earlier` ones. Raises `ValueError` if no looks are declared, or all have been taken."""
    design = design_of(primary, reps)
    stages = [stage_of(design, k, one) for k, one in enumerate([*(d.stage for d in earlier), counts], start=1)]
    found = monitor(design, stages)[-1]
    rule, tasks = futility_of(primary), len({one.task for one in counts})
    chance = None
    if rule is not None and found.number < len(design.looks):
        chance = chance_of_gain(design, rule, found, tasks=tasks)
    return LookResult(
        total=found.sum,
        mean=found.mean,
        variance=found.variance,
        p_value=found.p_value,
        p_treatment=found.p_up,
        p_control=found.p_down,
        level=found.level,
        lower=found.lower,
        upper=found.upper,
        chance=chance,
        verdict=_verdict(design, found, given_up=futile(design, rule, found, tasks=tasks)),
    )


def _verdict(design: SequentialDesign, look: SequentialLook, *, given_up: bool) -> Verdict:
    if look.crossed:
        return "benefit" if look.crossed > 0 else "harm"
    if look.number == len(design.looks):
        return "end"
    return "futility" if given_up else "continue"


def design_of(primary: Primary, reps: int) -> SequentialDesign:
    """The declared looks. Raises `ValueError` when there are none."""
    if primary.stop is None:
        raise ValueError("the campaign declares no looks")
    return SequentialDesign(primary.stop.blocks(reps), primary.stop.spending, primary.alpha)


def futility_of(primary: Primary) -> Futility | None:
    """The declared rule; None: there is none."""
    rule = None if primary.stop is None else primary.stop.futility
    if rule is None or rule == "none":
        return None
    return Futility(rule.predictive, rule.conditional, primary.effect)


def stage_of(design: SequentialDesign, number: int, counts: Sequence[StageCounts]) -> SequentialStage:
    """The stage of look `number`, from 1."""
    return stage(
        [one.treatment_passed for one in counts],
        [one.treatment_valid for one in counts],
        [one.control_passed for one in counts],
        [one.control_valid for one in counts],
        blocks=design.stage(number),
    )
