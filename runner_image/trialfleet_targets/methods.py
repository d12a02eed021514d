"""The methods by name."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from trialfleet_targets.index import Index
from trialfleet_targets.prediction import METHODS, Target


class Ranker(Protocol):
    """A method on one index: any number of requests."""

    name: str

    def rank(self, prompt: str) -> tuple[Target, ...]:
        """Best first, at most 20, each with the parts of its score."""
        ...


@lru_cache(maxsize=4)
def ranker(name: str, index: Index) -> Ranker:
    """Cached per index; the cache keeps the index alive. Raises KeyError when the index was built without the
    method, ValueError for a method that does not exist."""
    if name == "clarte":
        from trialfleet_targets.clarte.method import Clarte

        return Clarte(index.section("clarte"))
    if name != "default":
        raise ValueError(f"no method {name!r}; there are {', '.join(METHODS)}")
    from trialfleet_targets.default.ranking import Default

    return Default(index)
