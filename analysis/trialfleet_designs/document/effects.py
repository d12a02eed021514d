"""The estimates of a declared test, to be drawn beside its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trialfleet_ledger.metric_table import Unit
from trialfleet_statistics.estimates import Interval


@dataclass(frozen=True)
class DrawnEffect:
    """`unit`: of `interval`, a difference of rates, a ratio, or a difference in a metric's unit; `limits`: both in
    words, None without any; `margins`: what the test is against; `less`, `more`: what lies on either side of no
    effect."""

    title: str
    unit: Literal["difference", "ratio"] | Unit
    interval: Interval
    less: str
    more: str
    limits: str | None
    margins: tuple[float, ...] = ()
