"""A combination as sections of tables, which every format shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.sameness import CampaignDifference
from trialfleet_analysis.combining.wording import EVERY, WITHIN
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    decimals,
    limit_ratio,
    percent,
    unsigned_points,
)
from trialfleet_designs.document.tables import (
    Cell,
    ReportSection,
    ReportTable,
    Value,
    difference,
    difference_limits,
    number,
    or_reason,
    p_of,
    section,
    table,
    text,
)
from trialfleet_statistics.estimates import Estimand, Interval
from trialfleet_statistics.pooling import Weighing


@dataclass(frozen=True)
class CombinedRow:
    """One way to combine the campaigns."""

    name: str
    stands_for: str
    size: Interval
    p_value: float | None
    reason: str | None  # why there is no p


def combination_sections(found: Combination) -> tuple[ReportSection, ...]:
    return (
        _together(found),
        _each(found),
        record_section(found.campaigns, found.differences, found.versions),
        methods_section("combined.json holds every number unrounded.", METHODS),
    )


def combined_rows(found: Combination) -> tuple[CombinedRow, ...]:
    pooled, random = found.pooled, found.random
    sizes = pooled.difference, random.mean, random.prediction, random.fixed
    each = pooled.test, random.test
    return name_rows(found, sizes, tuple((one.p_value, one.reason) for one in each))


class Combining(Protocol):
    """How campaigns are combined."""

    @property
    def estimand(self) -> Estimand: ...
    @property
    def weighing(self) -> Weighing: ...


def name_rows(
    found: Combining, sizes: Sequence[Interval], tests: Sequence[tuple[float | None, str | None]]
) -> tuple[CombinedRow, ...]:
    """Ways to combine the campaigns, the test over all strata first; then what takes the campaigns as a sample.
    `tests`: of the first two, p or why there is none."""
    within = WITHIN[found.estimand]
    names = (
        ("All strata", f"these tasks, {EVERY[found.weighing]}"),
        ("Random effects", within),
        ("Another campaign", f"the true effect of one more: {within}"),
        ("Inverse variance", "these campaigns, weighed by precision"),
    )
    each = zip(names, sizes, (*tests, (None, None), (None, None)), strict=True)
    return tuple(CombinedRow(*name, size, *test) for name, size, test in each)


def show_p(one: CombinedRow, alpha: float) -> Value:
    return Value(bare_p(one.p_value, alpha), one.reason)


def _together(found: Combination) -> ReportSection:
    return section(
        "combined",
        "All campaigns",
        f"Differences {found.name} in percentage points. The declared estimand is {ESTIMANDS[found.estimand]}.",
        table(
            "Combined",
            combined_rows(found),
            text("Combined by", lambda one: one.name),
            text("Stands for", lambda one: one.stands_for),
            number("Difference", lambda one: difference(one.size)),
            number("Interval", lambda one: difference_limits(one.size)),
            number("p", lambda one: show_p(one, found.alpha)),
        ),
        _agreement(found),
    )


def _agreement(found: Combination) -> ReportTable:
    random, pooled = found.random, found.pooled
    tau = None if random.tau2 is None else random.tau2**0.5
    rows: Sequence[tuple[str, Value]] = (
        ("Equal odds ratios in all campaigns, exact interaction: p", p_of(found.between)),
        ("Equal differences, Cochran's Q: p", p_of(random.homogeneity)),
        (
            "SD of the true difference between campaigns, points",
            or_reason(unsigned_points(tau), random.mean.reason),
        ),
        ("Campaigns that this rests on", Value(f"{random.campaigns:,}")),
        ("Common odds ratio", _odds(pooled.odds_ratio)),
        ("Informative strata", Value(f"{pooled.informative:,} of {pooled.strata:,}")),
        ("Least p that the totals allow", Value(bare_p(pooled.test.attainable_p))),
    )
    return table(
        "How far the campaigns agree", rows, text("Fact", lambda row: row[0]), number("Value", lambda row: row[1])
    )


def _odds(ratio: Interval) -> Value:
    limits = f"{limit_ratio(ratio.low)} to {limit_ratio(ratio.high)}"
    return Value(f"{decimals(ratio.estimate)} ({limits})", ratio.reason)


def _each(found: Combination) -> ReportSection:
    """Each campaign's own numbers, as its report has them."""
    return section(
        "campaigns",
        "Each campaign",
        OWN_NUMBERS,
        table(
            "Campaigns",
            found.campaigns,
            text("Campaign", lambda one: one.label),
            number("Tasks", lambda one: one.tasks),
            number("Valid trials", lambda one: one.trials),
            number("Lost", lambda one: one.lost),
            number("Treatment", lambda one: percent(one.treatment_rate)),
            number("Control", lambda one: percent(one.control_rate)),
            number("Difference", lambda one: difference(one.difference)),
            number("Interval, these tasks", lambda one: difference_limits(one.difference)),
            number("p, these tasks", lambda one: p_of(one.test)),
            number("Interval, tasks like these", lambda one: difference_limits(one.difference_like_these)),
            number("p, tasks like these", lambda one: p_of(one.test_like_these)),
            number("Weight among campaigns", lambda one: show_weight(one.weight, one.reason)),
        ),
    )


OWN_NUMBERS = "The numbers of each campaign's own report. They are not corrected for the number of campaigns."


def show_weight(weight: float | None, reason: str | None) -> Cell:
    """Of a campaign in the mean of campaigns like these, or why it has none."""
    return Value(NOTHING, reason) if weight is None else percent(weight)


class NamedCampaign(Protocol):
    """What the record says of a campaign."""

    @property
    def label(self) -> str: ...
    @property
    def treatment(self) -> str: ...
    @property
    def control(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def uid(self) -> str: ...


def record_section(
    campaigns: Sequence[NamedCampaign], apart: Sequence[CampaignDifference], versions: Mapping[str, str]
) -> ReportSection:
    """What was combined, in what it differs, and by which programs."""
    return section(
        "manifest",
        "What was combined",
        "",
        table(
            "Campaigns and their stores",
            campaigns,
            text("Campaign", lambda one: one.label),
            text("Contrast", lambda one: f"{one.treatment} − {one.control}"),
            text("Place", lambda one: one.where),
            text("uid", lambda one: one.uid),
        ),
        table(
            "What they do not have in common",
            [(one.what, value, names) for one in apart for value, names in one.values],
            text("What", lambda row: row[0]),
            text("Value", lambda row: row[1]),
            text("Campaigns", lambda row: ", ".join(row[2])),
        ),
        table(
            "Programs",
            sorted(versions.items()),
            text("Name", lambda row: row[0]),
            text("Version", lambda row: row[1]),
        ),
    )


RANDOM = "Paule and Mandel's variance between campaigns, Hartung and Knapp's interval"
PREDICTION = "mean ± t √(τ² + se²), one degree of freedom less than campaigns"
METHODS = (
    (
        "all strata",
        "exact conditional test, strata campaign × task, central mid-p; Miettinen and Nurminen's interval",
    ),
    ("its odds ratio", "conditional estimate and mid-p limits, which agree with the test"),
    ("random effects", RANDOM),
    ("another campaign", PREDICTION),
    ("agreement", "exact conditional interaction test, mid-p; Cochran's Q"),
)


def methods_section(unrounded: str, made: Sequence[tuple[str, str]]) -> ReportSection:
    """How each number is made."""
    return section(
        "methods",
        "How the numbers are made",
        f"What is undefined is shown as – with its reason. {unrounded}",
        table("Methods", made, text("Number", lambda row: row[0]), text("Method", lambda row: row[1])),
    )
