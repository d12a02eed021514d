"""Sparse matrices with the types that their stubs leave open."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

Matrix = sparse.csr_array[np.float64, tuple[int, int]]
Floats = npt.NDArray[np.float64]


def times(matrix: Matrix, dense: Floats) -> Floats:
    """The product with a vector or with the columns of a table."""
    return cast(Floats, matrix @ dense)


def turned(matrix: Matrix) -> Matrix:
    """The transpose, by its own rows."""
    return matrix.T.tocsr()
