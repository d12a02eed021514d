"""The pre-declared factors of the tasks, each with its interaction test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trialfleet_analysis.intervals import stratified_miettinen_nurminen
from trialfleet_analysis.plan_of_analysis.columns import Counts, FourCounts, Scheme, places, rates
from trialfleet_analysis.plan_of_analysis.correction import Place, by_holm
from trialfleet_analysis.plan_of_analysis.interaction import interaction, interaction_like_these
from trialfleet_analysis.report.document.contrasts import Adjusted, Contrast, Family, Subgroup, Subgroups
from trialfleet_analysis.tables.arrays import Bools


@dataclass(frozen=True)
class Factors:
    subgroups: tuple[Subgroups, ...]
    families: tuple[Family, ...]


def by_factor(contrast: Contrast, scheme: Scheme, counts: Counts) -> Factors:
    """Each factor that the plan froze, with Holm's correction over the factors' interaction tests."""
    place = places(scheme.conditions)
    a, b = place[contrast.treatment], place[contrast.control]
    shared, four = counts.shared(a, b), counts.arms(a, b)
    names = [name for name, kept in zip(scheme.tasks, shared, strict=True) if kept]
    found = [
        _of_factor(
            factor,
            [level for level, kept in zip(levels, shared, strict=True) if kept],
            names,
            four,
            1 - scheme.alpha,
        )
        for factor, levels in scheme.factors.items()
    ]
    return _corrected(found, scheme.alpha)


def _of_factor(
    factor: str, of_task: list[str | None], names: list[str], four: FourCounts, level: float
) -> Subgroups:
    known = list(dict.fromkeys(value for value in of_task if value is not None))
    members = [np.array([value == one for value in of_task], dtype=np.bool_) for one in known]
    levels = tuple(_subgroup(one, which, names, four, level) for one, which in zip(known, members, strict=True))
    reason = _nothing_to_compare(of_task, known)
    if reason is not None:
        return Subgroups(factor, levels, None, None, None, None, reason)
    differences = rates(four[0], four[1]) - rates(four[2], four[3])
    return Subgroups(
        factor, levels, interaction(four, members), None, interaction_like_these(differences, members), None, None
    )


def _nothing_to_compare(of_task: list[str | None], known: list[str]) -> str | None:
    missing = of_task.count(None)
    if not of_task:
        return "no task with valid trials in both conditions"
    if missing:
        return f"not in the plan for {missing} of {len(of_task)} tasks"
    return f"all tasks are {known[0]}" if len(known) == 1 else None


def _subgroup(name: str, which: Bools, names: list[str], four: FourCounts, level: float) -> Subgroup:
    tasks = tuple(task for task, kept in zip(names, which, strict=True) if kept)
    return Subgroup(name, tasks, stratified_miettinen_nurminen(*(c[which] for c in four), level=level))


def _corrected(found: list[Subgroups], alpha: float) -> Factors:
    done, on_these = by_holm(found, "interactions, these tasks", ON_THESE, alpha=alpha)
    done, like_these = by_holm(done, "interactions, tasks like these", LIKE_THESE, alpha=alpha)
    return Factors(tuple(done), tuple(family for family in (on_these, like_these) if family))


def _name(one: Subgroups) -> str:
    return one.factor


def _on_these(one: Subgroups, adjusted: Adjusted) -> Subgroups:
    return replace(one, adjusted=adjusted)


def _like_these(one: Subgroups, adjusted: Adjusted) -> Subgroups:
    return replace(one, adjusted_like_these=adjusted)


ON_THESE: Place[Subgroups] = Place(lambda one: one.interaction, _on_these, _name)
LIKE_THESE: Place[Subgroups] = Place(lambda one: one.interaction_like_these, _like_these, _name)
