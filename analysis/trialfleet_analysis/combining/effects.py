"""Campaigns that declare the same question within a margin, or the same metric, combined. Pure.

A question: its one-sided tests with strata campaign × task, and the mean of campaigns like these against the
margin. A metric: its permutation test with strata campaign × task, and the mean of the campaigns' log ratios or
differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special

from trialfleet_analysis.combining.combine import (
    common_estimand,
    common_name,
    concatenated,
    in_several,
    least_alpha,
    weigh_strata,
)
from trialfleet_analysis.combining.evidence import CampaignEvidence
from trialfleet_analysis.combining.sameness import CampaignDifference
from trialfleet_designs.comparison.declared_effect import EffectKind
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.metric import effort
from trialfleet_ledger.errors import OperatorError
from trialfleet_statistics.comparisons import equivalence
from trialfleet_statistics.estimates import LEAST, Estimand, Interval, rejects
from trialfleet_statistics.pooling import (
    CampaignVariance,
    RandomEffects,
    Weighing,
    difference_variance,
    mean_variance,
    random_effects,
)
from trialfleet_statistics.sequential import MeanStage, permute_means

BOUNDS_OF_RATES = (-1.0, 1.0)


@dataclass(frozen=True)
class EffectCampaign:
    """One campaign as its report has it: `effect`, a difference of rates, a ratio, or a difference of means, with
    its interval; `p_value`: of what it declares. `variance`: of its effect, of a ratio's logarithm, None with the
    `reason`; `weight`: in the mean of campaigns like these. `trials`: those that the effect is made of."""

    label: str
    where: str
    uid: str
    treatment: str
    control: str
    tasks: int
    trials: int
    lost: int
    effect: Interval
    p_value: float | None
    variance: float | None
    reason: str | None
    weight: float | None


@dataclass(frozen=True)
class EffectCombination:
    """Several campaigns of one question or metric. `pooled`: over all strata campaign × task, `p_value`: of its
    test; `random`: campaigns as a sample, of a ratio on the scale of logs; `mean`, `prediction`, `fixed`: from it,
    on the scale that is read; `random_p`: of its test of what is declared."""

    schema_version: Literal[1]
    kind: EffectKind
    treatment: str
    control: str
    estimand: Estimand
    alpha: float
    weighing: Weighing
    verified: bool
    decision: Outcome
    answer: tuple[str, ...]
    cautions: tuple[str, ...]
    strata: int
    trials: int
    pooled: Interval
    p_value: float | None
    random: RandomEffects
    random_p: float | None
    mean: Interval
    prediction: Interval
    fixed: Interval
    campaigns: tuple[EffectCampaign, ...]
    shared_tasks: tuple[str, ...]
    differences: tuple[CampaignDifference, ...]
    versions: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.treatment} {'/' if self.kind.scale == 'ratio' else '−'} {self.control}"


def common_kind(campaigns: Sequence[CampaignEvidence]) -> EffectKind | None:
    """None: all declare a contrast. Raises `OperatorError` for campaigns that ask different things."""
    kinds = {one.effect.kind if one.effect else None for one in campaigns}
    if len(kinds) == 1:
        return kinds.pop()
    each = (f"{one.label}: {one.effect.kind.describe() if one.effect else 'a contrast'}" for one in campaigns)
    raise OperatorError(
        f"the campaigns do not declare the same: {'; '.join(each)}",
        where=" and ".join(one.where for one in campaigns),
        hint="combine those that declare the same contrast, question with its margin, or metric with its scale",
    )


def combine_effects(
    campaigns: Sequence[CampaignEvidence],
    kind: EffectKind,
    *,
    weighing: Weighing = "tasks",
    apart: Sequence[CampaignDifference] = (),
    versions: Mapping[str, str],
) -> EffectCombination:
    """Every number, without its sentences. Where alphas differ, the least holds; where estimands of questions do,
    it is these tasks. Raises `OperatorError` for metrics of which each campaign is to weigh the same."""
    if kind.metric is not None and weighing != "tasks":
        raise OperatorError(
            "the permutation test of a metric weighs every task of every campaign the same",
            hint="leave out --weigh",
        )
    alpha, estimand = least_alpha(campaigns), common_estimand(campaigns)
    level = 1 - (alpha if kind.question is None else 2 * alpha)
    own = [_list_campaign(one, estimand) for one in campaigns]
    among = [(one, effect) for one in own if (effect := _on_scale(kind, one.effect.estimate)) is not None]
    among = [(one, effect) for one, effect in among if one.variance is not None]
    random = random_effects(
        [effect for _, effect in among],
        [one.variance or 0.0 for one, _ in among],
        level=level,
        bounds=BOUNDS_OF_RATES if kind.question is not None else None,
    )
    weights = dict(zip((one.label for one, _ in among), random.weights, strict=False))
    pooled, p_value = _pool(campaigns, kind, weighing, alpha)
    random_p = judge_mean(kind, random)
    mean, prediction, fixed = (_read(kind, one) for one in (random.mean, random.prediction, random.fixed))
    decisive = (mean, random_p) if estimand == "tasks_like_these" else (pooled, p_value)
    return EffectCombination(
        schema_version=1,
        kind=kind,
        treatment=common_name([one.primary.treatment for one in campaigns], "treatment"),
        control=common_name([one.primary.control for one in campaigns], "control"),
        estimand=estimand,
        alpha=alpha,
        weighing=weighing,
        verified=all(one.verified for one in campaigns),
        decision=_decide(kind, *decisive, alpha),
        answer=(),
        cautions=(),
        strata=sum(len(one.tasks) for one in campaigns),
        trials=sum(one.trials for one in own),
        pooled=pooled,
        p_value=p_value,
        random=random,
        random_p=random_p,
        mean=mean,
        prediction=prediction,
        fixed=fixed,
        campaigns=tuple(replace(one, weight=weights.get(one.label)) for one in own),
        shared_tasks=in_several([one.tasks for one in campaigns]),
        differences=tuple(apart),
        versions=dict(versions),
    )


def _list_campaign(one: CampaignEvidence, estimand: Estimand) -> EffectCampaign:
    assert one.effect is not None, "a question or a metric has its effect"
    variance, values = _variance(one, estimand), one.effect.values
    return EffectCampaign(
        label=one.label,
        where=one.where,
        uid=one.plan.uid,
        treatment=one.primary.treatment,
        control=one.primary.control,
        tasks=len(one.tasks),
        trials=one.trials if values is None else int(values.values.size),
        lost=one.lost,
        effect=one.effect.size,
        p_value=one.effect.p_value,
        variance=variance.variance,
        reason=variance.reason,
        weight=None,
    )


def _variance(one: CampaignEvidence, estimand: Estimand) -> CampaignVariance:
    assert one.effect is not None, "a question or a metric has its effect"
    values = one.effect.values
    if values is not None:
        return mean_variance(values.values, values.arm, values.task)
    return difference_variance(*one.four) if estimand == "these_tasks" else one.variance_of_tasks()


def _on_scale(kind: EffectKind, estimate: float | None) -> float | None:
    """Of ratios the logarithm."""
    return math.log(estimate) if estimate is not None and kind.scale == "ratio" else estimate


def _read(kind: EffectKind, of: Interval) -> Interval:
    """A mean over campaigns, on the scale that is read."""
    if kind.scale != "ratio":
        return of
    estimate, low, high = (None if end is None else math.exp(end) for end in (of.estimate, of.low, of.high))
    return replace(of, estimate=estimate, low=low, high=high)


def _pool(
    campaigns: Sequence[CampaignEvidence], kind: EffectKind, weighing: Weighing, alpha: float
) -> tuple[Interval, float | None]:
    if kind.margin is None:
        return _pool_metrics(campaigns, kind, alpha)
    four, weights = concatenated([one.four for one in campaigns]), weigh_strata(campaigns, weighing)
    found = equivalence(*four, margin=kind.margin, weights=weights, alpha=alpha)
    assert found.interval is not None, "the test always has its interval, if only an undefined one"
    return found.interval, found.p_lower if kind.question == "not_worse" else found.p_value


def _pool_metrics(
    campaigns: Sequence[CampaignEvidence], kind: EffectKind, alpha: float
) -> tuple[Interval, float | None]:
    """The permutations of a campaign's report, of all campaigns together."""
    names, stages = list[str](), list[MeanStage]()
    for one in campaigns:
        of = None if one.effect is None else one.effect.values
        assert of is not None, "a metric has its values"
        stages.append(MeanStage(of.values, of.arm, of.task + len(names)))
        names += [f"{one.plan.uid} {task}" for task in one.tasks]
    every = MeanStage(*(np.concatenate([getattr(one, of) for one in stages]) for of in ("values", "arm", "task")))
    seed = min(one.plan.seed for one in campaigns)
    paths, studentised = effort.AT_A_FIXED_END, kind.scale == "difference"
    found = permute_means([every], names, [alpha], seed=seed, paths=paths, studentised=studentised)
    look, trials = found.look(1), int(every.values.size)
    if look.difference is None:
        undefined = Interval(
            None, None, None, 1 - alpha, trials, "permutation", "these_tasks", "no task has values"
        )
        return undefined, None
    limits = found.limits(1, 1 - alpha)
    size = Interval(look.difference, *limits, 1 - alpha, trials, "permutation", "these_tasks")
    return _read(kind, size), look.p_value


def judge_mean(kind: EffectKind, random: RandomEffects) -> float | None:
    """Of a metric two-sided, against no effect; of a question one-sided, against its margin."""
    if kind.margin is None:
        return random.test.p_value
    if random.test.p_value is None or random.mean.estimate is None or not random.se:
        return None
    above, below = (
        max(
            LEAST,
            float(special.stdtr(random.campaigns - 1, -(kind.margin + side * random.mean.estimate) / random.se)),
        )
        for side in (1, -1)
    )
    return above if kind.question == "not_worse" else max(above, below)


def _decide(kind: EffectKind, size: Interval, p_value: float | None, alpha: float) -> Outcome:
    if p_value is None or size.estimate is None:
        return "undefined"
    if not rejects(p_value, alpha):
        return "not_shown"
    if kind.question is not None:
        return "shown"
    return "more" if size.estimate > (1.0 if kind.scale == "ratio" else 0.0) else "less"
