"""No sentence that its own data contradict, in random campaigns, and none that nobody has read.

`python -m tests.bench sentences` draws more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import printed_samples as samples
from tests.support.random_campaigns import draw_campaign
from tests.support.sentence_checks import contradictions
from tests.support.sentence_list import ADVICE, LIST, read_list, unread, write_list
from tests.support.sentence_shapes import find_faults

PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_no_sentence_contradicts_its_own_data(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    samples.leave_out_what_takes_long(monkeypatch)
    found, printed = list[tuple[int, str]](), list[tuple[str, str]]()
    for seed in samples.DRAWN[part::PARTS]:
        drawn = draw_campaign(seed, largest=3)
        found += [(seed, one) for one in contradictions(drawn)]
        if seed in samples.READ:
            printed += samples.of_file(drawn.report)
    assert found == []
    assert unread(printed) == [], ADVICE


def test_every_sentence_with_models_power_and_metrics_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    samples.simulate_less(monkeypatch)
    whole = (samples.of_file(draw_campaign(seed, largest=3).report) for seed in samples.WHOLE)
    assert unread(one for printed in whole for one in printed) == [], ADVICE


def test_every_sentence_of_the_other_surfaces_is_read(tmp_path: Path) -> None:
    assert unread(samples.every_sample(tmp_path)) == [], ADVICE


def test_the_list_is_as_it_is_written_and_without_faults() -> None:
    text = LIST.read_text(encoding="utf-8")
    listed = read_list(text)
    assert write_list(listed.values(), listed) == text
    assert [one for _, one in listed.values() if find_faults(one)] == []


def test_a_sentence_that_nobody_has_read_is_named() -> None:
    [said] = unread([("status", "the moon is made of 3 cheeses"), ("status", "the moon is made of 4 cheeses")])
    assert said == "status: the moon is made of 3 cheeses (not listed)"
    [said] = unread([("status", "a difference of −0.0 points in 1 trials")])
    assert said.endswith("(zero has no sign, one thing in the plural)")
