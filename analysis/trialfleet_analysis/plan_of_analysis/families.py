"""Which contrasts there are, and which of their p-values are corrected together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from trialfleet_analysis.estimates import Estimand
from trialfleet_analysis.plan_of_analysis.columns import Columns, Counts, Scheme
from trialfleet_analysis.plan_of_analysis.contrast import Sides, contrasted
from trialfleet_analysis.plan_of_analysis.correction import Place, by_holm
from trialfleet_analysis.report.document.contrasts import Adjusted, Contrast, Family

WORDS: dict[Estimand, str] = {"these_tasks": "these tasks", "tasks_like_these": "tasks like these"}


@dataclass(frozen=True)
class Corrected:
    contrasts: tuple[Contrast, ...]
    families: tuple[Family, ...]


def sides(scheme: Scheme, asked: Sequence[tuple[str, str]] = ()) -> tuple[Sides, ...]:
    """The declared primary first and every other condition against its control; all pairs, the later condition of
    the plan as treatment, where none was declared. A condition that tells what only the fix knows is a ceiling,
    and none of the others. `asked`: (treatment, control) from outside the plan, last."""
    declared = scheme.declared
    if declared is None:
        found = [Sides(later, first, "unplanned") for first, later in combinations(_attainable(scheme), 2)]
        found += [Sides(ceiling, name, "ceiling") for ceiling in _ceilings(scheme) for name in _attainable(scheme)]
    else:
        others = [name for name in scheme.conditions if name not in (declared.treatment, declared.control)]
        found = [Sides(declared.treatment, declared.control, "primary")]
        found += [Sides(name, declared.control, "secondary") for name in others if name in _attainable(scheme)]
        found += [Sides(name, declared.control, "ceiling") for name in others if name in _ceilings(scheme)]
    known = {(one.treatment, one.control) for one in found}
    return (*found, *(Sides(a, b, "asked") for a, b in dict.fromkeys(asked) if (a, b) not in known))


def _ceilings(scheme: Scheme) -> tuple[str, ...]:
    return tuple(name for name in scheme.conditions if scheme.composed[name].ceiling)


def _attainable(scheme: Scheme) -> tuple[str, ...]:
    return tuple(name for name in scheme.conditions if not scheme.composed[name].ceiling)


def all_contrasts(scheme: Scheme, columns: Columns, counts: Counts, wanted: Sequence[Sides]) -> Corrected:
    """Every contrast, with Holm's correction in its family.

    The declared primary in its declared estimand stands alone, uncorrected. All other tests of a rate belong to
    one family per estimand, the primary contrast's own test in the other estimand among them, and those with a
    ceiling to another: they cost the questions nothing. No test is shown outside of a family. Tests without a
    p-value take no part.
    """
    found = [contrasted(one, scheme, columns, counts) for one in wanted]
    families: list[Family] = []
    for estimand, place in PLACES.items():
        alone = scheme.declared is not None and scheme.declared.estimand == estimand
        kept = [one for one in found if alone and one.role == "primary"]
        name = "contrasts beside the primary" if scheme.declared else "all pairwise contrasts"
        ceilings = [one for one in found if one.role == "ceiling"]
        others = [one for one in found if one not in kept and one not in ceilings]
        done, family = by_holm(others, f"{name}, {WORDS[estimand]}", place, alpha=scheme.alpha)
        above, apart = by_holm(ceilings, f"ceilings, {WORDS[estimand]}", place, alpha=scheme.alpha)
        found = [*kept, *done, *above]
        families += [one for one in (family, apart) if one]
    return Corrected(tuple(found), tuple(families))


def _name(contrast: Contrast) -> str:
    return contrast.name


def _on_these(contrast: Contrast, adjusted: Adjusted) -> Contrast:
    return replace(contrast, these_tasks=replace(contrast.these_tasks, adjusted=adjusted))


def _like_these(contrast: Contrast, adjusted: Adjusted) -> Contrast:
    return replace(contrast, tasks_like_these=replace(contrast.tasks_like_these, adjusted=adjusted))


PLACES: dict[Estimand, Place[Contrast]] = {
    "these_tasks": Place(lambda one: one.these_tasks.test, _on_these, _name),
    "tasks_like_these": Place(lambda one: one.tasks_like_these.test, _like_these, _name),
}
