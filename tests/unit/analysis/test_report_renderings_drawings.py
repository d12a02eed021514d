"""Where things are drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_analysis.process import BlockResult
from trialfleet_analysis.report.figures.forest import Band, Mark
from trialfleet_analysis.report.figures.scales import differences, nice, rates
from trialfleet_analysis.report.html.markup import h, listing
from trialfleet_analysis.report.html.plots import axis, blocks, histogram, incidence, lengths, row, share

FINITE = st.floats(-1, 1)


@given(st.lists(FINITE | st.none(), max_size=6))
def test_a_scale_holds_zero_and_everything(values: list[float | None]) -> None:
    scale = differences(values)
    for value in (0.0, *values):
        assert value is None or scale.low - 1e-9 <= value <= scale.high + 1e-9
    assert 2 <= len(scale.ticks) <= 9
    assert scale.low == pytest.approx(scale.ticks[0])
    assert scale.high == pytest.approx(scale.ticks[-1])


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_places_keep_their_order_and_stay_inside(low: float, width: float) -> None:
    scale = nice(low, low + width, str)
    places = [scale.share(low + width * part) for part in (-1.0, 0.0, 0.5, 1.0, 2.0)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)


def test_differences_beyond_all_points_are_cut() -> None:
    assert (differences([-3.0, 2.0]).low, differences([-3.0, 2.0]).high) == (-1.0, 1.0)


def test_a_mark_lies_where_its_value_is() -> None:
    drawn = row(rates(), [Mark("these", 0.5, 0.25, 0.75)], "label", band=Band(0.1, 0.4))
    [line] = [e for e in drawn.iter("line") if "whisker" in e.attrib["class"]]
    assert (line.attrib["x1"], line.attrib["x2"]) == ("25%", "75%")
    assert [e.attrib["cx"] for e in drawn.iter("circle")] == ["50%"]
    [band] = list(drawn.iter("rect"))
    assert (band.attrib["x"], band.attrib["width"]) == ("10%", "30.00%")
    assert drawn.attrib["aria-label"] == "label"


def test_an_undefined_mark_is_not_drawn() -> None:
    drawn = row(rates(), [Mark("these", None, None, None), Mark("like", 0.5, None, None)], "label")
    assert not list(drawn.iter("circle"))
    assert [e.attrib["class"] for e in drawn.iter("path")] == ["dot like"]
    assert not [e for e in drawn.iter("line") if "whisker" in e.attrib["class"]]


def test_a_histogram_is_as_high_as_its_counts() -> None:
    drawn = histogram(nice(0, 4, str), (0, 1, 2, 3, 4), (0, 5, 10, 0), (1.0, 2.0, 3.0), "label")
    [path] = list(drawn.iter("path"))
    assert re.findall(r"V([\d.]+)", path.attrib["d"]) == ["26", "13", "0", "26", "26"]
    assert [e.attrib["cx"] for e in drawn.iter("circle")] == ["50%"]


def test_a_histogram_of_nothing_draws_nothing() -> None:
    assert not list(histogram(nice(0, 1, str), (0, 1), (0,), None, "label").iter("path"))


def test_a_curve_starts_at_nothing_and_ends_at_its_share() -> None:
    drawn = incidence((10.0, 20.0), (0.25, 0.5), None, "label")
    [curve] = [e for e in drawn.iter("path") if e.attrib["class"] == "curve"]
    assert curve.attrib["d"] == "M0 71.5L50 53.75L100 36"


def test_a_block_without_a_valid_trial_has_no_dot() -> None:
    drawn = blocks([BlockResult(0, 1, 2, 0), BlockResult(1, 0, 0, 2), BlockResult(2, 2, 2, 0)], 0.75, "label")
    assert len(list(drawn.iter("circle"))) == 2


def test_lengths_start_at_zero() -> None:
    drawn = lengths(nice(0, 0.4, str), (0.2, None), "label", aim=0.1)
    [bar] = list(drawn.iter("rect"))
    assert bar.attrib["width"] == "50%"
    assert [e.attrib["x1"] for e in drawn.iter("line") if e.attrib["class"] == "aim"] == ["25%"]


def test_a_share_of_nothing_is_empty() -> None:
    assert [e.attrib["width"] for e in share(0, 0).iter("rect")] == ["100%", "0%"]


def test_an_axis_names_its_ticks() -> None:
    assert [e.text for e in axis(rates()).iter("text")] == ["0", "25", "50", "75", "100%"]


def test_a_long_list_is_not_cut_and_stays_text() -> None:
    words = [f"word{n}" for n in range(2_000)]
    assert (listing("p", [*words, "a\x1bb"], class_="ids").text or "").split() == [*words, "a␛b"]
    assert len(h("p", "x" * 9_000).text or "") == 4_000
