"""A full disk is no finding about a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_tasks.validate import room


def test_a_disk_with_room(tmp_path: Path) -> None:
    room.refuse_full_disk(tmp_path / "cache" / "not-yet-there", tmp_path)


def test_little_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROOM_BYTES", 2**70)
    with pytest.raises(OperatorError, match=r"has [\d,]+ MiB left\n.*is kept.*TRIALFLEET_CACHE"):
        room.refuse_full_disk(tmp_path)


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), OSError([("a", "b", "[Errno 28] No space left on device: 'b'")])],
)
def test_a_system_call_that_finds_no_room(error: OSError, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="temporary files is full"), room.full_disk_named(tmp_path):
        raise error


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), room.full_disk_named(tmp_path):
        raise PermissionError(13, "Permission denied")
