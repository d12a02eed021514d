"""Looks that a campaign declares before it runs, and what each decided. Pure.

`decisions/<k>.json` is what look `k` decided, written once by whichever controller comes first.
(`looks/<k>.json` is another record: somebody saw interim results.)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.designs.halving import HalvingResult
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.base import (
    BoundRecord,
    Count,
    Frozen,
    Moment,
    Name,
    Number,
    Probability,
    Reps,
    Seed,
    Sha256,
)
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict as TrialVerdict

Share = Annotated[float, Field(gt=0, lt=1)]
# Armitage, McPherson & Rowe 1969.
PEEKING = "five tests at 5% find a difference in 14% of the campaigns in which there is none"


class FutilityRule(Frozen):
    """When a difference has become too unlikely to continue: the predictive power is below `predictive` (no effect
    is assumed), or the power at the declared effect is below `conditional`. Exactly one is given. `side`: "both":
    for a gain of the treatment and for a harm; "gain": for a gain, and a harm is not looked for."""

    predictive: Share | None = None
    conditional: Share | None = None
    side: Literal["both", "gain"] = "both"

    @model_validator(mode="after")
    def _one(self) -> FutilityRule:
        if (self.predictive is None) == (self.conditional is None):
            raise FieldError(
                "futility: give either predictive or conditional",
                hint="write futility: {predictive: 0.05}, futility: {conditional: 0.2}, or futility: none",
            )
        return self

    @property
    def reason(self) -> str:
        """Why a campaign stopped by this rule, as a clause."""
        if self.side == "gain":
            return "a gain has become improbable; a harm was not looked for"
        return "a gain and a harm have both become improbable"


class Reestimation(Frozen):
    """The reps are computed once more at the look after so many blocks, from the tasks' pass rates over both sides
    of the primary contrast together: as many as give one test at the end a power of 80% at the declared effect, at
    least those that are over, at most `cap`."""

    after: Reps
    cap: Annotated[Reps, Field(ge=2)]


class StopRule(Frozen):
    """`primary.stop` of the campaign file. `looks`: how many, equally spaced over the blocks, or the numbers of
    the blocks after which is looked; `spending`: how much of alpha each may spend; `drop_saturated`: the look
    after so many blocks leaves saturated tasks out of all later blocks; 0: none does. `reestimate`: where the reps
    are computed once more; None: nowhere."""

    looks: Annotated[int, Field(ge=2, le=25)] | Annotated[tuple[Count, ...], Field(min_length=2)] = 5
    spending: Literal["power_2", "obrien_fleming"] = "power_2"
    futility: FutilityRule | Literal["none"] = FutilityRule(predictive=0.05)
    drop_saturated: Annotated[Count, Field(strict=True)] = 0
    reestimate: Reestimation | None = None

    @model_validator(mode="after")
    def _ascending(self) -> StopRule:
        at = self.looks
        if isinstance(at, tuple) and (at[0] < 1 or any(b <= a for a, b in pairwise(at))):
            raise FieldError(
                f"stop: looks {list(at)} do not ascend from block 1",
                hint="write the number of looks, or blocks in ascending order: looks: [5, 10, 15, 20, 25]",
            )
        return self

    @property
    def changes_plan(self) -> bool:
        """Whether a look may change what later blocks hold."""
        return bool(self.drop_saturated) or self.reestimate is not None

    def blocks(self, reps: int, revised: int | None = None) -> tuple[int, ...]:
        """After how many complete blocks each look is; the last is at the end. `revised`: the reps once they have
        been re-estimated; the looks that were still to be taken are spaced equally up to these.

        >>> StopRule().blocks(25), StopRule().blocks(3), StopRule(looks=(4, 10)).blocks(10)
        ((5, 10, 15, 20, 25), (1, 2, 3), (4, 10))
        >>> StopRule(reestimate=Reestimation(after=10, cap=60)).blocks(25, 40)
        (5, 10, 20, 30, 40)
        """
        at = self.looks if isinstance(self.looks, tuple) else _spaced(self.looks, reps)
        if revised is None or self.reestimate is None:
            return at
        after = self.reestimate.after
        taken = tuple(block for block in at if block <= after)
        return (*taken, *(after + block for block in _spaced(len(at) - len(taken), revised - after)))

    def check_last_look(self, reps: int) -> None:
        """Raises `FieldError` where it is not the campaign's end."""
        last = self.blocks(reps)[-1]
        if last != reps:
            raise FieldError(
                f"primary: stop: the last look is after block {last}, and the campaign has {plural(reps, 'rep')}",
                hint=f"end looks with {reps}: the last look is the campaign's end",
            )

    def levels(self, reps: int, alpha: float, revised: int | None = None) -> tuple[float, ...]:
        """The two-sided p at which each look decides, by stage-wise ordering: what may have been spent up to it.
        The look that re-estimates is the first of the revised plan, and nothing that was spent is taken back.

        >>> [round(level, 4) for level in StopRule().levels(25, 0.05)]
        [0.002, 0.008, 0.018, 0.032, 0.05]
        """
        blocks, since = self.blocks(reps, revised), self.reestimate.after if self.reestimate else 0
        planned = (reps if block < since else blocks[-1] for block in blocks)
        each = (self._spent(block / of, alpha) for block, of in zip(blocks, planned, strict=True))
        return tuple(accumulate(each, max))

    def _check_at_a_look(self, name: str, block: int, reps: int) -> None:
        """Later blocks are held back at a look alone, so the plan changes there."""
        before_the_end = self.blocks(reps)[:-1]
        if block and block not in before_the_end:
            raise FieldError(
                f"primary: stop: {name}: {block} is not the block of a look before the last",
                hint=f"write one of {', '.join(map(str, before_the_end))}, or remove {name.partition(':')[0]}"
                if before_the_end
                else f"remove {name.partition(':')[0]}: the only look is the campaign's end",
            )

    def check_changes(self, reps: int) -> None:
        """Raises `FieldError` for a change of the plan that is at no look, or that a campaign of so many reps
        cannot have."""
        self._check_at_a_look("drop_saturated", self.drop_saturated, reps)
        asked = self.reestimate
        if asked is None:
            return
        self._check_at_a_look("reestimate: after", asked.after, reps)
        if asked.cap < reps:
            raise FieldError(
                f"primary: stop: reestimate: cap: {asked.cap} is below the campaign's {plural(reps, 'rep')}",
                hint=f"write {reps} or more: the most reps that the campaign may get",
            )

    def _spent(self, time: float, alpha: float) -> float:
        if time == 1 or self.spending == "power_2":
            return alpha * time * time
        normal = NormalDist()
        return 4 * normal.cdf(normal.inv_cdf(alpha / 4) / math.sqrt(time))


def _spaced(looks: int, blocks: int) -> tuple[int, ...]:
    """Equally, at most one a block."""
    several = min(looks, blocks)
    return tuple(math.floor(number * blocks / several + 0.5) for number in range(1, several + 1))


class AnytimeRule(Frozen):
    """`primary.stop` of a campaign without a fixed end: bets on the declared contrast are settled after every
    complete block, and it ends when they have won enough. `half`: half of the wealth is bet for the declared
    effect, half on all effects alike; `mixture`: all of it on small effects rather than large ones."""

    anytime: Literal["half", "mixture"]

    def blocks(self, reps: int) -> tuple[int, ...]:
        """After how many complete blocks each look is, up to `reps`, which may grow.

        >>> AnytimeRule(anytime="mixture").blocks(3)
        (1, 2, 3)
        """
        return tuple(range(1, reps + 1))


def _named(rule: Any) -> str:
    """Which rule is meant, so that errors are about that one alone."""
    anytime = "anytime" in rule if isinstance(rule, Mapping) else isinstance(rule, AnytimeRule)
    return "at any time" if anytime else "at looks"


StopDeclaration = Annotated[
    Annotated[StopRule, Tag("at looks")] | Annotated[AnytimeRule, Tag("at any time")], Discriminator(_named)
]


def read_margin(value: Any) -> Any:
    """A difference of pass rates: a share below 1, or percentage points from 1 on.

    >>> read_margin(0.1), read_margin(10)
    (0.1, 0.1)
    """
    return value / 100 if isinstance(value, int | float) and 1 <= value < 100 else value


def _is_empty(values: tuple[float, ...]) -> bool:
    return not values


class StageCounts(Frozen):
    """One task in the blocks that a look added: passed and valid trials of the primary contrast's two sides; where
    a
    metric is declared, its values."""

    task: Name
    treatment_passed: Count
    treatment_valid: Count
    control_passed: Count
    control_valid: Count
    treatment_values: tuple[Number, ...] = Field(default=(), exclude_if=_is_empty)
    control_values: tuple[Number, ...] = Field(default=(), exclude_if=_is_empty)


def count_sides(task: str, outcomes: Sequence[Outcome], treatment: str, control: str) -> StageCounts:
    """One task's counts under two conditions."""

    def passed_and_valid(condition: str) -> tuple[int, int]:
        scored = [one.scored for one in outcomes if one.trial.condition == condition and one.scored is not None]
        return sum(one.verdict is TrialVerdict.PASSED for one in scored), len(scored)

    treated, compared = passed_and_valid(treatment), passed_and_valid(control)
    return StageCounts(
        task=task,
        treatment_passed=treated[0],
        treatment_valid=treated[1],
        control_passed=compared[0],
        control_valid=compared[1],
    )


Verdict = Literal["continue", "benefit", "harm", "futility", "end"]


class LookResult(Frozen):
    """What the exact group-sequential test says at a look, from its counts and those of the looks before.

    `total`: the treatment's weighted passes so far, with its `mean` and `variance` at equal rates; `p_value`: by
    stage-wise ordering; `level`: what each side may have spent; `lower`, `upper`: totals that reject (None: none
    does); `chance`: the power that the futility rule compares, of two directions the larger (None: no rule, or
    nothing known). `reps`: of the
    campaign, re-estimated at this look; None: not at this one. `verdict`: what the rule says; at the last look
    without a rejection, "end".
    """

    total: Number
    mean: Number
    variance: Number
    p_value: Probability
    p_treatment: Probability
    p_control: Probability
    level: Probability
    lower: Number | None
    upper: Number | None
    chance: Probability | None
    reps: Reps | None = None
    verdict: Verdict


class AnytimeResult(Frozen):
    """What the bets on the declared contrast have won after a block. A pair is one trial per side of a task in a
    block: `won` by the treatment alone, `lost` to the control alone, `equal`, of those that are settled; `broken`:
    pairs of which a trial has no verdict; `open_blocks`: the last ones, which are settled together with later
    blocks. `margin`: mean of won less lost, each task weighing the same; None before any is settled.
    `log_evidence`: ln E of the settled pairs; `p_value`: 1 over the largest E so far, at most 1."""

    won: Count
    lost: Count
    equal: Count
    broken: Count
    open_blocks: Count
    margin: Number | None
    log_evidence: Number
    p_value: Probability
    verdict: Literal["continue", "benefit", "harm"]


class MarginResult(Frozen):
    """What a look at a question within a margin says. `difference`: mean over tasks of the rates' differences;
    `z_lower`: Miettinen and Nurminen's Z of "more than −margin", `z_upper`: of "less than margin", None where
    only the first is asked, or where nothing was measured; `bound`: the Z that shows it at this look; `chance`:
    the predictive power to show it at the end (None: no rule asks, or it is not known)."""

    difference: Number | None
    z_lower: Number | None
    z_upper: Number | None
    bound: Number
    chance: Probability | None
    verdict: Literal["continue", "shown", "futility", "end"]


class MetricResult(Frozen):
    """What a look at a declared metric says. `difference`: mean over tasks of the differences of mean logs, None
    where no task has both sides; `p_value`: two-sided, stage-wise, of permutations within task × stage; `level`:
    what each side may have spent; `lower`, `upper`: differences that decide (None: none can yet); `seed`, `paths`:
    of the permutations; `chance`: the predictive power of the likelier side (None: no rule asks, or it is not
    known). `benefit`: the treatment takes less."""

    difference: Number | None
    p_value: Probability
    level: Probability
    lower: Number | None
    upper: Number | None
    seed: Seed
    paths: Count
    chance: Probability | None
    verdict: Verdict


class JointResult(Frozen):
    """What a look at "cheaper and not worse" says: of both parts, each of which keeps its own crossing. `verdict`:
    "shown" once both have crossed, "futility" once either is given up."""

    within: MarginResult
    metric: MetricResult
    verdict: Literal["continue", "shown", "futility", "end"]


DecisionResult: TypeAlias = LookResult | AnytimeResult | HalvingResult | MarginResult | MetricResult | JointResult


class Decision(BoundRecord):
    """`decisions/<k>.json`. `blocks`: complete ones at this look, or at the halving; `stage`: what they added
    since the look before, without the `halted` tasks; `dropped`: saturated tasks, left out of all later blocks;
    `outcomes`: digest of the outcomes that were counted; `amendments`: how many there were; `obeyed`: False if the
    controller was told to go on in spite of a verdict of futility."""

    number: Count
    at: Moment
    epoch: Count
    blocks: Count
    stage: tuple[StageCounts, ...]
    halted: tuple[Name, ...] = ()
    dropped: tuple[Name, ...] = ()
    outcomes: Sha256
    amendments: Count
    result: DecisionResult
    obeyed: bool = True

    @property
    def stops(self) -> bool:
        """Whether the campaign ends here."""
        return self.obeyed and self.result.verdict in ("benefit", "harm", "shown", "futility")


def stopped(decisions: Sequence[Decision]) -> Decision | None:
    """The decision that ended the campaign; None: none has."""
    return next((decision for decision in decisions if decision.stops), None)


def revised_reps(decisions: Iterable[Decision]) -> int | None:
    """The campaign's re-estimated reps; None: no look has computed any."""
    results = (decision.result for decision in decisions)
    return next((one.reps for one in results if isinstance(one, LookResult) and one.reps is not None), None)


def dropped_tasks(decisions: Iterable[Decision]) -> dict[str, int]:
    """Tasks that a look has left out, each with the blocks that it is part of."""
    return {task: decision.blocks for decision in decisions for task in decision.dropped}


def halving_of(decisions: Iterable[Decision]) -> tuple[Decision, HalvingResult] | None:
    """The decision that halved the treatments, and what it found; None: none has."""
    return next(((one, one.result) for one in decisions if isinstance(one.result, HalvingResult)), None)


def planned_after(decisions: Sequence[Decision], most: int) -> PlannedReps:
    """At most so many reps of every cell, without the blocks that `decisions` have left it out of."""
    halving = halving_of(decisions)
    halved = dict.fromkeys(halving[1].left_out, halving[0].blocks) if halving else {}
    return PlannedReps(most, dropped_tasks(decisions), halved)


def saturated(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """The tasks of which all or none of the valid trials passed, over all conditions together, sorted. A function
    of totals that tell no condition from another, so that the exact test stays exact when they are left out."""
    passed: defaultdict[str, set[bool]] = defaultdict(set)
    for outcome in outcomes:
        if outcome.scored is not None:
            passed[outcome.trial.task].add(outcome.scored.verdict is TrialVerdict.PASSED)
    return tuple(sorted(task for task, seen in passed.items() if len(seen) == 1))
