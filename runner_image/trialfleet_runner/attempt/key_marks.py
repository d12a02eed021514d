"""Provider keys in a diff: marks take their place where it is stored, and the keys return before it is scored."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trialfleet_ledger.bundle import REDACTED, SHORTEST_SECRET
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.attempt import KeyMark, Patch


class KeyChanged(Exception):
    """A stored patch holds marks of keys that this runner does not have, or has other values of."""


def mask_keys(text: str, keys: Mapping[str, str]) -> tuple[str, tuple[KeyMark, ...]]:
    """`text` with `[redacted]` in the place of each key's value, and where these places are.

    `keys`: name -> value; a value of fewer than 8 characters is no secret.

    >>> mask_keys("+a sk-12345678", {"anthropic-1": "sk-12345678"})
    ('+a [redacted]', (KeyMark(name='anthropic-1', place=3),))
    """
    names = {value: name for name, value in sorted(keys.items()) if len(value) >= SHORTEST_SECRET}
    if not names:
        return text, ()
    longest_first = sorted(names, key=len, reverse=True)
    parts: list[str] = []
    marks: list[KeyMark] = []
    end = size = 0
    for match in re.finditer("|".join(map(re.escape, longest_first)), text):
        size += match.start() - end
        marks.append(KeyMark(name=names[match[0]], place=size))
        parts += (text[end : match.start()], REDACTED)
        size, end = size + len(REDACTED), match.end()
    return "".join((*parts, text[end:])), tuple(marks)


def scored_diff(patch: Patch, keys: Mapping[str, str]) -> str:
    """The diff as the agent left it. Raises `KeyChanged` if `keys` cannot restore it."""
    text, parts, end = patch.diff, list[str](), 0
    for mark in patch.key_marks:
        if mark.name not in keys:
            raise KeyChanged(f"the patch holds the key {mark.name}, and this runner has no such key")
        parts += (text[end : mark.place], keys[mark.name])
        end = mark.place + len(REDACTED)
    whole = "".join((*parts, text[end:]))
    if patch.diff_sha256 not in (None, sha256(whole.encode())):
        raise KeyChanged(
            "the patch with this runner's keys is not what the agent left: a key was changed since"
            if patch.key_marks
            else "the stored patch is not what the agent left"
        )
    return whole
