"""An agent's own configuration file: what a campaign chose, under what every attempt needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialfleet_ledger.treatments import merged


def with_settings(chosen: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration file: what was chosen, and over it what no campaign may choose.

    >>> with_settings({"a": {"b": 1, "c": None}}, {"a": {"d": 2}})
    {'a': {'b': 1, 'd': 2}}
    """
    return merged(merged({}, chosen), fixed)
