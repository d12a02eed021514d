"""Metrics of one condition: what is typical, and how trials spread."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from trialfleet_analysis.estimates import Floats
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme
from trialfleet_analysis.report.document.measures import Distribution

SHOWN = (
    "turns",
    "agent_s",
    "wall_s",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "first_edit_turn",
    "first_edit_s",
)
BINS = 24


def distributions(scheme: Scheme, columns: Columns) -> tuple[Distribution, ...]:
    """Of every metric in `SHOWN` that was measured: counts per bin, the same bins under every condition."""
    return tuple(one for key in SHOWN for one in _of_measure(key, scheme, columns))


def _of_measure(key: str, scheme: Scheme, columns: Columns) -> Iterator[Distribution]:
    values = columns.measures.get(key, np.empty(0))
    known = np.isfinite(values) & columns.valid if values.size else np.empty(0, np.bool_)
    if not known.any():
        return
    edges = _edges(values[known])
    for place, name in enumerate(scheme.conditions):
        mine = values[known & (columns.condition == place)]
        counts = np.histogram(mine, edges)[0]
        middle = tuple(np.quantile(mine, (0.25, 0.5, 0.75)).tolist()) if mine.size else None
        yield Distribution(key, name, tuple(edges.tolist()), tuple(counts.tolist()), middle)


def _edges(values: Floats) -> Floats:
    """From the least to the largest value; whole numbers get bins that hold equally many of them: else some bins
    would look fuller than others."""
    low, high = float(values.min()), float(values.max())
    if np.all(values == np.round(values)):
        width = math.ceil((high - low + 1) / BINS)
        return np.arange(low - 0.5, high + width, width)
    return np.linspace(low, high if high > low else low + 1.0, BINS + 1)
