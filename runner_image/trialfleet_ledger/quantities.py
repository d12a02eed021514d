"""Amounts of CPU, memory and disk as people write them in fields and options: the notation of Kubernetes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from trialfleet_ledger.errors import FieldError

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Source: k8s.io/apimachinery, pkg/api/resource, the grammar of `Quantity`.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}))"
    r"(?:(?P<unit>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)|[eE](?P<power>[+-]?[0-9]{1,2}))"
)
MEBIBYTE = 2**20


def parse_quantity(text: str) -> Decimal:
    """A quantity in the notation of Kubernetes. Raises `ValueError` for any other text.

    >>> [str(parse_quantity(text)) for text in ("500m", "2", "1.5Gi", "1e3", "512Mi")]
    ['0.500', '2', '1610612736.0', '1E+3', '536870912']
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a quantity of Kubernetes")
    number, unit = Decimal(match["number"]), match["unit"] or ""
    if unit in _BINARY:
        return number * (1 << _BINARY[unit])
    return number.scaleb(int(match["power"]) if match["power"] else _DECIMAL[unit])


def parse_cores(value: Any) -> Any:
    """Text to CPU cores; any other value as it is. Raises `FieldError`.

    >>> parse_cores("100m"), parse_cores("0.5"), parse_cores("2"), parse_cores(1)
    (0.1, 0.5, 2.0, 1)
    """
    if not isinstance(value, str):
        return value
    match = _QUANTITY.fullmatch(value.strip())
    if match is None or match["unit"] not in ("", "m", None):
        raise FieldError(f"{value!r} is not an amount of CPU", hint="write cores: 2, 0.5, or 500m for half a core")
    return float(parse_quantity(value))


def parse_bytes(value: Any) -> Any:
    """Text to bytes, rounded up as Kubernetes does; any other value as it is. Raises `FieldError`.

    >>> parse_bytes("4Gi"), parse_bytes("500M"), parse_bytes("1.5Ki"), parse_bytes(1024)
    (4294967296, 500000000, 1536, 1024)
    """
    if not isinstance(value, str):
        return value
    hint = "write 4Gi, 500Mi, 1G or a number of bytes; the units are k, M, G, T, Ki, Mi, Gi, Ti"
    match = _QUANTITY.fullmatch(value.strip())
    if match is None:
        raise FieldError(f"{value!r} is not a size", hint=hint)
    if match["unit"] in ("n", "u", "m"):
        raise FieldError(f"{value!r} is a fraction of a byte: m means a thousandth", hint=hint)
    return math.ceil(parse_quantity(value))


def at_least(least: int, who: str) -> Callable[[int], int]:
    """A check of a size: what `who` cannot work with is a missing unit."""

    def check(size: int) -> int:
        if size < least:
            mebibytes = f"{least // MEBIBYTE}Mi"
            raise FieldError(
                f"{size} bytes are too few for {who}: the least is {mebibytes}",
                hint=f"write a unit, as in {size}Mi or 4Gi"
                if size * MEBIBYTE >= least
                else f"write {mebibytes} or more",
            )
        return size

    return check


Cores = Annotated[float, BeforeValidator(parse_cores, json_schema_input_type=float | str), Field(gt=0, le=10_000)]
Size = Annotated[int, BeforeValidator(parse_bytes, json_schema_input_type=int | str), Field(gt=0, le=2**50)]
Memory = Annotated[Size, AfterValidator(at_least(16 * MEBIBYTE, "any agent"))]
Disk = Annotated[Size, AfterValidator(at_least(MEBIBYTE, "any agent"))]
RunnerMemory = Annotated[Size, AfterValidator(at_least(128 * MEBIBYTE, "the runner"))]
ControllerMemory = Annotated[Size, AfterValidator(at_least(256 * MEBIBYTE, "a controller"))]


def cpu_quantity(cores: float) -> str:
    """As a pod's spec says it, rounded up to a thousandth.

    >>> cpu_quantity(0.1), cpu_quantity(2)
    ('100m', '2000m')
    """
    return f"{math.ceil(round(cores * 1000, 6))}m"


def size_text(size: int) -> str:
    """Bytes in the largest binary unit that divides them.

    >>> size_text(4 * 2**30), size_text(512 * 2**20), size_text(1000)
    ('4Gi', '512Mi', '1000')
    """
    for unit, power in reversed(_BINARY.items()):
        if size and size % 2**power == 0:
            return f"{size >> power}{unit}"
    return str(size)
