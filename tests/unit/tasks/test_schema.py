"""docs/reference/schema/ is what the contract says today."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from pydantic import BaseModel

import trialfleet_ledger
from trialfleet_ledger.records.attempt import AttemptRecord
from trialfleet_ledger.records.base import BoundRecord, Record
from trialfleet_tasks.schema import FILES, rendered

FOLDER = Path(__file__).parents[3] / "docs" / "reference" / "schema"


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_exported_schema_is_current(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == rendered(FILES[name]), "run `make schema`"


def test_every_record_is_exported() -> None:
    for module in pkgutil.walk_packages(trialfleet_ledger.__path__, "trialfleet_ledger."):
        importlib.import_module(module.name)

    def below(kind: type[BaseModel]) -> set[type[BaseModel]]:
        return {kind} | {leaf for child in kind.__subclasses__() for leaf in below(child)}

    records = {
        record
        for record in below(Record) - {Record, BoundRecord, AttemptRecord}
        if record.__module__.startswith("trialfleet_ledger")
    }
    assert records <= set(FILES.values())


@pytest.mark.parametrize("name", sorted(FILES))
def test_unknown_keys_are_refused(name: str) -> None:
    assert FILES[name].model_config.get("extra") == "forbid"
    assert FILES[name].model_config.get("frozen") is True
