"""A long command says what it does where no terminal shows it."""

from __future__ import annotations

import re
import time

import pytest

from trialfleet_targets.progress import count_items, show_progress


def test_it_speaks_until_it_ends(capfd: pytest.CaptureFixture[str]) -> None:
    with show_progress("reading", every_s=0.05) as report:
        time.sleep(0.2)
        report("parsing 7 of 9 files")
        time.sleep(0.2)
    time.sleep(0.1)
    printed, lines = capfd.readouterr()
    assert printed == ""
    reports = [re.sub(r" \(\d+ s\)$", "", line) for line in lines.splitlines()]
    assert reports[0] == "trialfleet: reading"
    assert reports[-1] == "trialfleet: parsing 7 of 9 files"


def test_a_short_command_and_one_that_fails_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with show_progress("reading"):
        pass
    with pytest.raises(ValueError, match="no"), show_progress("reading"):
        raise ValueError("no")
    assert capfd.readouterr() == ("", "")


def test_items_are_counted_by_the_hundreds() -> None:
    reports: list[str] = []
    assert [*count_items(range(1001), reports.append, "parsing {} of 1,001 files")] == [*range(1001)]
    assert reports == [f"parsing {number} of 1,001 files" for number in ("0", "500", "1,000")]
