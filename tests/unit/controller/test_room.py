"""Whether attempts have room, as `doctor` says it."""

from __future__ import annotations

import pytest

from trialfleet_controller.doctor import attempts_fit

GIB = 2**30


@pytest.mark.parametrize(
    ("free", "slots", "campaign", "result"),
    [
        (16 * GIB, 2, True, "ok"),
        (15 * GIB, 2, True, "warning"),  # both may use all of their limit
        (7 * GIB, 1, True, "missing"),  # no attempt would begin
        (7 * GIB, 1, False, "warning"),  # a campaign may ask for less
        (8 * GIB, 1, False, "ok"),
        (None, 1, False, "missing"),
    ],
)
def test_room_for_the_limit_of_every_slot(free: int | None, slots: int, campaign: bool, result: str) -> None:
    check = attempts_fit(free, 8 * GIB, slots, campaign=campaign)
    assert check.result == result
    assert (check.fix is None) == (result == "ok")
