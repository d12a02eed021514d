"""What our plugin of pytest or our recorder of unittest wrote about a run. Tests may have written it instead."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trialfleet_ledger.untrusted import regular_file

RECORD = "test-settings.json"  # in HOME
MAX_BYTES = 64 * 2**20


@dataclass(frozen=True)
class SettingsRecord:
    """`taken_back`: options of the project without effect in the run. `collected`: ids of the tests that are about
    to run; None where the command selects by itself, or nothing can be read."""

    taken_back: tuple[str, ...] = ()
    collected: tuple[str, ...] | None = None


def read_settings_record(home: Path) -> SettingsRecord:
    """Empty where there is none that can be read."""
    file = regular_file(home / RECORD)
    if file is None:
        return SettingsRecord()
    with file:
        data = file.read(MAX_BYTES + 1)
    try:
        record = cast("dict[str, Any]", json.loads(data)) if len(data) <= MAX_BYTES else {}
        collected = record.get("collected")
        return SettingsRecord(
            tuple(map(str, record.get("taken_back") or ())),
            None if collected is None else tuple(map(str, collected)),
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        return SettingsRecord()
