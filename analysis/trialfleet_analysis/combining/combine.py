"""From the evidence of several campaigns to one document: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trialfleet_analysis.analysis_plan.subgroups import EXACT, interaction
from trialfleet_analysis.combining.evidence import CampaignEvidence
from trialfleet_analysis.combining.sameness import CampaignDifference
from trialfleet_designs.comparison.columns import FourCounts, rates
from trialfleet_designs.comparison.contrast import agree, side
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.comparison.plain import plain_interval, plain_test
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.comparisons import (
    StratifiedTest,
    conditional_odds_ratio,
    stratified_exact,
)
from trialfleet_statistics.comparisons.convolution import informative
from trialfleet_statistics.estimates import Estimand, Integers, Interval, Test
from trialfleet_statistics.intervals import Weights, stratified_miettinen_nurminen
from trialfleet_statistics.pooling import (
    RandomEffects,
    Weighing,
    difference_variance,
    random_effects,
    strata_weights,
)


@dataclass(frozen=True)
class CombinedCampaign:
    """One campaign's own numbers, as its report has them, and its part in the mean of campaigns like these:
    `variance` of its difference in the declared estimand, None with the `reason`; `weight` there. `trials`: valid
    ones of the two conditions; `lost`: those without a verdict."""

    label: str
    where: str
    uid: str
    treatment: str
    control: str
    tasks: int
    trials: int
    lost: int
    treatment_rate: float | None
    control_rate: float | None
    test: StratifiedTest
    difference: Interval
    test_like_these: Test
    difference_like_these: Interval
    variance: float | None
    reason: str | None
    weight: float | None


@dataclass(frozen=True)
class PooledStrata:
    """The exact test with strata campaign × task, on these tasks of these campaigns, with its interval and odds
    ratio. `conflict`, `agrees`: as in a report's contrast."""

    strata: int
    informative: int
    trials: int
    treatment_rate: float | None
    control_rate: float | None
    test: StratifiedTest
    difference: Interval
    odds_ratio: Interval
    conflict: bool
    agrees: bool | None


@dataclass(frozen=True)
class Combination:
    """Several campaigns of one contrast. `estimand`: the declared one, of which the first sentence is; `weighing`:
    what counts the same in the mean over strata. `between`: whether the odds ratio differs between campaigns.
    `shared_tasks`: tasks of several campaigns. `differences`: what the campaigns do not have in common; with any,
    they were combined on request."""

    schema_version: Literal[1]
    treatment: str
    control: str
    estimand: Estimand
    alpha: float
    weighing: Weighing
    verified: bool
    decision: Outcome
    answer: tuple[str, ...]
    cautions: tuple[str, ...]
    pooled: PooledStrata
    random: RandomEffects
    between: Test
    campaigns: tuple[CombinedCampaign, ...]
    shared_tasks: tuple[str, ...]
    differences: tuple[CampaignDifference, ...]
    versions: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.treatment} − {self.control}"


def combined(
    campaigns: Sequence[CampaignEvidence],
    *,
    weighing: Weighing = "tasks",
    apart: Sequence[CampaignDifference] = (),
    versions: Mapping[str, str],
) -> Combination:
    """Every number, without its sentences. `campaigns`: by `labelled`; `apart`: their `differences`. Where the
    declared estimands differ it is these tasks; where the alphas differ, the least."""
    alpha, estimand = least_alpha(campaigns), common_estimand(campaigns)
    own = [_own(one, estimand, 1 - alpha) for one in campaigns]
    among = [one for one in own if one.variance is not None and one.difference.estimate is not None]
    effects = random_effects(
        [one.difference.estimate or 0.0 for one in among],
        [one.variance for one in among if one.variance is not None],
        level=1 - alpha,
    )
    weights = dict(zip((one.label for one in among), effects.weights, strict=False))
    return Combination(
        schema_version=1,
        treatment=common_name([one.primary.treatment for one in campaigns], "treatment"),
        control=common_name([one.primary.control for one in campaigns], "control"),
        estimand=estimand,
        alpha=alpha,
        weighing=weighing,
        verified=all(one.verified for one in campaigns),
        decision="undefined",
        answer=(),
        cautions=(),
        pooled=_pooled(campaigns, weighing, alpha),
        random=effects,
        between=between_campaigns([one.four for one in campaigns]),
        campaigns=tuple(replace(one, weight=weights.get(one.label)) for one in own),
        shared_tasks=in_several([one.tasks for one in campaigns]),
        differences=tuple(apart),
        versions=dict(versions),
    )


def between_campaigns(counts: Sequence[FourCounts]) -> Test:
    """Equal odds ratios in all campaigns? The exact interaction test of a report's subgroups, with the campaign as
    factor. A campaign without an informative task says nothing and takes no part."""
    telling = [four for four in counts if informative(*four).any()]
    if len(telling) < 2:
        return Test(
            None,
            None,
            EXACT,
            reason=f"{len(telling)} of {plural(len(counts), 'campaign')} have an informative task",
        )
    at = np.repeat(np.arange(len(telling)), [four[0].size for four in telling])
    return interaction(concatenated(telling), [at == number for number in range(len(telling))])


def concatenated(counts: Sequence[FourCounts]) -> FourCounts:
    """Strata campaign × task."""
    x_a, n_a, x_b, n_b = (np.concatenate([four[place] for four in counts]) for place in range(4))
    return x_a, n_a, x_b, n_b


def _pooled(campaigns: Sequence[CampaignEvidence], weighing: Weighing, alpha: float) -> PooledStrata:
    four = concatenated([one.four for one in campaigns])
    weights = weigh_strata(campaigns, weighing)
    test = stratified_exact(*four, weights=weights)
    difference = stratified_miettinen_nurminen(*four, weights=weights, level=1 - alpha)
    return PooledStrata(
        strata=int(four[0].size),
        informative=test.n_informative or 0,
        trials=int(four[1].sum() + four[3].sum()),
        treatment_rate=_mean_rate(four[0], four[1], weights),
        control_rate=_mean_rate(four[2], four[3], weights),
        test=test,
        difference=difference,
        odds_ratio=plain_interval(conditional_odds_ratio(*four, weights=weights, level=1 - alpha)),
        conflict=test.direction * side(difference.estimate) < 0,
        agrees=agree(test, difference, alpha),
    )


def _own(one: CampaignEvidence, estimand: Estimand, level: float) -> CombinedCampaign:
    rate_a, rate_b = rates(one.four[0], one.four[1]), rates(one.four[2], one.four[3])
    paired = one.judge_tasks(1 - level)
    assert paired.interval is not None, "a paired t-test always has its interval, if only an undefined one"
    variance = difference_variance(*one.four) if estimand == "these_tasks" else one.variance_of_tasks()
    return CombinedCampaign(
        label=one.label,
        where=one.where,
        uid=one.plan.uid,
        treatment=one.primary.treatment,
        control=one.primary.control,
        tasks=len(one.tasks),
        trials=one.trials,
        lost=one.lost,
        treatment_rate=float(rate_a.mean()) if rate_a.size else None,
        control_rate=float(rate_b.mean()) if rate_b.size else None,
        test=stratified_exact(*one.four),
        difference=stratified_miettinen_nurminen(*one.four, level=level),
        test_like_these=plain_test(paired),
        difference_like_these=paired.interval,
        variance=variance.variance,
        reason=variance.reason,
        weight=None,
    )


def _mean_rate(passes: Integers, valid: Integers, weights: Weights) -> float | None:
    return None if isinstance(weights, str) else float(np.average(passes / valid, weights=weights))


def least_alpha(campaigns: Sequence[CampaignEvidence]) -> float:
    """Where they differ, the least holds."""
    return min(one.primary.test_alpha for one in campaigns)


def common_estimand(campaigns: Sequence[CampaignEvidence]) -> Estimand:
    """Where they differ, it is these tasks."""
    return "these_tasks" if "these_tasks" in {one.estimand for one in campaigns} else "tasks_like_these"


def weigh_strata(campaigns: Sequence[CampaignEvidence], weighing: Weighing) -> Weights:
    """Of each stratum campaign × task; "equal" without any."""
    relative = strata_weights([len(one.tasks) for one in campaigns], weighing=weighing)
    return relative if relative.size else "equal"


def common_name(names: Sequence[str], otherwise: str) -> str:
    """The condition's name, or which side it is where campaigns name it differently."""
    return names[0] if len(set(names)) == 1 else f"the {otherwise}"


def in_several(tasks: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Tasks of more than one campaign."""
    found = Counter(name for several in tasks for name in several)
    return tuple(sorted(name for name, count in found.items() if count > 1))
