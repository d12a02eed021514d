"""What every format shows of a combination, of either kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.effects import EffectCombination
from trialfleet_analysis.combining.effects_text import (
    effect_limits,
    effect_sections,
    list_effect_rows,
    word_effect,
)
from trialfleet_analysis.combining.product import EvidenceProduct
from trialfleet_analysis.combining.product_text import product_sections
from trialfleet_analysis.combining.sections import CombinedRow, combination_sections, combined_rows
from trialfleet_analysis.report.figures.comparisons import POINTS
from trialfleet_analysis.report.figures.forest import MarkKind
from trialfleet_analysis.report.figures.scales import Scale, amounts, differences, ratios
from trialfleet_designs.comparison.declared_effect import EffectKind
from trialfleet_designs.document.figures import bare_points, evidence, point_limits
from trialfleet_designs.document.tables import ReportSection
from trialfleet_designs.metric.sizes import OF_SCALE
from trialfleet_designs.metric.words import WORDS
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Interval

Combined: TypeAlias = Combination | EvidenceProduct | EffectCombination
LIKE = frozenset({"Random effects", "Another campaign"})
ALL: MarkKind = "these"
KEYS = (("these", "these tasks"), ("like", "campaigns like these"))
EACH = "The effect with its interval: each campaign on its own tasks, then all of them."
POOLED = "Difference in percentage points with its interval: each campaign on its own tasks, then all of them."
PRODUCT = "Difference in percentage points over complete pairs, with limits that hold at any look: each campaign."


@dataclass(frozen=True)
class EffectUnit:
    """How an effect is written and drawn. `name`: of its column; `zero`: no effect; `right`: what lies above
    it."""

    name: str
    axis: str
    zero: float
    word: Callable[[float | None], str]
    limits: Callable[[Interval], str | None]
    scale: Callable[[Sequence[float | None]], Scale]
    right: str = "the treatment passed more often"


IN_POINTS = EffectUnit("points", POINTS, 0.0, bare_points, point_limits, differences)


@dataclass(frozen=True)
class CombinedLine:
    """A campaign, or a way to combine them: a line of the forest plot and of the terminal's table. `kind`: "these"
    tasks, or campaigns "like" these."""

    name: str
    tag: str
    kind: MarkKind
    difference: Interval
    p_value: float | None


@dataclass(frozen=True)
class ShownCombination:
    """`facts`: short ones for the head of a page; `keys`: the kinds of its lines, with their names."""

    name: str
    facts: tuple[str, ...]
    labels: tuple[str, ...]
    answer: tuple[str, ...]
    cautions: tuple[str, ...]
    lines: tuple[CombinedLine, ...]
    keys: tuple[tuple[str, str], ...]
    caption: str
    sections: tuple[ReportSection, ...]
    alpha: float
    unit: EffectUnit = IN_POINTS


def shown(found: Combined) -> ShownCombination:
    """Its sections without those that have no table."""
    if isinstance(found, EvidenceProduct):
        return _shown(found, product_sections(found), _factors(found), KEYS[:1], PRODUCT)
    if isinstance(found, EffectCombination):
        unit = _unit_of(found.kind)
        return _shown(
            found, effect_sections(found), _effects(found), KEYS, POOLED if unit is IN_POINTS else EACH, unit
        )
    return _shown(found, combination_sections(found), _pooled(found), KEYS, POOLED)


def _unit_of(kind: EffectKind) -> EffectUnit:
    if kind.metric is None or kind.scale is None:
        return IN_POINTS
    ratio, words = kind.scale == "ratio", WORDS[kind.metric]
    name = "ratio" if ratio else "difference"
    return EffectUnit(
        name=name,
        axis=f"{words.noun}, {name} {OF_SCALE[kind.scale]}",
        zero=1.0 if ratio else 0.0,
        word=partial(word_effect, kind),
        limits=partial(effect_limits, kind),
        scale=ratios if ratio else partial(amounts, unit=words.unit),
        right=f"the treatment {words.more}",
    )


def _shown(
    found: Combined,
    sections: Iterable[ReportSection],
    lines: Iterable[CombinedLine],
    keys: tuple[tuple[str, str], ...],
    caption: str,
    unit: EffectUnit = IN_POINTS,
) -> ShownCombination:
    return ShownCombination(
        name=found.name,
        facts=(*_facts(found), "bundles verified" if found.verified else "bundles not verified"),
        labels=tuple(one.label for one in found.campaigns),
        answer=found.answer,
        cautions=found.cautions,
        lines=tuple(lines),
        keys=keys,
        caption=f"{caption} Right of {'one' if unit.zero else 'zero'} {unit.right}.",
        sections=tuple(one for one in sections if one.tables),
        alpha=found.alpha,
        unit=unit,
    )


def _facts(found: Combined) -> Iterator[str]:
    yield plural(len(found.campaigns), "campaign")
    if isinstance(found, EvidenceProduct):
        yield f"E = {evidence(found.log_evidence)}"
        return
    pooled = found if isinstance(found, EffectCombination) else found.pooled
    yield plural(pooled.strata, "task")
    yield plural(pooled.trials, "trial")


def _factors(found: EvidenceProduct) -> Iterator[CombinedLine]:
    for one in found.campaigns:
        yield CombinedLine(one.label, plural(one.tasks, "task"), ALL, one.difference, one.p_value)


def _effects(found: EffectCombination) -> Iterator[CombinedLine]:
    for one in found.campaigns:
        yield CombinedLine(one.label, plural(one.tasks, "task"), ALL, one.effect, one.p_value)
    yield from _together(list_effect_rows(found))


def _pooled(found: Combination) -> Iterator[CombinedLine]:
    for one in found.campaigns:
        yield CombinedLine(one.label, plural(one.tasks, "task"), ALL, one.difference, one.test.p_value)
    yield from _together(combined_rows(found))


def _together(rows: Iterable[CombinedRow]) -> Iterator[CombinedLine]:
    for row in rows:
        yield CombinedLine(row.name, "combined", "like" if row.name in LIKE else ALL, row.size, row.p_value)
