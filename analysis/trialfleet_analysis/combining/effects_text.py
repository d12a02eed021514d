"""Combined questions and metrics in sentences and tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from trialfleet_analysis.combining.effects import EffectCombination
from trialfleet_analysis.combining.evidence import CampaignEvidence
from trialfleet_analysis.combining.sections import (
    OWN_NUMBERS,
    PREDICTION,
    RANDOM,
    CombinedRow,
    methods_section,
    name_rows,
    record_section,
    show_p,
    show_weight,
)
from trialfleet_analysis.combining.wording import (
    EVERY,
    WITHIN,
    begin_cautions,
    doubt_mean,
    end_cautions,
    name_strata,
)
from trialfleet_designs.comparison.declared_effect import EffectKind
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    level,
    p_value,
    point_limits,
    points,
)
from trialfleet_designs.document.tables import (
    ReportSection,
    Value,
    number,
    or_reason,
    section,
    table,
    text,
)
from trialfleet_designs.metric.answer import TESTS
from trialfleet_designs.metric.sizes import OF_SCALE, word_limits, word_size
from trialfleet_designs.metric.words import WORDS
from trialfleet_designs.question.answer import say_beyond, word_claim
from trialfleet_statistics.estimates import Interval, rejects


def word_effects(bare: EffectCombination, campaigns: Sequence[CampaignEvidence]) -> EffectCombination:
    """With the sentences and the cautions that are made of its numbers."""
    return dataclasses.replace(bare, answer=tuple(_answer(bare)), cautions=tuple(_list_cautions(bare, campaigns)))


def word_effect(kind: EffectKind, size: float | None) -> str:
    """An effect where its column names the unit."""
    if kind.metric is None or kind.scale is None:
        return bare_points(size)
    return word_size(kind.scale, kind.metric, size)


def effect_limits(kind: EffectKind, size: Interval) -> str | None:
    """Both limits; None where there are none."""
    if kind.metric is None or kind.scale is None:
        return point_limits(size)
    return word_limits(kind.scale, kind.metric, size)


def _answer(found: EffectCombination) -> Iterator[str]:
    first, second = _word_pooled(found), _word_mean(found)
    if found.estimand == "tasks_like_these":
        first, second = second, first
    yield f"{_decide(found)}: {first}."
    yield f"Secondary: {second}."
    of, sides = found.pooled if found.estimand == "these_tasks" else found.mean, (found.treatment, found.control)
    if found.kind.question is not None and found.kind.margin is not None:
        yield from say_beyond(found.kind.question, of, found.kind.margin, sides)


FEW = "in so few trials no result is significant"


def _decide(found: EffectCombination) -> str:
    on = name_strata(found.estimand, len(found.campaigns), found.strata)
    if found.decision == "undefined":
        return f"{found.name} has no answer for {on}"
    kind, shown = found.kind, found.decision in ("shown", "more", "less")
    if kind.question is not None and kind.margin is not None:
        claim = word_claim(kind.question, found.treatment, found.control, kind.margin)
        return f"On {on}, {claim}" if shown else f"On {on}, it was not shown that {claim}"
    assert kind.metric is not None, "a question or a metric"
    words = WORDS[kind.metric]
    if shown:
        predicate = words.more if found.decision == "more" else words.less
        return f"On {on}, {found.treatment} {predicate} than {found.control}"
    return f"On {on}, no difference in {words.noun} was shown between {found.treatment} and {found.control}"


def _word_pooled(found: EffectCombination) -> str:
    if found.pooled.estimate is None:
        return f"these tasks: {found.pooled.reason}"
    kind = found.kind
    test = "one-sided" if kind.question == "not_worse" else "two one-sided tests"
    if kind.scale is not None:
        test = TESTS[kind.scale]
    p = p_value(found.p_value, found.alpha)
    return f"{_size(kind, found.pooled)}, {p}, {test}, these tasks, {EVERY[found.weighing]}"


def _size(kind: EffectKind, of: Interval) -> str:
    limits = effect_limits(kind, of)
    interval = f"{level(of.level)} interval {limits}" if limits else f"no interval: {of.reason or FEW}"
    if kind.scale is None:
        return f"a difference of {points(of.estimate or 0.0)} ({interval})"
    return f"{word_effect(kind, of.estimate)} {OF_SCALE[kind.scale]} ({interval})"


def _word_mean(found: EffectCombination) -> str:
    on = WITHIN[found.estimand]
    if found.mean.estimate is None:
        return f"no mean for {on}: {found.mean.reason}"
    size = f"for {on}, {_size(found.kind, found.mean)}"
    if found.mean.low is None:
        return size
    return f"{size}, {p_value(found.random_p, found.alpha)}, random effects"


def _list_cautions(found: EffectCombination, campaigns: Sequence[CampaignEvidence]) -> Iterator[str]:
    yield from begin_cautions(found.differences, campaigns)
    p = found.random.homogeneity.p_value
    if p is not None and rejects(p, found.alpha):
        yield (
            f"The effect differs between the campaigns ({p_value(p, found.alpha)}, Cochran's Q): the mean "
            "describes none of them."
        )
    yield from doubt_mean(found.random, found.campaigns, in_points=found.kind.metric is None)
    yield from end_cautions(found.shared_tasks, campaigns)


def effect_sections(found: EffectCombination) -> tuple[ReportSection, ...]:
    return (
        _together(found),
        _each(found),
        record_section(found.campaigns, found.differences, found.versions),
        methods_section("combined.json holds every number unrounded.", METHODS),
    )


def list_effect_rows(found: EffectCombination) -> tuple[CombinedRow, ...]:
    sizes = found.pooled, found.mean, found.prediction, found.fixed
    return name_rows(found, sizes, ((found.p_value, None), (found.random_p, found.random.test.reason)))


def _together(found: EffectCombination) -> ReportSection:
    kind, random = found.kind, found.random
    rows: Sequence[tuple[str, Value]] = (
        ("Equal effects in all campaigns, Cochran's Q: p", Value(bare_p(random.homogeneity.p_value, found.alpha))),
        ("Campaigns that this rests on", Value(f"{random.campaigns:,}")),
        ("Strata", Value(f"{found.strata:,}")),
        ("Trials", Value(f"{found.trials:,}")),
    )
    return section(
        "combined",
        "All campaigns",
        f"{_head(found)} The declared estimand is {ESTIMANDS[found.estimand]}.",
        table(
            "Combined",
            list_effect_rows(found),
            text("Combined by", lambda row: row.name),
            text("Stands for", lambda row: row.stands_for),
            number("Effect", lambda row: or_reason(word_effect(kind, row.size.estimate), row.size.reason)),
            number("Interval", lambda row: _limits(kind, row.size)),
            number("p", lambda row: show_p(row, found.alpha)),
        ),
        table(
            "How far the campaigns agree",
            rows,
            text("Fact", lambda row: row[0]),
            number("Value", lambda row: row[1]),
        ),
    )


def _limits(kind: EffectKind, of: Interval) -> Value:
    return or_reason(effect_limits(kind, of) or NOTHING, of.reason if of.estimate is not None else None)


def _head(found: EffectCombination) -> str:
    kind = found.kind
    if kind.metric is not None and kind.scale is not None:
        return f"{WORDS[kind.metric].noun.capitalize()}, {found.name}, {OF_SCALE[kind.scale]}."
    return (
        f"Differences {found.name} in percentage points, against a margin of {100 * (kind.margin or 0):g} points."
    )


def _each(found: EffectCombination) -> ReportSection:
    kind = found.kind
    return section(
        "campaigns",
        "Each campaign",
        OWN_NUMBERS,
        table(
            "Campaigns",
            found.campaigns,
            text("Campaign", lambda one: one.label),
            number("Tasks", lambda one: one.tasks),
            number("Valid trials" if kind.metric is None else "Trials with a value", lambda one: one.trials),
            number("Lost", lambda one: one.lost),
            number("Effect", lambda one: or_reason(word_effect(kind, one.effect.estimate), one.effect.reason)),
            number("Interval", lambda one: _limits(kind, one.effect)),
            number("p", lambda one: bare_p(one.p_value, found.alpha)),
            number("Weight among campaigns", lambda one: show_weight(one.weight, one.reason)),
        ),
    )


METHODS = (
    (
        "all strata, a question",
        "Miettinen and Nurminen's score at the margin, strata campaign × task, with its interval",
    ),
    ("all strata, a metric", "permutation of labels within campaign × task, with its interval"),
    ("random effects", f"{RANDOM}; of ratios, on logs; a question is tested one-sided at its margin"),
    ("another campaign", PREDICTION),
    ("agreement", "Cochran's Q"),
)
