"""The worked examples in the analysis package hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import trialfleet_analysis

MODULES = [found.name for found in pkgutil.walk_packages(trialfleet_analysis.__path__, "trialfleet_analysis.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found() -> None:
    found = doctest.testmod(importlib.import_module("trialfleet_analysis.intervals.single"))
    assert found.attempted >= 5
