"""The offline `search` agent: program repair without a model, for trying the pipeline without a key."""

from __future__ import annotations

from trialfleet_runner.agents.search.adapter import BANNER, Search

__all__ = ["BANNER", "Search"]
