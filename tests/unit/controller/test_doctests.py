"""The examples in the controller's docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import trialfleet_controller

ROOT = Path(trialfleet_controller.__file__).parent
SHOWING = sorted(path.relative_to(ROOT.parent) for path in ROOT.rglob("*.py") if ">>> " in path.read_text())


@pytest.mark.parametrize("path", SHOWING, ids=lambda path: ".".join(path.with_suffix("").parts[1:]))
def test_examples_hold(path: Path) -> None:
    ran = doctest.testmod(importlib.import_module(".".join(path.with_suffix("").parts)))
    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_there_are_examples() -> None:
    assert len(SHOWING) >= 12
