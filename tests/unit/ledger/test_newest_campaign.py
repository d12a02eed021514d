"""Which campaign is meant where none is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.ledgers import Fate, plan, write
from trialfleet_controller.commands.status import status
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.newest import find_newest_campaign


def made(root: Path, name: str, at: float) -> None:
    write(root, plan(("alpha",), reps=1, name=name), lambda _: Fate())
    for path in (root / name, *(root / name).iterdir()):
        os.utime(path, (at, at))


def test_the_one_that_was_written_to_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, at in (("b", 300), ("a", 200), ("c", 100)):
        made(tmp_path / "runs", name, at)
    (tmp_path / "runs" / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_newest_campaign(None) == "runs/b"
    os.utime(tmp_path / "runs" / "c" / "campaign.json", (400, 400))
    assert find_newest_campaign(None) == "runs/c"
    assert find_newest_campaign(str(tmp_path / "runs")) == str(tmp_path / "runs" / "c")
    ran = CliRunner().invoke(status, catch_exceptions=False)
    assert ran.exit_code == 0
    assert ran.output.startswith("runs/c\n"), "which one is said first"


@pytest.mark.parametrize(
    ("store", "said"), [(None, "runs: no campaign"), ("s3://bucket/x", "s3://bucket/x: no campaign")]
)
def test_none_is_guessed(store: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OperatorError, match=said):
        find_newest_campaign(store)
