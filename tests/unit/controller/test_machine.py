"""Whose a name is: two machines may have the same one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support import records
from trialfleet_controller.backends.local import machine
from trialfleet_controller.backends.protocol import Liveness
from trialfleet_controller.dispatch import epochs
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.machine import machine_id
from trialfleet_ledger.records.directives import Epoch
from trialfleet_ledger.store.directory import DirectoryStore

MINE = "a" * 64
START = records.start(host=machine.host(), boot_id="another boot", scratch="/none", isolation="uid")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_id", lambda: MINE)


@pytest.mark.parametrize(
    ("whose", "found"), [(MINE, Liveness.REBOOTED), ("b" * 64, Liveness.UNKNOWN), (None, Liveness.UNKNOWN)]
)
def test_another_boot_under_the_same_name_is_a_restart_only_of_the_same_machine(
    whose: str | None, found: Liveness
) -> None:
    assert machine.runner_liveness(START.model_copy(update={"machine": whose})) is found


def test_a_controller_of_a_namesake_is_waited_for(tmp_path: Path) -> None:
    pulse, store = epochs.HeartbeatConfig(every_s=10, takeover_s=0.6, look_s=0.1), DirectoryStore(tmp_path)
    there = Epoch(number=1, at=0, host=machine.host(), boot_id="b", pid=1, nonce="n", machine="b" * 64)
    store.put(keys.numbered("campaign", "epochs", 1), canonical_json(there))
    began = time.monotonic()
    assert epochs.claim(store, "campaign", pulse).number == 2
    assert time.monotonic() - began >= pulse.takeover_s


def test_an_id_is_the_files_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "machine-id"
    assert machine_id(file) is None
    file.write_text("\n")
    assert machine_id(file) is None, "not set up yet"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    first = machine_id(file)
    assert first is not None
    assert "01234567" not in first
    file.write_text("1123456789abcdef0123456789abcdef\n")
    assert machine_id(file) not in (None, first)
