"""What a run of tests left about itself: settings of the project without effect in it, and the tests that its
runner has. Tests may have written it instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from trialfleet_ledger.untrusted import regular_file

RECORD = "test-settings.json"  # in HOME
MAX_BYTES = 64 * 2**20


@dataclass(frozen=True)
class SettingsRecord:
    """`taken_back`: options of the project without effect in the run. `collected`: ids of the tests that the
    runner has in what it was given; None where the command selects by itself, or nothing can be read. `ignored`:
    test files that its tool does not build here. `deselected`: ids that the project's options would leave out."""

    taken_back: tuple[str, ...] = ()
    collected: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()


def _no_variables(_variables: Mapping[str, str], _folder: str) -> Mapping[str, str]:
    return {}


def put_folder_first(variables: Mapping[str, str], folder: str) -> Mapping[str, str]:
    """For Python, which finds the plugin's modules before all others."""
    return {"PYTHONPATH": f"{folder}:{variables['PYTHONPATH']}"}


def _as_it_is(words: tuple[str, ...], _variables: Mapping[str, str], _report: str) -> tuple[str, ...]:
    return words


@dataclass(frozen=True)
class SettingsPlugin:
    """What makes a test runner do without settings of a project, and write a record. `files`: of ours, by their
    names in a folder that the tests see. `variables`: those that change, of a run's variables and that folder.
    `call`: what becomes of the runner's call, by the variables then and the report's place."""

    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    variables: Callable[[Mapping[str, str], str], Mapping[str, str]] = _no_variables
    call: Callable[[tuple[str, ...], Mapping[str, str], str], tuple[str, ...]] = _as_it_is


NO_PLUGIN = SettingsPlugin()


def read_settings_record(home: Path, workspace: str = "") -> SettingsRecord:
    """Empty where there is none that can be read. `workspace`: as the tests see it; ids begin below it."""
    file = regular_file(home / RECORD)
    if file is None:
        return SettingsRecord()
    with file:
        data = file.read(MAX_BYTES + 1)
    try:
        record = cast("dict[str, Any]", json.loads(data)) if len(data) <= MAX_BYTES else {}
        collected, start = record.get("collected"), f"{workspace}/"
        return SettingsRecord(
            tuple(map(str, record.get("taken_back") or ())),
            None if collected is None else tuple(str(each).removeprefix(start) for each in collected if each),
            tuple(str(each).removeprefix(start) for each in record.get("ignored") or () if each),
            tuple(str(each).removeprefix(start) for each in record.get("deselected") or () if each),
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        return SettingsRecord()
