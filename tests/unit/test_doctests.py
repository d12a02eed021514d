"""The examples in the product's docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from collections import Counter

import pytest

from tests.architecture.structure import modules

SHOWING = sorted(name for name, path in modules().items() if ">>> " in path.read_text())


@pytest.mark.parametrize("name", SHOWING)
def test_examples_hold(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(name))
    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_there_are_examples() -> None:
    found = Counter(name.partition(".")[0] for name in SHOWING)
    assert found["trialfleet_ledger"] >= 30
    assert found["trialfleet_runner"] >= 20
    assert min(found["trialfleet_agents"], found["trialfleet_deliveries"]) >= 8
    assert found["trialfleet_repository"] >= 15
    assert found["trialfleet_controller"] >= 12
    assert min(found["trialfleet_analysis"], found["trialfleet_targets"]) >= 12
