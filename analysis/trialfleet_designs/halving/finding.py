"""Halving of four treatments: which went on, which were left out, and with what rates. The counts are those of the
ledger's decision: what came to light later changes none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trialfleet_designs.comparison.columns import Scheme, TrialsRun, TrialsTaken
from trialfleet_designs.comparison.composition import OPTION
from trialfleet_ledger.designs.halving import TREATMENTS, HalvingCounts, halving_block
from trialfleet_ledger.designs.looks import Decision, halving_of
from trialfleet_ledger.errors import OperatorError


@dataclass(frozen=True)
class HalvingFinding:
    """`after`: of the `planned_blocks`. `counts`: of every condition up to there; empty until it is done.
    `chosen`: the treatment that went on with the declared one; `left_out`: the two others, never tested.
    `alpha`: of all four treatments together; each is tested at `each`. `trials` of `planned_trials`, so far.
    `never`: why none is left out; None: two are, or will be."""

    after: int
    planned_blocks: int
    counts: tuple[HalvingCounts, ...]
    chosen: str | None
    left_out: tuple[str, ...]
    alpha: float
    each: float
    trials: TrialsTaken
    planned_trials: int
    never: str | None


def halving_finding(scheme: Scheme, ran: TrialsRun) -> HalvingFinding | None:
    """None where no halving is declared."""
    declared, done = scheme.declared, halving_of(scheme.decisions)
    if declared is None or not declared.halve:
        return None
    stays = {declared.treatment, declared.control, *scheme.left_out}
    return HalvingFinding(
        after=halving_block(scheme.planned_reps),
        planned_blocks=scheme.planned_reps,
        counts=done[1].counts if done else (),
        chosen=next(one.condition for one in done[1].counts if one.condition not in stays) if done else None,
        left_out=scheme.left_out,
        alpha=declared.alpha * TREATMENTS,
        each=declared.alpha,
        trials=ran.count_up_to(scheme.planned_reps),
        planned_trials=ran.tasks * len(scheme.conditions) * scheme.planned_reps,
        never=None if done else scheme.no_look,
    )


def refuse_left_out(pairs: Sequence[tuple[str, str]], decisions: Iterable[Decision]) -> None:
    """Raises `OperatorError` for a contrast with a treatment that the halving has left out."""
    done = halving_of(decisions)
    for pair in pairs:
        if done and (names := [name for name in pair if name in done[1].left_out]):
            raise OperatorError(
                f"{names[0]} was left out after block {done[0].blocks} for its pass rate, and is not tested",
                where=f"{OPTION} {':'.join(pair)}",
                hint="its rate is in the report; compare it in a campaign of another name",
            )
