"""Every worked example in a docstring of the predictor runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import trialfleet_targets


def test_examples() -> None:
    found = [
        doctest.testmod(importlib.import_module(module.name))
        for module in pkgutil.walk_packages(trialfleet_targets.__path__, "trialfleet_targets.")
    ]
    assert sum(one.failed for one in found) == 0
    assert sum(one.attempted for one in found) > 4
