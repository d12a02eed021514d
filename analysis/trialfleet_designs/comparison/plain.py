"""Results as a document holds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trialfleet_statistics.estimates import Interval, Test


def plain_test(test: Test) -> Test:
    """Without what a subclass adds, for the document."""
    return Test(**{name: getattr(test, name) for name in Test.__dataclass_fields__})


def plain_interval(interval: Interval) -> Interval:
    """An infinite number is None, with the reason: JSON has no infinity."""
    numbers = (interval.estimate, interval.low, interval.high)
    estimate, low, high = (None if value is not None and np.isinf(value) else value for value in numbers)
    if (estimate, low, high) == numbers:
        return interval
    return replace(interval, estimate=estimate, low=low, high=high, reason=interval.reason or "unbounded")
