"""Numbers as people read them. Rounding happens here and nowhere else."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

from trialfleet_ledger.metric_table import Unit
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:  # the viewer's pages do without the statistics, whose import takes a second
    from trialfleet_statistics.estimates import Estimand, Interval

NOTHING = "–"
MOST_DIGITS = 4  # of a limit near zero; what is nearer is rounding
# Of significance, as people declare them, and parts of usual ones.
LEVELS = (0.001, 0.005, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.05, 0.075, 0.1, 0.2)
SAME = 1e-9  # rates that differ by less are one
TIES = 1e-7  # relative, as where tests decide: nearer to a level than this is on it
DEMONSTRATED = {True: "yes", False: "not shown", None: NOTHING}
ESTIMANDS: dict[Estimand, str] = {"these_tasks": "these tasks", "tasks_like_these": "tasks like these"}
CLAIMS: dict[str, str] = {  # as declared
    "these_tasks": "these tasks",
    "tasks_like_these": "tasks like these",
    "other_repositories": "tasks of other repositories",
}


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
    return f"{bare_points(difference)} points"


def compare_rates(treatment: float | None, control: float | None, difference: float | None) -> str:
    """Two rates and the estimate of their difference. Printed figures that do not add up are said to be rounded.

    >>> compare_rates(0.558, 0.461, 0.097)
    '55.8% against 46.1%, a difference of +9.7 points'
    >>> compare_rates(0.5575, 0.4611, 0.0964)
    '55.8% against 46.1%, a difference of +9.6 points before rounding'
    """
    said = f"{percent(treatment)} against {percent(control)}, a difference of "
    if treatment is None or control is None or difference is None:
        return said + (NOTHING if difference is None else points(difference))
    is_theirs = abs(treatment - control - difference) < SAME
    adds_up = round(round(100 * treatment, 1) - round(100 * control, 1), 1) == round(100 * difference, 1)
    return f"{said}{points(difference)}{' before rounding' if is_theirs and not adds_up else ''}"


def bare_points(difference: float | None) -> str:
    """As `points`, where the column names the unit; what rounds to zero has no sign.

    >>> bare_points(-0.125), bare_points(-0.0001), bare_points(None)
    ('−12.5', '0.0', '–')
    """
    return NOTHING if difference is None else signed(100 * difference, 1)


def unsigned_points(size: float | None) -> str:
    """A size on the rate scale in points, without sign.

    >>> unsigned_points(0.125), unsigned_points(None)
    ('12.5', '–')
    """
    return NOTHING if size is None else decimals(100 * size, 1)


def signed(value: float, digits: int) -> str:
    text = f"{value:+,.{digits}f}"
    return text[1:] if not float(text.replace(",", "")) else text.replace("-", "−")


def name_these(tasks: int) -> str:
    """
    >>> name_these(1), name_these(12)
    ('this one task', 'these 12 tasks')
    """
    return "this one task" if tasks == 1 else f"these {plural(tasks, 'task')}"


def limits(interval: Interval) -> str:
    """Both limits in per cent; a dash when undefined."""
    if interval.low is None or interval.high is None:
        return NOTHING
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}%"


def point_limits(difference: Interval) -> str | None:
    """Both limits of a difference of rates, in points; None when undefined."""
    if difference.low is None or difference.high is None:
        return None
    return points_between(difference.low, difference.high)


def points_between(low: float, high: float) -> str:
    """Two limits of a difference of rates, in points."""
    return f"{limit_points(low)} to {limit_points(high)}"


def cut_at(difference: Interval) -> str | None:
    """Where limits are cut, since no difference of rates lies beyond ±100 points."""
    cut = [f"{100 * end:+.0f}".replace("-", "−") for end in (-1, 1) if end in (difference.low, difference.high)]
    return f"cut at {' and '.join(cut)}" if cut else None


def limit_points(limit: float) -> str:
    """As `bare_points`, with as many decimals as show the side of zero on which the limit lies.

    >>> limit_points(0.0002), limit_points(-0.00004), limit_points(0.373), limit_points(0.0)
    ('+0.02', '−0.004', '+37.3', '0.0')
    """
    digits = next((n for n in range(1, MOST_DIGITS + 1) if round(100 * abs(limit), n)), 1)
    return signed(100 * limit, digits)


def p_value(p: float | None, alpha: float = 0.05) -> str:
    """Two figures, and never 0; more where these would hide on which side of a level p lies: of the declared one,
    or of one that is common.

    >>> p_value(0.0432), p_value(0.00002), p_value(0.1234), p_value(1.0), p_value(None)
    ('p = 0.043', 'p < 0.0001', 'p = 0.12', 'p = 1', 'p undefined')
    >>> p_value(0.1004), p_value(0.05), p_value(0.049996)
    ('p = 0.1004', 'p = 0.05', 'p = 0.049996')
    >>> p_value(0.0301, alpha=0.03), p_value(0.025000000000000005)
    ('p = 0.0301', 'p = 0.025')
    >>> p_value(0.0304), p_value(0.0304, alpha=0.03)
    ('p = 0.03', 'p = 0.0304')
    """
    if p is None:
        return "p undefined"
    texts = (f"{p:.{digits}g}" for digits in range(2, 17))
    shown = next((one for one in texts if _sides(float(one), alpha) == _sides(p, alpha)), repr(p))
    return "p < 0.0001" if p < 0.0001 else f"p = {shown}"


def _sides(p: float, alpha: float) -> tuple[int, int]:
    """How many levels p lies above, and how many it reaches."""
    levels = (*LEVELS, alpha)
    return sum(p > one * (1 + TIES) for one in levels), sum(p >= one * (1 - TIES) for one in levels)


def bare_p(p: float | None, alpha: float = 0.05) -> str:
    """As `p_value`, where the column says that it is one.

    >>> bare_p(0.0432), bare_p(0.00002), bare_p(None)
    ('0.043', '< 0.0001', '–')
    """
    return NOTHING if p is None else p_value(p, alpha).removeprefix("p ").removeprefix("= ")


def short_limits(interval: Interval) -> str:
    """Both limits in whole per cent, for crowded places.

    >>> from trialfleet_statistics.intervals import wilson
    >>> short_limits(wilson(3, 5))
    '23–88'
    """
    if interval.low is None or interval.high is None:
        return NOTHING
    return f"{100 * interval.low:.0f}–{100 * interval.high:.0f}"


def quantity(value: float | None, unit: Unit) -> str:
    """A metric with its unit, to two or three figures.

    >>> quantity(1234567, "count"), quantity(3.5, "count"), quantity(0.01234, "usd"), quantity(75.25, "s")
    ('1,234,567', '3.5', '$0.012', '1 m 15 s')
    >>> quantity(-3, "s"), quantity(-0.5, "usd"), quantity(-0.001, "s"), quantity(5400, "s"), quantity(0, "usd")
    ('−3.00 s', '−$0.50', '0.00 s', '1 h 30 m', '$0.00')
    """
    if value is None:
        return NOTHING
    size = abs(value)
    shown = _unsigned_quantity(size, unit)
    return f"−{shown}" if value < 0 and re.search("[1-9]", shown) else shown


def _unsigned_quantity(size: float, unit: Unit) -> str:
    if unit == "share":
        return percent(size)
    if unit == "usd":
        return f"${size:,.{2 if size >= 0.1 else _cent_digits(size)}f}"
    if unit == "s":
        return _duration(size)
    return f"{size:,.0f}" if size == int(size) or size >= 1000 else f"{size:,.1f}"


def _cent_digits(size: float) -> int:
    """Decimals that show two figures of an amount below ten cents."""
    return min(MOST_DIGITS + 2, max(2, 1 - math.floor(math.log10(size)))) if size else 2


def _duration(size: float) -> str:
    if round(size, 1) < 60:
        return f"{size:.2f} s" if size < 10 else f"{size:.1f} s"
    minutes, rest = divmod(round(size), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02} s"
    hours, minutes = divmod(round(size / 60), 60)
    return f"{hours:,} h {minutes:02} m"


def change(value: float | None, unit: Unit) -> str:
    """A difference of a metric: `quantity` that shows its sign.

    >>> change(2.5, "count"), change(-2.5, "s"), change(0, "count"), change(0.001, "s")
    ('+2.5', '−2.50 s', '0', '0.00 s')
    """
    text = quantity(value, unit)
    return f"+{text}" if value is not None and value > 0 and re.search("[1-9]", text) else text


def times(ratio: float | None) -> str:
    """A ratio.

    >>> times(0.734), times(None)
    ('×0.73', '–')
    """
    return NOTHING if ratio is None else f"×{ratio:,.2f}"


def limit_times(limit: float) -> str:
    """As `times`, with as many decimals as show the side of 1 on which the limit lies.

    >>> limit_times(1.0031), limit_times(0.99996), limit_times(0.734), limit_times(1.0)
    ('×1.003', '×0.99996', '×0.73', '×1.00')
    """
    return f"×{limit_ratio(limit)}"


def limit_ratio(limit: float | None) -> str:
    """The same without its sign: of odds.

    >>> limit_ratio(0.9987), limit_ratio(2.4), limit_ratio(None)
    ('0.999', '2.40', '–')
    """
    if limit is None:
        return NOTHING
    return decimals(limit, next((n for n in range(2, MOST_DIGITS + 3) if round(abs(limit - 1), n)), 2))


def limit_change(limit: float, unit: Unit) -> str:
    """As `change`, with as many decimals as show the side of 0 on which the limit lies.

    >>> limit_change(0.034, "count"), limit_change(-0.0021, "s"), limit_change(2.5, "count"), limit_change(0, "s")
    ('+0.034', '−0.0021 s', '+2.5', '0.00 s')
    """
    shown, digits = change(limit, unit), _cent_digits(abs(limit))
    if re.search("[1-9]", shown) or not float(f"{limit:.{digits}f}"):
        return shown
    return signed(limit, digits) + (" s" if unit == "s" else "")


def decimals(value: float | None, digits: int = 2) -> str:
    """
    >>> decimals(2.4008), decimals(-0.5), decimals(-0.001), decimals(None)
    ('2.40', '−0.50', '0.00', '–')
    """
    return NOTHING if value is None else f"{value:z,.{digits}f}".replace("-", "−")


def brief(value: float, unit: Unit | Literal["points"]) -> str:
    """A number on an axis: few characters.

    >>> brief(90_000, "count"), brief(2.5e6, "count"), brief(0.5, "usd"), brief(40, "s")
    ('90k', '2.5M', '$0.5', '40 s')
    """
    number = next((f"{value / by:.3g}{letter}" for by, letter in ((1e6, "M"), (1e3, "k")) if abs(value) >= by), "")
    number = (number or f"{value:.3g}").replace("-", "−")
    return {"usd": f"${number}", "s": f"{number} s", "share": f"{100 * value:.3g}%"}.get(unit, number)


def seconds(value: float | None) -> str:
    """Core seconds, two decimals."""
    return NOTHING if value is None else f"{value:.2f} s"


def evidence(log: float) -> str:
    """An e-value, of its logarithm.

    >>> evidence(5.2), evidence(0.5), evidence(580.0)
    ('181', '1.65', '10^252')
    """
    if log > math.log(1e6):
        return f"10^{log / math.log(10):.0f}"
    value = math.exp(log)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if 0 < value < 0.01 else decimals(value, 2)


def level(of: float) -> str:
    """A level of confidence.

    >>> level(0.95), level(1 - 0.025)
    ('95%', '97.5%')
    """
    return f"{100 * of:.4g}%"
