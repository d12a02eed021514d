"""Each task's own test, screened by Benjamini and Hochberg, with what it could have shown at best."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trialfleet_designs.comparison.columns import CellCounts, FourCounts, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.correction import Family
from trialfleet_statistics.comparisons import fisher
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.intervals import miettinen_nurminen
from trialfleet_statistics.multiplicity import Attainability, attainability, benjamini_hochberg


@dataclass(frozen=True)
class TaskEffect:
    """One task's difference, with Miettinen and Nurminen's 95 % limits, and its Fisher test. `label`: what it
    could have shown at best; `tasks_needed`: in this family, how many tasks would have to be as clear for it to
    be found; None where one is enough or none could. `adjusted` None: dropped from the family, it could not
    reach alpha."""

    task: str
    passes_treatment: int
    valid_treatment: int
    passes_control: int
    valid_control: int
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float | None
    found: bool
    attainable_p: float
    label: Attainability
    tasks_needed: int | None


@dataclass(frozen=True)
class TaskScreening:
    """All tasks of one contrast, screened by Benjamini and Hochberg."""

    treatment: str
    control: str
    family: str
    tasks: tuple[TaskEffect, ...]


@dataclass(frozen=True)
class Screened:
    screen: TaskScreening
    family: Family


def screened(contrast: Contrast, scheme: Scheme, counts: CellCounts) -> Screened | None:
    """Fisher's two-sided test of every task of the contrast; None without one.

    Tasks whose margins alone keep p above alpha are dropped before the correction, counted and named (Tarone
    1990): that choice sees the totals and never the split.
    """
    a, b = scheme.pair(contrast)
    tasks = counts.tasks_of(scheme, contrast)
    names = [name for name, kept in zip(scheme.tasks, tasks, strict=True) if kept]
    four = counts.arms(a, b, tasks)
    if not names:
        return None
    tests, reach = fisher(*four), best_split(four)
    found = benjamini_hochberg(tests.p_value, attainable=tests.attainable_p, alpha=scheme.alpha)
    differences = miettinen_nurminen(*four)
    effects: list[TaskEffect] = []
    for n, name in enumerate(names):
        could = attainability(
            float(reach[n]),
            float(tests.attainable_p[n]),
            family_size=max(1, found.family_size),
            alpha=scheme.alpha,
        )
        adjusted = float(found.adjusted[n])
        effects.append(
            TaskEffect(
                task=name,
                passes_treatment=int(four[0][n]),
                valid_treatment=int(four[1][n]),
                passes_control=int(four[2][n]),
                valid_control=int(four[3][n]),
                difference=float(differences.estimate[n]),
                low=float(differences.low[n]),
                high=float(differences.high[n]),
                p_value=float(tests.p_value[n]),
                adjusted=None if math.isnan(adjusted) else adjusted,
                found=bool(found.rejected[n]),
                attainable_p=float(tests.attainable_p[n]),
                label=could.label,
                tasks_needed=could.agreeing if could.label is Attainability.NOT_ALONE else None,
            )
        )
    name = f"tasks of {contrast.name}"
    dropped = tuple(of.task for of in effects if of.adjusted is None)
    family = Family(name, "benjamini_hochberg", scheme.alpha, found.family_size, dropped)
    return Screened(TaskScreening(contrast.treatment, contrast.control, name, tuple(effects)), family)


def best_split(four: FourCounts) -> Floats:
    """The least p that any split of these reps could give: all of one arm, none of the other."""
    _, n_a, _, n_b = four
    return np.asarray(fisher(n_a, n_a, np.zeros_like(n_b), n_b).p_value)
