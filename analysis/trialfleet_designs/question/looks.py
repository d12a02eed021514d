"""What a look at a question within a margin says: called by the controller, and by the report. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trialfleet_designs.looks.finding import decided_counts
from trialfleet_ledger.designs.looks import Decision, MarginResult, StageCounts
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_statistics.sequential import SequentialDesign, margin_bounds, margin_scores


def design_at_margin(declared: QuestionPrimary, reps: int) -> SequentialDesign:
    """Of so many planned `reps`. Raises `ValueError` when no looks are declared."""
    if declared.stop is None:
        raise ValueError("the campaign declares no looks")
    return SequentialDesign(declared.stop.blocks(reps), declared.stop.spending, declared.alpha)


def look_at_margin(
    declared: QuestionPrimary, reps: int, earlier: Sequence[Decision], stage: Sequence[StageCounts]
) -> MarginResult:
    """The next look: `stage` has the counts of the blocks since the last of the `earlier` ones."""
    design, number = design_at_margin(declared, reps), len(earlier)
    bounds, last = margin_bounds(design), number == len(design.looks) - 1
    _, four = decided_counts([*(one.stage for one in earlier), stage])
    if not four[0].size:
        verdict = "end" if last else "continue"
        return MarginResult(
            difference=None, z_lower=None, z_upper=None, bound=float(bounds[number]), chance=None, verdict=verdict
        )
    scores = margin_scores(*four, declared.margin)
    shown, chance = bool(scores.show(declared.asked, float(bounds[number]))), None
    least = _least_chance(declared)
    if not last and least is not None:
        chance = float(scores.predict(declared.asked, float(bounds[-1]), float(design.times()[number])))
    futile = chance is not None and least is not None and chance < least
    return MarginResult(
        difference=float(scores.estimate),
        z_lower=_finite(scores.z_lower),
        z_upper=_finite(scores.z_upper) if declared.asked == "equivalent" else None,
        bound=float(bounds[number]),
        chance=chance,
        verdict="shown" if shown else "end" if last else "futility" if futile else "continue",
    )


def _least_chance(declared: QuestionPrimary) -> float | None:
    rule = None if declared.stop is None else declared.stop.futility
    return None if rule is None or rule == "none" else rule.predictive


def _finite(z: object) -> float | None:
    """Rates that leave no deviation have no Z."""
    value = float(np.asarray(z))
    return value if math.isfinite(value) else None
