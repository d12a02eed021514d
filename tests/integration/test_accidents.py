"""Forty of the cells of commands × accidents, the same each time; `python -m tests.bench accidents` runs all."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.accidents import Ended, drawn, make_site, run_cell, shown, silent_server

CELLS = drawn(40, seed=30)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Ended]:
    folder = tmp_path_factory.mktemp("accidents")
    site = make_site(folder)
    with silent_server() as silent, ThreadPoolExecutor(4) as pool:
        numbered = enumerate(CELLS)
        each = pool.map(lambda one: run_cell(one[1], site, folder / str(one[0]), silent), numbered)
        return {one.cell.name: one for one in each}


@pytest.mark.parametrize("cell", [cell.name for cell in CELLS])
def test_it_ends_with_a_true_message_and_no_traceback(cell: str, ended: Mapping[str, Ended]) -> None:
    assert ended[cell].fault is None, f"{next(shown([ended[cell]]))}\n{ended[cell].output}"
