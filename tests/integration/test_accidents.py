"""Forty of the cells of commands × accidents, the same each time; `python -m tests.bench accidents` runs all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.accident_runs import EndedCommand, run_cells, shown
from tests.support.accidents import drawn

CELLS = drawn(40, seed=30)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, EndedCommand]:
    return {one.cell.name: one for one in run_cells(CELLS, tmp_path_factory.mktemp("accidents"), workers=4)}


@pytest.mark.parametrize("cell", [cell.name for cell in CELLS])
def test_it_ends_with_a_true_message_and_no_traceback(cell: str, ended: Mapping[str, EndedCommand]) -> None:
    assert ended[cell].fault is None, f"{next(shown([ended[cell]]))}\n{ended[cell].output}"
