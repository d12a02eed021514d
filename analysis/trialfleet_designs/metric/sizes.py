"""The size of a metric's effect in words, on the declared scale."""

from __future__ import annotations

from trialfleet_designs.document.figures import change, limit_change, limit_times, times
from trialfleet_designs.metric.words import WORDS
from trialfleet_ledger.designs.metric import ComparedMetric, MetricScale
from trialfleet_statistics.estimates import Interval

OF_SCALE: dict[MetricScale, str] = {"ratio": "in a typical task", "difference": "a trial on average"}
NAMES: dict[MetricScale, str] = {"ratio": "Ratio in a typical task", "difference": "Difference of means"}


def word_size(scale: MetricScale, metric: ComparedMetric, size: float | None) -> str:
    """An estimate.

    >>> word_size("ratio", "turns", 0.8), word_size("difference", "cost_usd", -0.12)
    ('×0.80', '−$0.12')
    """
    return times(size) if scale == "ratio" else change(size, WORDS[metric].unit)


def word_limits(scale: MetricScale, metric: ComparedMetric, size: Interval) -> str | None:
    """Both limits, each on its side of no effect; None where neither is known."""
    if size.low is None and size.high is None:
        return None
    if scale == "ratio":
        low = "0" if size.low is None else limit_times(size.low)
        return f"{low} to {'unbounded' if size.high is None else limit_times(size.high)}"
    unit = WORDS[metric].unit
    low, high = ("unbounded" if end is None else limit_change(end, unit) for end in (size.low, size.high))
    return f"{low} to {high}"
