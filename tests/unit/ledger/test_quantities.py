"""Amounts of CPU, memory and disk are written in one notation wherever they are entered."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from trialfleet_ledger.campaign_spec import LimitSpec, RunnerLimits
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.quantities import (
    ControllerMemory,
    Cores,
    cpu_quantity,
    parse_quantity,
    size_text,
)

CPU_PLACES = [(LimitSpec, "cpu"), (RunnerLimits, "cpu"), (Cores, "")]
SIZE_PLACES = [(LimitSpec, "memory"), (LimitSpec, "disk"), (RunnerLimits, "memory"), (ControllerMemory, "")]


def entered(place: Any, field: str, value: object) -> Any:
    """What the field, or the option, holds once `value` was written there."""
    whole = TypeAdapter(place).validate_python({field: value} if field else value)
    return getattr(whole, field) if field else whole


def refusal(place: Any, field: str, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        entered(place, field, value)
    refused = caught.value.errors()[0].get("ctx", {}).get("error")
    return f"{refused}; {refused.hint}" if isinstance(refused, FieldError) else str(caught.value)


@pytest.mark.parametrize(("place", "field"), CPU_PLACES)
@pytest.mark.parametrize(
    ("written", "cores"), [("100m", 0.1), ("0.5", 0.5), ("2", 2), (2, 2), (0.25, 0.25), ("1500m", 1.5), (" 1 ", 1)]
)
def test_an_amount_of_cpu(place: Any, field: str, written: object, cores: float) -> None:
    assert entered(place, field, written) == cores


@pytest.mark.parametrize(("place", "field"), SIZE_PLACES)
@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("512Mi", 512 * 2**20),
        ("1Gi", 2**30),
        ("1G", 10**9),
        ("1.5Gi", 3 * 2**29),
        ("300000k", 300_000_000),
        ("1Ti", 2**40),
        ("1e9", 10**9),
        ("1073741824", 2**30),
        (2**30, 2**30),
    ],
)
def test_a_size(place: Any, field: str, written: object, size: int) -> None:
    assert entered(place, field, written) == size


@pytest.mark.parametrize(("place", "field"), CPU_PLACES)
@pytest.mark.parametrize("written", ["one", "1 core", "100Mi", "1G", "5u", "1,5", "", "m", "0x10", "1_000", "١"])
def test_no_amount_of_cpu(place: Any, field: str, written: str) -> None:
    said = f"{written!r} is not an amount of CPU; write cores: 2, 0.5, or 500m for half a core"
    assert refusal(place, field, written) == said


@pytest.mark.parametrize(("place", "field"), CPU_PLACES)
@pytest.mark.parametrize("written", ["0", "-1", "0m", 0, -2, "1e30", float("nan"), float("inf")])
def test_cpu_out_of_bounds(place: Any, field: str, written: object) -> None:
    assert refusal(place, field, written)


@pytest.mark.parametrize(("place", "field"), SIZE_PLACES)
@pytest.mark.parametrize("written", ["4Gigs", "4 Gi", "4GB", "4gi", "", "Gi", "1Zi", "٤Gi"])
def test_no_size(place: Any, field: str, written: str) -> None:
    assert refusal(place, field, written).startswith(f"{written!r} is not a size; write 4Gi, 500Mi, 1G")


@pytest.mark.parametrize(("place", "field"), SIZE_PLACES)
def test_a_thousandth_of_a_byte_is_no_size(place: Any, field: str) -> None:
    said = refusal(place, field, "512m")
    assert said.startswith("'512m' is a fraction of a byte: m means a thousandth; write 4Gi, 500Mi")


@pytest.mark.parametrize(("place", "field"), SIZE_PLACES)
@pytest.mark.parametrize("written", [0, -1, "-1Gi", "0", "1e99", "2Pi", 1, "4"])
def test_a_size_out_of_bounds(place: Any, field: str, written: object) -> None:
    assert refusal(place, field, written)


def test_a_missing_unit_is_named() -> None:
    said = "512 bytes are too few for a controller: the least is 256Mi; write a unit, as in 512Mi or 4Gi"
    assert refusal(ControllerMemory, "", 512) == said


@given(st.integers(1, 10**7))
def test_a_pods_cpu_is_what_was_written(thousandths: int) -> None:
    assert cpu_quantity(entered(Cores, "", f"{thousandths}m")) == f"{thousandths}m"


@given(st.integers(1, 2**50))
def test_a_pods_memory_is_what_was_written(size: int) -> None:
    assert parse_quantity(size_text(size)) == Decimal(size)


@pytest.mark.parametrize("text", ["", "4GB", "Gi", "1..5", "0x10"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity of Kubernetes"):
        parse_quantity(text)


@given(st.integers(0, 2**40), st.sampled_from(["", "k", "M", "Ki", "Mi", "Gi"]))
def test_quantities_scale(count: int, unit: str) -> None:
    assert parse_quantity(f"{count}{unit}") == count * parse_quantity(f"1{unit}")


@given(st.text(alphabet="0123456789.eEinumkKMGTP+- ", max_size=12))
def test_the_parser_agrees_with_kubernetes_own(text: str) -> None:
    """What both take, both take for the same; what ours refuses is never a plain number with a unit."""
    from kubernetes.utils import quantity as library

    untyped: Any = library
    try:
        ours = parse_quantity(text)
    except ValueError:
        return
    assert ours == untyped.parse_quantity(text.strip())
