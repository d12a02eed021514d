"""By when trials pass: failing ends a run too, so it competes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trialfleet_analysis.continuous import cumulative_incidence, restricted_time_to_pass_difference
from trialfleet_analysis.estimates import Floats, Integers
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme, places
from trialfleet_analysis.report.document.contrasts import Contrast
from trialfleet_analysis.report.document.measures import Incidence, TimeToPass
from trialfleet_analysis.tables.arrays import Bools

POINTS = 24
PASS, FAIL = 1, 2


def incidence(scheme: Scheme, columns: Columns) -> tuple[Incidence, ...]:
    """Of every condition with times: the mean over its tasks of the share passed by then."""
    time, known = _times(columns)
    if not known.any():
        return ()
    at = np.linspace(0, min(scheme.limit_s, float(time[known].max())), POINTS + 1)[1:]
    found: list[Incidence] = []
    for place, name in enumerate(scheme.conditions):
        mine = known & (columns.condition == place)
        curves = [
            np.asarray(cumulative_incidence(time[mine & of], _cause(columns)[mine & of], at=at).estimate)
            for task in np.unique(columns.task[mine])
            if (of := columns.task == task).any()
        ]
        if curves:
            share = np.mean(curves, axis=0)
            found.append(Incidence(name, tuple(at.tolist()), tuple(share.tolist())))
    return tuple(found)


def times_to_pass(contrasts: Sequence[Contrast], scheme: Scheme, columns: Columns) -> tuple[TimeToPass, ...]:
    """The difference of the mean time to a pass, a failure counting as the whole limit; of tasks with both
    arms."""
    time, known = _times(columns)
    place = places(scheme.conditions)
    found: list[TimeToPass] = []
    for one in contrasts:
        a, b = columns.condition == place[one.treatment], columns.condition == place[one.control]
        both = np.intersect1d(columns.task[known & a], columns.task[known & b])
        kept = known & (a | b) & np.isin(columns.task, both)
        if not kept.any():
            continue
        difference = restricted_time_to_pass_difference(
            np.minimum(time[kept], scheme.limit_s),
            _cause(columns)[kept],
            a[kept],
            columns.task[kept],
            limit=scheme.limit_s,
            level=1 - scheme.alpha,
        )
        found.append(TimeToPass(one.treatment, one.control, scheme.limit_s, difference))
    return tuple(found)


def _times(columns: Columns) -> tuple[Floats, Bools]:
    """Seconds of the agent's own time, and where they are known: what the provider made it wait is not its
    budget's."""
    nothing = np.full(columns.task.shape, np.nan)
    agent = columns.measures.get("agent_s", nothing)
    waited = np.nan_to_num(columns.measures.get("throttled_s", nothing))
    time = np.maximum(agent - waited, 0.0)
    return time, columns.valid & np.isfinite(time)


def _cause(columns: Columns) -> Integers:
    return np.where(columns.passed, PASS, FAIL)
