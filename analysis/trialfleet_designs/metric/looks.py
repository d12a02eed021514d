"""What a look at a declared metric says: called by the controller, and by the report. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from trialfleet_designs.metric import effort
from trialfleet_ledger.designs.looks import Decision, MetricResult, StageCounts, Verdict
from trialfleet_ledger.designs.metric import MetricPrimary, MetricScale
from trialfleet_statistics.estimates import Floats, floats
from trialfleet_statistics.sequential import (
    MeanLook,
    MeanStage,
    SequentialDesign,
    normal_bounds,
    permute_means,
)


def design_of_metric(declared: MetricPrimary, reps: int) -> SequentialDesign:
    """Of so many planned `reps`; a fixed end is one look."""
    if declared.stop is None:
        return SequentialDesign((reps,), alpha=declared.alpha)
    return SequentialDesign(declared.stop.blocks(reps), declared.stop.spending, declared.alpha)


def look_at_metric(
    declared: MetricPrimary, reps: int, earlier: Sequence[Decision], stage: Sequence[StageCounts], seed: int
) -> MetricResult:
    """The next look: `stage` has the values of the blocks since the last of the `earlier` ones."""
    design, number = design_of_metric(declared, reps), len(earlier) + 1
    every = [*(one.stage for one in earlier), stage]
    names = tuple(sorted({one.task for counts in every for one in counts}))
    stages = [_read_stage(counts, names) for counts in every]
    found = permute_means(stages, names, design.levels()[:number], paths=effort.AT_LOOKS, seed=seed).look(number)
    chance = None
    if _least_chance(declared) is not None and number < len(design.looks):
        chance = predict_metric(found, design)
    return MetricResult(
        difference=found.difference,
        p_value=found.p_value,
        level=found.level,
        lower=found.lower,
        upper=found.upper,
        seed=seed,
        paths=effort.AT_LOOKS,
        chance=chance,
        verdict=_verdict(declared, design, found, chance),
    )


def _read_stage(counts: Sequence[StageCounts], names: Sequence[str]) -> MeanStage:
    place = {name: at for at, name in enumerate(names)}
    rows = [
        (math.log(value), arm, place[one.task])
        for one in counts
        for arm, values in ((1, one.treatment_values), (0, one.control_values))
        for value in values
    ]
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return MeanStage(floats(table[:, 0]), table[:, 1].astype(np.int64), table[:, 2].astype(np.int64))


def predict_metric(found: MeanLook, design: SequentialDesign) -> float | None:
    """The chance that the likelier side is shown at the end, in the normal limit, with a flat prior. None where
    nothing is known yet."""
    if found.difference is None or found.deviation == 0:
        return None
    time, bound = float(design.times()[found.number - 1]), float(normal_bounds(design)[-1])
    z = abs(found.difference) / found.deviation
    return _normal((z / math.sqrt(time) - bound) * math.sqrt(time / (1 - time)))


def find_futile_scores(declared: MetricPrimary, design: SequentialDesign) -> Floats:
    """Of the looks before the last, the |Z| below which `predict_metric` gives up; 0: never. Empty: there is no
    rule."""
    least, times = _least_chance(declared), design.times()[:-1]
    if least is None:
        return np.zeros(0)
    end = float(normal_bounds(design)[-1]) + NormalDist().inv_cdf(least) * np.sqrt((1 - times) / times)
    return floats(np.maximum(0.0, end * np.sqrt(times)))


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _least_chance(declared: MetricPrimary) -> float | None:
    rule = None if declared.stop is None else declared.stop.futility
    return None if rule is None or rule == "none" else rule.predictive


def _verdict(declared: MetricPrimary, design: SequentialDesign, found: MeanLook, chance: float | None) -> Verdict:
    """A treatment that takes less is a benefit."""
    least = _least_chance(declared)
    if found.crossed:
        return "harm" if found.crossed > 0 else "benefit"
    if found.number == len(design.looks):
        return "end"
    return "futility" if chance is not None and least is not None and chance < least else "continue"


def scale_values(scale: MetricScale, values: Floats) -> Floats:
    """What is averaged: logs, or the values. NaN where a value is not known, or is not above 0."""
    known = np.isfinite(values) & (values > 0)
    of = np.log(np.where(known, values, 1.0)) if scale == "ratio" else values
    return floats(np.where(known, of, np.nan))
