"""Rounding hides neither on which side of a level a p lies, nor on which side of no effect a limit does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_designs.document.figures import (
    LEVELS,
    bare_p,
    limit_change,
    limit_points,
    limit_times,
    p_value,
    points_between,
)
from trialfleet_ledger.metric_table import Unit

ANY_P = st.floats(1e-4, 1)
# What people declare: one figure, parts of usual ones, and anything.
ALPHAS = st.one_of(st.sampled_from(LEVELS), st.floats(0.001, 0.499).map(lambda alpha: round(alpha, 3)))
NEAR = st.floats(-1e-3, 1e-3).filter(bool)


def read_number(text: str) -> float:
    return float(re.sub(r"[^\d.e-]", "", text.replace("−", "-")))


@given(ANY_P, ALPHAS, st.floats(-0.02, 0.02))
def test_a_printed_p_is_on_its_side_of_alpha(p: float, alpha: float, off: float) -> None:
    for one in (p, min(1.0, alpha * (1 + off))):
        for shown in (p_value(one, alpha), bare_p(one, alpha)):
            printed = read_number(shown)
            assert (printed <= alpha * (1 + 1e-7)) == (one <= alpha * (1 + 1e-7)), (one, alpha, shown)


@given(ANY_P, st.sampled_from(LEVELS), st.floats(-0.02, 0.02))
def test_where_a_table_does_not_know_alpha_it_is_on_its_side_of_what_people_declare(
    p: float, alpha: float, off: float
) -> None:
    for one in (p, min(1.0, alpha * (1 + off))):
        assert (read_number(bare_p(one)) <= alpha * (1 + 1e-7)) == (one <= alpha * (1 + 1e-7))


@given(NEAR)
def test_a_ratio_s_limit_is_on_its_side_of_1(off: float) -> None:
    printed = read_number(limit_times(1 + off))
    assert (printed - 1) * off >= 0
    if abs(off) > 1e-6:
        assert printed != 1


@pytest.mark.parametrize("unit", ["usd", "count", "s"])
@given(limit=st.one_of(NEAR, st.floats(-5, 5)))
def test_a_difference_s_limit_is_on_its_side_of_0(unit: Unit, limit: float) -> None:
    shown = limit_change(limit, unit)
    assert shown.startswith("−") if limit < -1e-5 else not shown.startswith("−") or limit < 0
    assert bool(re.search("[1-9]", shown)) or abs(limit) < 1e-5, shown


@given(st.floats(-1, 1))
def test_a_limit_in_points_is_on_its_side_of_0(limit: float) -> None:
    printed = read_number(limit_points(limit))
    assert printed * limit >= 0
    assert printed or abs(limit) < 1e-6
    assert points_between(limit, limit).startswith(limit_points(limit))
