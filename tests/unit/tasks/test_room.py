"""A full disk is no finding about a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_tasks.validate import room


def test_a_disk_with_room(tmp_path: Path) -> None:
    with room.room_on(tmp_path / "cache" / "not-yet-there", tmp_path):
        pass


def test_little_room_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROOM_BYTES", 2**70)
    ran = False
    with (
        pytest.raises(OperatorError, match=r"has [\d,]+ MiB left\n.*is kept.*TRIALFLEET_CACHE"),
        room.room_on(tmp_path, tmp_path),
    ):
        ran = True
    assert not ran


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), OSError([("a", "b", "[Errno 28] No space left on device: 'b'")])],
)
def test_a_system_call_that_finds_no_room(error: OSError, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="temporary files is full"), room.room_on(tmp_path, tmp_path):
        raise error


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), room.room_on(tmp_path, tmp_path):
        raise PermissionError(13, "Permission denied")
