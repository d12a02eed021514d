"""The estimates of a declared test, to be drawn beside its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trialfleet_statistics.estimates import Interval


@dataclass(frozen=True)
class DrawnEffect:
    """`unit`: of `interval`, a difference of rates or a ratio; `limits`: both in words, None without any;
    `margins`: what the test is against; `less`, `more`: what lies on either side of no effect."""

    title: str
    unit: Literal["difference", "ratio"]
    interval: Interval
    less: str
    more: str
    limits: str | None
    margins: tuple[float, ...] = ()
