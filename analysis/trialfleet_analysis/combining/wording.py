"""The answer in sentences, and what to know before relying on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Protocol

from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.evidence import CampaignEvidence
from trialfleet_analysis.combining.sameness import CampaignDifference
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.figures import (
    compare_rates,
    level,
    p_value,
    point_limits,
    points,
    unsigned_points,
)
from trialfleet_designs.document.saturated_tasks import explain_impossible
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Estimand, Interval, Test, cannot_reject, rejects
from trialfleet_statistics.pooling import FEW_CAMPAIGNS, RandomEffects, Weighing

SHOWN: tuple[Outcome, ...] = ("more", "less")
EVERY: dict[Weighing, str] = {
    "tasks": "every task of every campaign weighing the same",
    "campaigns": "every campaign weighing the same",
}
WITHIN: dict[Estimand, str] = {
    "these_tasks": "campaigns like these, each on its own tasks",
    "tasks_like_these": "campaigns and tasks like these",
}


def worded(bare: Combination, campaigns: Sequence[CampaignEvidence]) -> Combination:
    """With the decision, the sentences and the cautions that are made of its numbers."""
    found = dataclasses.replace(bare, decision=decided(bare))
    return dataclasses.replace(found, answer=tuple(answer(found)), cautions=tuple(_cautions(found, campaigns)))


def decided(found: Combination) -> Outcome:
    """Of the declared estimand: by the exact test for these tasks, else by the mean of campaigns like these."""
    test, difference = _declared(found)
    if test.p_value is None or difference.estimate is None:
        return "undefined"
    if not rejects(test.p_value, found.alpha):
        return "not_possible" if cannot_reject(test, found.alpha) else "not_shown"
    if found.estimand == "these_tasks":
        return "conflict" if found.pooled.conflict else "more" if found.pooled.test.direction > 0 else "less"
    return "more" if difference.estimate > 0 else "less"


def answer(found: Combination) -> Iterator[str]:
    """The decision and its size in the declared estimand; then the other one, as secondary."""
    first, second = _pooled_size(found), _random_size(found)
    if found.estimand == "tasks_like_these":
        first, second = second, first
    yield f"{_decision(found)}: {first}."
    yield f"Secondary: {second}."


def _declared(found: Combination) -> tuple[Test, Interval]:
    if found.estimand == "these_tasks":
        return found.pooled.test, found.pooled.difference
    return found.random.test, found.random.mean


def _decision(found: Combination) -> str:
    a, b = found.treatment, found.control
    on = name_strata(found.estimand, len(found.campaigns), found.pooled.strata)
    if found.decision == "undefined":
        return f"{found.name} has no answer for {on}"
    if found.decision == "conflict":
        return f"On {on}, {a} and {b} differ, but test and mean difference point in opposite directions"
    if found.decision in SHOWN:
        return f"On {on}, {a} passed {found.decision} often than {b}"
    nothing = f"No difference was shown between {a} and {b} on {on}"
    if found.decision == "not_possible":
        return f"{nothing} ({explain_impossible(found.pooled.strata, found.pooled.informative, found.alpha)})"
    return nothing


def name_strata(estimand: Estimand, campaigns: int, tasks: int) -> str:
    """What the declared result is about."""
    several, each = plural(campaigns, "campaign"), plural(tasks, "task")
    if estimand == "these_tasks":
        return f"{'this' if tasks == 1 else 'these'} {each} of {several}"
    return f"campaigns and tasks like these, judged by {several} with {each}"


def _pooled_size(found: Combination) -> str:
    pooled, difference = found.pooled, found.pooled.difference
    if difference.estimate is None:
        return f"these tasks: {difference.reason or pooled.test.reason}"
    return (
        f"{compare_rates(pooled.treatment_rate, pooled.control_rate, difference.estimate)} "
        f"({_limits(difference)}), {p_value(pooled.test.p_value, found.alpha)}, "
        f"exact, these tasks, {EVERY[found.weighing]}"
    )


def _random_size(found: Combination) -> str:
    random, on = found.random, WITHIN[found.estimand]
    if random.mean.estimate is None:
        return f"no mean for {on}: {random.mean.reason}"
    size = f"for {on}, a mean difference of {points(random.mean.estimate)}"
    if random.mean.low is None:
        return f"{size} without an interval: {random.mean.reason}"
    return f"{size} ({_limits(random.mean)}), {p_value(random.test.p_value, found.alpha)}, random effects"


def _limits(of: Interval) -> str:
    shown = point_limits(of)
    return f"{level(of.level)} interval {shown}" if shown else f"no interval: {of.reason}"


def _cautions(found: Combination, campaigns: Sequence[CampaignEvidence]) -> Iterator[str]:
    yield from begin_cautions(found.differences, campaigns)
    yield from _disagreement(found)
    yield from doubt_mean(found.random, found.campaigns, in_points=True)
    yield from end_cautions(found.shared_tasks, campaigns)


def begin_cautions(
    differences: Sequence[CampaignDifference], campaigns: Sequence[CampaignEvidence]
) -> Iterator[str]:
    """What bears on every number."""
    for campaign in campaigns:
        if campaign.tampered:
            yield f"Tampered: {campaign.label}: {campaign.tampered}. See its own report."
    for one in differences:
        yield f"The campaigns differ in {one.text}. The numbers are means over that."


def end_cautions(shared_tasks: Sequence[str], campaigns: Sequence[CampaignEvidence]) -> Iterator[str]:
    """How the campaigns ended, what they share, and what was not read."""
    for campaign in campaigns:
        yield from _irregular(campaign)
    if shared_tasks:
        shared = plural(len(shared_tasks), "task")
        yield f"{shared} of several campaigns: a stratum in each, which counts as often as there are campaigns."
    if not all(one.verified for one in campaigns):
        yield "Bundles were not verified: they were not read, or not pulled."


def _disagreement(found: Combination) -> Iterator[str]:
    p = found.between.p_value
    if p is not None and rejects(p, found.alpha):
        yield (
            f"The effect differs between the campaigns ({p_value(p, found.alpha)}, exact): the mean describes "
            "none of them."
        )
    if found.pooled.agrees is False:
        yield "On these tasks, test and interval disagree; the p decides."


class WeighedCampaign(Protocol):
    """A campaign in the mean of campaigns like these."""

    @property
    def label(self) -> str: ...
    @property
    def variance(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def weight(self) -> float | None: ...


def doubt_mean(random: RandomEffects, campaigns: Sequence[WeighedCampaign], *, in_points: bool) -> Iterator[str]:
    """What the mean of campaigns like these rests on. `in_points`: it is a difference of rates."""
    if random.tau2 is not None and random.campaigns < FEW_CAMPAIGNS:
        interval = "the interval of campaigns like these is uncertain"
        if in_points:
            spread = f"the SD between them, {unsigned_points(random.tau2**0.5)} points, is uncertain"
            interval = f"{spread}, and so is the interval of campaigns like these"
        yield f"{plural(random.campaigns, 'campaign')} hardly show how campaigns differ: {interval}."
    if random.scale is not None and random.scale < 1 and random.mean.low is not None and not random.tau2:
        yield (
            "The campaigns differ less than their own noise, which makes the interval of campaigns like these "
            "narrower than the noise allows: compare it with the inverse-variance interval."
        )
    for one in campaigns:
        if one.variance is None:
            yield f"{one.label} takes no part in the mean of campaigns like these: {one.reason}."


def _irregular(one: CampaignEvidence) -> Iterator[str]:
    frame = one.frame
    if one.cut_short:
        yield f"{one.label} was ended before its plan was run: if its results were seen, its p is not as planned."
    if any(amendment.reps is not None and amendment.after_look for amendment in frame.amendments):
        yield f"{one.label} got more reps after its results were seen: its p is not as planned."
