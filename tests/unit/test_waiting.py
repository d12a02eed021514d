"""Waiting in tests, on a machine that does something else meanwhile."""

from __future__ import annotations

import os
import time

import pytest

from tests.support.waiting import core_share, wait_until


@pytest.mark.parametrize(("load", "share"), [(0.0, 1.0), (2.0, 1.0), (4.0, 0.5), (30.0, 0.25)])
def test_a_second_counts_for_the_share_of_a_core(load: float, share: float) -> None:
    assert core_share(load, 2) == share


def test_a_wait_ends_later_where_many_want_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_for_nothing(load: float) -> float:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
        began = time.monotonic()
        with pytest.raises(AssertionError, match=r"not within 0\.2 s: nothing"):
            wait_until(lambda: False, "nothing", within_s=0.2)
        return time.monotonic() - began

    assert wait_for_nothing(0) >= 0.2
    assert wait_for_nothing(8) >= 0.8
