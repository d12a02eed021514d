"""Numbers as people read them. Rounding happens here and nowhere else."""

from __future__ import annotations

from trialfleet_analysis.intervals import Interval
from trialfleet_analysis.process import Unit

NOTHING = "–"


def percent(rate: float | None) -> str:
    """One decimal; a dash for what is undefined.

    >>> percent(0.625), percent(None)
    ('62.5%', '–')
    """
    return NOTHING if rate is None else f"{100 * rate:.1f}%"


def points(difference: float) -> str:
    """A difference of rates, signed, in percentage points.

    >>> points(0.125), points(-0.125)
    ('+12.5 points', '−12.5 points')
    """
    return f"{100 * difference:+.1f} points".replace("-", "−")


def limits(interval: Interval) -> str:
    """Both limits in per cent; a dash when undefined."""
    if interval.low is None or interval.high is None:
        return NOTHING
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}%"


def short_limits(interval: Interval) -> str:
    """Both limits in whole per cent, for crowded places.

    >>> from trialfleet_analysis.intervals import wilson
    >>> short_limits(wilson(3, 5))
    '23–88'
    """
    if interval.low is None or interval.high is None:
        return NOTHING
    return f"{100 * interval.low:.0f}–{100 * interval.high:.0f}"


def quantity(value: float | None, unit: Unit) -> str:
    """A metric with its unit, to about three figures.

    >>> quantity(1234567, "count"), quantity(3.5, "count"), quantity(0.01234, "usd"), quantity(75.25, "s")
    ('1,234,567', '3.5', '$0.0123', '75.2 s')
    """
    if value is None:
        return NOTHING
    if unit == "share":
        return percent(value)
    if unit == "usd":
        return f"${value:.4f}" if abs(value) < 1 else f"${value:,.2f}"
    if unit == "s":
        return f"{value:.2f} s" if abs(value) < 10 else f"{value:,.1f} s"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def seconds(value: float | None) -> str:
    """Core seconds, two decimals."""
    return NOTHING if value is None else f"{value:.2f} s"


def plural(number: int, noun: str) -> str:
    """
    >>> plural(1, "trial"), plural(2, "trial"), plural(1200, "task")
    ('1 trial', '2 trials', '1,200 tasks')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
