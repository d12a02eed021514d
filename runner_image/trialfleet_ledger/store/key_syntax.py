"""Which strings are keys: the same set for every store, so that a campaign can move between them."""

from __future__ import annotations

import re

TEMPORARY = ".tmp-"  # a directory store's unfinished writes: in the folders of their targets, never keys
MAX_COMPONENT_BYTES = 255  # of ext4, xfs and S3 servers that keep objects as files
MAX_KEY_BYTES = 900  # S3 allows 1,024 with the store's own prefix
# Most names and keys, quickly.
_PART = rf"(?!{re.escape(TEMPORARY)}|\.{{1,2}}(?:/|$))[A-Za-z0-9._-]{{1,{MAX_COMPONENT_BYTES}}}"
_COMMON, _COMMON_KEY = re.compile(_PART), re.compile(rf"(?=.{{1,{MAX_KEY_BYTES}}}$)(?:{_PART}/)*{_PART}")


def key_parts(key: str) -> tuple[str, ...]:
    """The components of a valid key; ValueError (a bug of the caller, not of the store) otherwise.

    >>> key_parts("demo/outcomes/abc.json")
    ('demo', 'outcomes', 'abc.json')
    """
    parts = tuple(key.split("/"))
    fault = None if _COMMON_KEY.fullmatch(key) else _fault(key, parts)
    if fault:
        raise ValueError(f"not a key: {key!r} ({fault})")
    return parts


def prefix_parts(prefix: str) -> tuple[tuple[str, ...], str]:
    """A listing's prefix as (whole folders, beginning of a name). ValueError as `key_parts`.

    >>> prefix_parts("demo/attempts/ab")
    (('demo', 'attempts'), 'ab')
    >>> prefix_parts("demo/")
    (('demo',), '')
    """
    folder, slash, name = prefix.rpartition("/")
    parts = key_parts(folder) if slash else ()
    if "\0" in name:
        raise ValueError(f"not a prefix: {prefix!r} (NUL)")
    return parts, name


def is_key(text: str) -> bool:
    """Whether `text` may name a value.

    >>> [is_key(text) for text in ("abc.json", "a/b", "..", ".tmp-1", "a//b")]
    [True, True, False, False, False]
    """
    return _COMMON.fullmatch(text) is not None or _fault(text, tuple(text.split("/"))) is None


def _fault(key: str, parts: tuple[str, ...]) -> str | None:
    if not key.isprintable():
        return "control characters"  # also lone surrogates: names that are no text
    if len(key.encode()) > MAX_KEY_BYTES:
        return f"longer than {MAX_KEY_BYTES} bytes"
    for part in parts:
        if part in ("", ".", ".."):
            return "empty component, '.' or '..'"
        if part.startswith(TEMPORARY):
            return f"components that begin with {TEMPORARY} are temporaries"
        if len(part.encode()) > MAX_COMPONENT_BYTES:
            return f"a component is longer than {MAX_COMPONENT_BYTES} bytes"
    return None
