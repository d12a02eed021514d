"""Types of arrays and sparse matrices, and how the parts of a record get their names in an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Matrix = sparse.csr_array[np.float64, tuple[int, int]]
Value = npt.NDArray[np.generic] | list[str]
Stored = Mapping[str, Value]
"""Stored values: arrays and lists of words, by name."""


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_R = TypeVar("_R", bound=_Record)


def stored(record: _Record, prefix: str) -> dict[str, Value]:
    """The fields of a dataclass, all of them values, each below `prefix`."""
    return {f"{prefix}.{field.name}": getattr(record, field.name) for field in fields(record)}


def restored(kind: type[_R], values: Stored, prefix: str) -> _R:
    """The inverse of `stored`. Raises KeyError when a part is missing."""
    return kind(**{field.name: values[f"{prefix}.{field.name}"] for field in fields(kind)})


def times(matrix: Matrix, dense: Floats) -> Floats:
    """The product with a vector or with the columns of a table."""
    return cast(Floats, matrix @ dense)


def transposed(matrix: Matrix) -> Matrix:
    """The transpose, by its own rows."""
    return matrix.T.tocsr()
