"""Which names of models are the plan's: another prefix or date may lead to another model, provider and price."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache


@cache
def list_spellings(model: str) -> frozenset[str]:
    """How an agent may spell the planned model: as the plan does, or without parts of the plan's own prefix; with
    or without the context window in brackets, which only agents read.

    >>> sorted(list_spellings("me/house-model[1m]"))
    ['house-model', 'house-model[1m]', 'me/house-model', 'me/house-model[1m]']
    """
    parts = model.split("/")
    names = {"/".join(parts[start:]) for start in range(len(parts))}
    return frozenset(names | {name.partition("[")[0] for name in names})


def match_model(name: str, pattern: str) -> bool:
    """Whether a declared pattern means this model. A `*` stands for no `/` and no `:`, which choose another
    provider or let a proxy do more.

    >>> [match_model(name, "claude-haiku-*") for name in ("claude-haiku-4-5-20251001", "claude-haiku-4-5:online")]
    [True, False]
    >>> match_model("x/claude-haiku-4-5", "claude-haiku-*"), match_model("x/claude-haiku-4-5", "x/*")
    (False, True)
    """
    return fnmatchcase(name, pattern) and all(name.count(mark) == pattern.count(mark) for mark in "/:")
