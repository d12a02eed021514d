"""`status --watch`: the store alone, counts without results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.ledgers import Fate, plan, trials, write, write_trial
from trialfleet_controller.commands.status import status
from trialfleet_controller.status.status_watch import StatusScreen, watch_status
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import ListedKey, StoreError

PLAN = plan(("alpha", "beta"), reps=2)


def first_block(trial: Trial) -> Fate | None:
    return Fate() if trial.block == 0 else None


def everything(_: Trial) -> Fate | None:
    return Fate()


class Faulty(DirectoryStore):
    """Does not answer its first listing."""

    asked = 0

    def list(self, prefix: str) -> Iterator[ListedKey]:
        self.asked += 1
        if self.asked == 1:
            raise StoreError("connection refused")
        return super().list(prefix)


def test_it_goes_on_until_all_is_over_and_shows_no_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = write(tmp_path, PLAN, first_block)
    slept: list[float] = []

    def finish(seconds: float) -> None:
        slept.append(seconds)
        for trial in trials(PLAN):
            if trial.block > 0:
                write_trial(store, PLAN, trial, Fate())

    screen = StatusScreen(as_json=False, redraws=False)
    watch_status(store, PLAN.campaign, screen, every_s=3, sleep=finish)
    shown = capsys.readouterr().out
    assert slept == [3]
    half, whole = len(trials(PLAN)) // 2, len(trials(PLAN))
    assert f"{half} of {whole} trials" in shown
    assert f"complete; {whole} of {whole} trials" in shown
    assert "passed" not in shown
    assert not list((tmp_path / PLAN.campaign).glob("looks/*"))


def test_for_machines_one_object_a_line(tmp_path: Path) -> None:
    write(tmp_path, PLAN, everything)
    argv = [str(tmp_path / PLAN.campaign), "--watch", "--json"]
    result = CliRunner().invoke(status, argv, catch_exceptions=False)
    (line,) = result.output.splitlines()
    found = json.loads(line)
    assert found["terminal"] == found["planned"] == len(trials(PLAN))
    assert "passed" not in line
    assert "rate" not in line


def test_a_store_that_does_not_answer_is_asked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, PLAN, everything)
    slept: list[float] = []
    screen = StatusScreen(as_json=False, redraws=False)
    watch_status(Faulty(tmp_path), PLAN.campaign, screen, every_s=1, sleep=slept.append)
    said = capsys.readouterr()
    assert "connection refused" in said.err
    assert "complete" in said.out
    assert slept == [1]


def test_a_terminal_is_redrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    write(tmp_path, PLAN, everything)
    screen = StatusScreen(as_json=False, redraws=True)
    watch_status(DirectoryStore(tmp_path), PLAN.campaign, screen, every_s=1)
    assert capsys.readouterr().out.startswith("\x1b[H\x1b[2J")
