"""A word about what is waited for, and none while there is output."""

from __future__ import annotations

import time

import pytest

from trialfleet_ledger import waiting


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(waiting, "FIRST_S", 0.6)
    monkeypatch.setattr(waiting, "_SHORT_S", 0.1)
    return []


def test_the_innermost_wait_is_named_at_growing_intervals(words: list[str]) -> None:
    began = time.monotonic()
    waiting.say_waits(words.append, output_at=lambda: began, idle=lambda: None)
    with waiting.waiting_for("the report"), waiting.waiting_for("s3://b to answer", at_most_s=120):
        time.sleep(2.4)
    assert words
    assert all(word.startswith("waiting for s3://b to answer: ") and "at most 120 s" in word for word in words)
    assert len(words) <= 3
    number = len(words)
    time.sleep(0.7)
    assert len(words) == number


def test_output_is_enough(words: list[str]) -> None:
    waiting.say_waits(words.append, output_at=time.monotonic, idle=lambda: "at work")
    with waiting.waiting_for("the report"):
        time.sleep(1.5)
    assert not words
