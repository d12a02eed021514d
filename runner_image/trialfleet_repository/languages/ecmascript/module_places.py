"""The files that the specifier of a module may mean."""

from __future__ import annotations

import re

from trialfleet_repository.languages.ecmascript.formats import SUFFIXES

CODE = (*SUFFIXES, ".vue", ".svelte", ".astro")
_COMPILED = re.compile(r"(?:\.d)?\.[cm]?[jt]sx?\Z")


def list_module_places(place: str) -> tuple[str, ...]:
    """`place`: the specifier as a path of the repository.

    >>> [path in list_module_places("a.js") for path in ("a.js", "a.ts", "a.js/index.ts", "a/index.js")]
    [True, True, True, False]
    """
    stem = _COMPILED.sub("", place)
    ends = (*CODE, ".json")
    return tuple(dict.fromkeys((place, *(base + end for base in (place, stem, f"{place}/index") for end in ends))))
