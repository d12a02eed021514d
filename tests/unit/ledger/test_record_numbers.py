"""Every number of a record has a range: others may write a store, and its readers count with these numbers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import trialfleet_ledger
from tests.support import records
from trialfleet_analysis import kept_answer
from trialfleet_analysis.tables import kept_tables
from trialfleet_controller.dispatch import epochs
from trialfleet_ledger.campaign_spec import RunnerLimits
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.task import TaskSpec
from trialfleet_tasks.validate import record

OF_OTHER_PACKAGES = (epochs, kept_answer, kept_tables, record)  # imported: their records are seen, too
for module in pkgutil.walk_packages(trialfleet_ledger.__path__, "trialfleet_ledger."):
    importlib.import_module(module.name)

CHECKED_LATER = {
    Metrics.__name__,  # tables leave out what cannot be, and name it: `tables.rows.possible`
    RunnerLimits.__name__,  # quantities of Kubernetes: `quantities`
}


def records_of(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for below in model.__subclasses__():
        yield below
        yield from records_of(below)


def numbers(schema: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of a number in a JSON Schema, with its place."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield place, schema
        for name, inner in schema.items():
            if name not in CHECKED_LATER and name not in ("const", "default", "examples"):
                yield from numbers(inner, f"{place}.{name}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from numbers(inner, place)


def has_range(schema: dict[str, Any]) -> bool:
    at_least, at_most = ({name, f"exclusive{name.capitalize()}"} for name in ("minimum", "maximum"))
    return "const" in schema or "enum" in schema or bool(at_least & schema.keys() and at_most & schema.keys())


@pytest.mark.parametrize("model", [*records_of(Record), TaskSpec], ids=lambda model: model.__name__)
def test_every_number_of_a_record_has_a_range(model: type[BaseModel]) -> None:
    found = numbers(model.model_json_schema(), model.__name__)
    assert [place for place, schema in found if not has_range(schema)] == []


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_time_that_no_clock_shows_is_refused(at: float) -> None:
    assert records.start(trial="a" * 26, attempt=1, at=1_790_000_000.0, isolation="bubblewrap")
    with pytest.raises(ValidationError, match="at"):
        records.start(trial="a" * 26, attempt=1, at=at, isolation="bubblewrap")


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "number", "minimum": 0}])
def test_control_a_number_without_a_range_is_seen(schema: dict[str, Any]) -> None:
    assert [has_range(one) for _, one in numbers({"properties": {"a": schema}}, "x")] == [False]
