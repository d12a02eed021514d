"""The language of a file's code."""

from __future__ import annotations

from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.languages.code_names import NO_NAMES, CodeNames


def names_of_code(path: str) -> CodeNames:
    """By the file's suffix; what most languages have in common where it is of none."""
    found = (each.names for each in LANGUAGES.values() if path.endswith((*each.suffixes, *each.names.also)))
    return next(found, NO_NAMES)
