"""What the declared test says at a look of a campaign: called by the controller, and by the report. It is the
exact group-sequential test, or, where the campaign has no fixed end, what bets on its pairs have won.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import (
    AnytimeResult,
    AnytimeRule,
    Decision,
    LookResult,
    StageCounts,
    Verdict,
    dropped_tasks,
    revised_reps,
)
from trialfleet_statistics.estimates import rejects
from trialfleet_statistics.sequential import (
    Bets,
    BettingStages,
    Futility,
    SequentialDesign,
    SequentialLook,
    SequentialStage,
    anytime_p,
    betting_stages,
    futile,
    futility_power,
    mean_margin,
    monitor,
    reestimated_reps,
    stage,
)


def word_first_look(planned: Sequence[int]) -> str:
    """Why there is no answer before any look. `planned`: complete blocks at each, ascending, not empty."""
    return f"the first planned look is after block {planned[0]:,} of {planned[-1]:,}"


def look_result(
    primary: Primary, reps: int, earlier: Sequence[Decision], counts: Sequence[StageCounts]
) -> LookResult | AnytimeResult:
    """The next look of a campaign of so many planned `reps`: `counts` are of the blocks since the last of the
    `earlier` ones. Raises `ValueError` if no looks are declared, or all have been taken."""
    if primary.anytime is not None:
        return _anytime_result(primary, reps, [*(d.stage for d in earlier), counts])
    return _look_result(primary, reps, earlier, counts)


def _look_result(
    primary: Primary, reps: int, earlier: Sequence[Decision], counts: Sequence[StageCounts]
) -> LookResult:
    revised = _revised(primary, reps, earlier, counts)
    design = design_of(primary, reps, revised or revised_reps(earlier))
    found = monitor(design, [*stages_of(design, earlier), stage_of(design, earlier, counts)])[-1]
    rule, tasks = futility_of(primary), len({one.task for one in counts})
    chance = None
    if rule is not None and found.number < len(design.looks):
        chance = futility_power(design, rule, found, tasks=tasks)
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
        reps=revised,
        verdict=_verdict(design, found, given_up=futile(design, rule, found, tasks=tasks)),
    )


def _verdict(design: SequentialDesign, look: SequentialLook, *, given_up: bool) -> Verdict:
    if look.crossed:
        return "benefit" if look.crossed > 0 else "harm"
    if look.number == len(design.looks):
        return "end"
    return "futility" if given_up else "continue"


def _revised(
    primary: Primary, reps: int, earlier: Sequence[Decision], counts: Sequence[StageCounts]
) -> int | None:
    """The reps from the look that is to re-estimate them: this one, or None. Both sides are counted together."""
    asked = None if primary.stop is None or isinstance(primary.stop, AnytimeRule) else primary.stop.reestimate
    at = design_of(primary, reps, revised_reps(earlier)).looks
    if asked is None or at[len(earlier)] != asked.after or primary.effect is None:
        return None
    every = [one for stage in (*(d.stage for d in earlier), counts) for one in stage]
    per_task = [[one for one in every if one.task == task.task] for task in counts]
    return reestimated_reps(
        [sum(one.treatment_passed + one.control_passed for one in some) for some in per_task],
        [sum(one.treatment_valid + one.control_valid for one in some) for some in per_task],
        effect=primary.effect,
        alpha=primary.alpha,
        after=asked.after,
        cap=asked.cap,
    )


def design_of(primary: Primary, reps: int, revised: int | None = None) -> SequentialDesign:
    """The declared looks; `revised`: the reps once a look has re-estimated them. Raises `ValueError` when there
    are none."""
    rule = primary.stop
    if rule is None or isinstance(rule, AnytimeRule):
        raise ValueError("the campaign declares no looks")
    at, since = rule.blocks(reps, revised), None
    if revised is not None and rule.reestimate is not None:
        since = at.index(rule.reestimate.after) + 1, reps
    return SequentialDesign(at, rule.spending, primary.alpha, revised=since)


def futility_of(primary: Primary) -> Futility | None:
    """The declared rule; None: there is none."""
    if primary.stop is None or isinstance(primary.stop, AnytimeRule):
        return None
    rule = primary.stop.futility
    if rule == "none":
        return None
    return Futility(rule.predictive, rule.conditional, primary.effect, rule.side)


def drop_block_of(primary: Primary) -> int:
    """The block after which saturated tasks are left out; 0: none is."""
    rule = primary.stop
    return 0 if rule is None or isinstance(rule, AnytimeRule) else rule.drop_saturated


def stages_of(design: SequentialDesign, decisions: Sequence[Decision]) -> list[SequentialStage]:
    """What each look that was taken counted."""
    return [stage_of(design, decisions[:taken], one.stage) for taken, one in enumerate(decisions)]


def stage_of(
    design: SequentialDesign, earlier: Sequence[Decision], counts: Sequence[StageCounts]
) -> SequentialStage:
    """The stage of the look after the `earlier` ones."""
    dropped = dropped_tasks(earlier).keys() & {one.task for one in counts}
    return stage(
        [one.treatment_passed for one in counts],
        [one.treatment_valid for one in counts],
        [one.control_passed for one in counts],
        [one.control_valid for one in counts],
        blocks=design.stage(len(earlier) + 1),
        dropped=len(dropped),
    )


# --- without a fixed end ----------------------------------------------------------------------------


def bets_of(primary: Primary) -> Bets:
    """How the declared contrast's wealth is bet. Raises `ValueError` when the campaign has a fixed end."""
    if primary.anytime is None:
        raise ValueError("the campaign declares a fixed end")
    if primary.anytime.anytime == "mixture":
        return Bets()
    if primary.effect is None:
        raise ValueError("bets for the declared effect, and none is declared")
    return Bets.half(primary.effect)


def settle_blocks(blocks: Sequence[Sequence[StageCounts]], planned: int) -> SettledBlocks:
    """The stages that the counts of single blocks are settled in. A task that a block no longer counts leaves."""
    names = tuple(dict.fromkeys(one.task for counts in blocks for one in counts))
    place = {name: at for at, name in enumerate(names)}
    present = np.zeros((len(names), len(blocks)), dtype=np.bool_)
    margins = np.full(present.shape, np.nan)
    for block, counts in enumerate(blocks):
        for one in counts:
            present[place[one.task], block] = True
        for one in _complete(counts):
            margins[place[one.task], block] = one.treatment_passed - one.control_passed
    stages = betting_stages(margins, present=present, planned=planned)
    staying = frozenset(name for name, stays in zip(names, stages.tasks, strict=True) if stays)
    return SettledBlocks(stages, staying, int(np.sum(present & ~np.isfinite(margins))))


@dataclass(frozen=True, eq=False)
class SettledBlocks:
    """`tasks`: those that are bet on; `broken`: pairs of which a trial has no verdict."""

    stages: BettingStages
    tasks: frozenset[str]
    broken: int


def _complete(counts: Sequence[StageCounts]) -> list[StageCounts]:
    """The tasks that have a valid trial on both sides of a block. Raises `ValueError` for counts of several."""
    if any(max(one.treatment_valid, one.control_valid) > 1 for one in counts):
        raise ValueError("pairs are of one block, and these counts are of several")
    return [one for one in counts if one.treatment_valid and one.control_valid]


def _anytime_result(primary: Primary, reps: int, blocks: Sequence[Sequence[StageCounts]]) -> AnytimeResult:
    bets, settled = bets_of(primary), settle_blocks(blocks, reps)
    after = settled.stages.pairs
    evidence, pairs = [bets.log_evidence(one) for one in after], after[-1] if after else ()
    p_value = anytime_p(max(evidence, default=0.0))
    return AnytimeResult(
        won=sum(one.won for one in pairs),
        lost=sum(one.lost for one in pairs),
        equal=sum(one.equal for one in pairs),
        broken=settled.broken,
        open_blocks=len(blocks) - (settled.stages.closed[-1] if after else 0),
        margin=mean_margin(pairs),
        log_evidence=evidence[-1] if evidence else 0.0,
        p_value=p_value,
        verdict=("benefit" if (mean_margin(pairs) or 0) > 0 else "harm")
        if rejects(p_value, primary.alpha)
        else "continue",
    )
