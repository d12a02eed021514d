"""What every format shows of a combination, of either kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.product import EvidenceProduct
from trialfleet_analysis.combining.product_text import product_sections
from trialfleet_analysis.combining.sections import combination_sections, combined_rows
from trialfleet_analysis.report.figures.forest import MarkKind
from trialfleet_designs.document.figures import evidence
from trialfleet_designs.document.tables import ReportSection
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Interval

Combined: TypeAlias = Combination | EvidenceProduct
LIKE = frozenset({"Random effects", "Another campaign"})
ALL: MarkKind = "these"
KEYS = (("these", "these tasks"), ("like", "campaigns like these"))
POOLED = "Difference in percentage points with its interval: each campaign on its own tasks, then all of them."
PRODUCT = "Difference in percentage points over complete pairs, with limits that hold at any look: each campaign."


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


def shown(found: Combined) -> ShownCombination:
    """Its sections without those that have no table."""
    if isinstance(found, EvidenceProduct):
        return _shown(found, product_sections(found), _factors(found), KEYS[:1], PRODUCT)
    return _shown(found, combination_sections(found), _pooled(found), KEYS, POOLED)


def _shown(
    found: Combined,
    sections: Iterable[ReportSection],
    lines: Iterable[CombinedLine],
    keys: tuple[tuple[str, str], ...],
    caption: str,
) -> ShownCombination:
    return ShownCombination(
        name=found.name,
        facts=(*_facts(found), "bundles verified" if found.verified else "bundles not verified"),
        labels=tuple(one.label for one in found.campaigns),
        answer=found.answer,
        cautions=found.cautions,
        lines=tuple(lines),
        keys=keys,
        caption=f"{caption} Right of zero the treatment passed more often.",
        sections=tuple(one for one in sections if one.tables),
    )


def _facts(found: Combined) -> Iterator[str]:
    yield plural(len(found.campaigns), "campaign")
    if isinstance(found, EvidenceProduct):
        yield f"E = {evidence(found.log_evidence)}"
        return
    yield plural(found.pooled.strata, "task")
    yield plural(found.pooled.trials, "trial")


def _factors(found: EvidenceProduct) -> Iterator[CombinedLine]:
    for one in found.campaigns:
        yield CombinedLine(one.label, plural(one.tasks, "task"), ALL, one.difference, one.p_value)


def _pooled(found: Combination) -> Iterator[CombinedLine]:
    for one in found.campaigns:
        yield CombinedLine(one.label, plural(one.tasks, "task"), ALL, one.difference, one.test.p_value)
    for row in combined_rows(found):
        p = None if row.test is None else row.test.p_value
        yield CombinedLine(row.name, "combined", "like" if row.name in LIKE else ALL, row.difference, p)
