"""Scales of drawings, with round ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trialfleet_designs.document.figures import brief, decimals
from trialfleet_ledger.metric_table import Unit

STEPS = (1, 2, 2.5, 5, 10)
MOST_TICKS = 6
LOG_STEPS = ((1, 2, 5), (1,))  # marks within a factor of ten
MOST_RATIO = 1e3


@dataclass(frozen=True)
class Scale:
    """A line from `low` to `high` with marks at `ticks`; `text` names a mark. `log`: equal lengths are equal
    ratios."""

    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    log: bool = False

    def at(self, value: float) -> str:
        """Per cent of the width, kept inside."""
        return f"{100 * self.share(value):.2f}".rstrip("0").rstrip(".") + "%"

    def share(self, value: float) -> float:
        """Of the width, 0 to 1, kept inside."""
        if self.log:
            held = max(self.low, value)
            return min(1.0, math.log(held / self.low) / math.log(self.high / self.low))
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def rates() -> Scale:
    """From 0 to 100%."""
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    return Scale(0.0, 1.0, ticks, lambda tick: f"{100 * tick:.0f}%" if tick == 1 else f"{100 * tick:.0f}")


def differences(values: Iterable[float | None]) -> Scale:
    """Of rates, in points: round ends that hold 0 and all the values, at most −100 to +100."""
    known = [max(-1.0, min(1.0, value)) for value in values if value is not None]
    return nice(min([0.0, *known]), max([0.0, *known]), _points)


def amounts(values: Iterable[float | None], unit: Unit) -> Scale:
    """Of a metric, in its unit: round ends that hold 0 and all the values."""
    known = [0.0, *(value for value in values if value is not None)]
    return nice(min(known), max(known), lambda value: brief(value, unit))


def ratios(values: Iterable[float | None]) -> Scale:
    """Logarithmic, with round ends that hold 1 and all the values, at most a thousandth to a thousand.

    >>> scale = ratios([0.4, 2.5])
    >>> [scale.text(tick) for tick in scale.ticks], round(scale.share(1.0), 3)
    (['×0.2', '×0.5', '×1', '×2', '×5'], 0.5)
    >>> [ratios([0.97, 1.04]).text(tick) for tick in ratios([0.97, 1.04]).ticks][:3]
    ['×0.96', '×0.98', '×1.00']
    """
    known = [1.0, *(min(MOST_RATIO, max(1 / MOST_RATIO, value)) for value in values if value is not None)]
    low, high = min(known), max(known)
    if high < low * (1 + 1e-6):
        low, high = 0.9, 1.1
    if high < 2 * low:  # so narrow that equal steps are nearly equal ratios
        ticks = nice(low, high, str).ticks
        digits = next((n for n in range(2, 9) if all(abs(round(one, n) - one) < 1e-9 for one in ticks)), 9)
        return Scale(ticks[0], ticks[-1], ticks, lambda value: f"×{value:.{digits}f}", log=True)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    each = next(some for some in LOG_STEPS if len(some) * math.log10(high / low) <= MOST_TICKS or len(some) == 1)
    marks = sorted({step * 10.0**decade for decade in decades for step in each})
    first = max(place for place, one in enumerate(marks) if one <= low * (1 + 1e-9))
    last = min(place for place, one in enumerate(marks) if one >= high * (1 - 1e-9))
    ticks = tuple(marks[first : last + 1])
    return Scale(ticks[0], ticks[-1], ticks, lambda value: f"×{value:,.4g}", log=True)


def nice(low: float, high: float, text: Callable[[float], str]) -> Scale:
    """The least scale with round ends that holds both.

    >>> [round(tick, 3) for tick in nice(-0.07, 0.31, str).ticks]
    [-0.1, 0.0, 0.1, 0.2, 0.3, 0.4]
    """
    width = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-12)
    step = _step(width / MOST_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return Scale(first * step, last * step, tuple(step * n for n in range(first, last + 1)), text)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def _points(value: float) -> str:
    shown = decimals(100 * value, 0 if abs(100 * value - round(100 * value)) < 1e-6 else 1)
    return f"+{shown}" if value > 1e-9 else shown
