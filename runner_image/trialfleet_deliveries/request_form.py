"""A model request without what differs between any two runs of an agent: ids, times, and the labels by which a
provider files requests. Two runs that are given the same send the same request in this form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import cast

# Of the body: what names a session, a thread or an installation to the provider, and the draw of a sample. No
# model reads them.
_LABELS = frozenset({"client_metadata", "metadata", "prompt_cache_key", "safety_identifier", "seed", "user"})
_FEATURES = ("anthropic-beta", "openai-beta")  # headers that change what the provider does with the body
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_VARYING = re.compile(
    rf"""(?<![0-9A-Za-z])(?:
    [0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}  # a UUID
    | [0-9a-f]{{7,40}}(?=\ Import\b)  # the commit of a workspace, of which agents print the log
    | (?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7,64}}  # another commit, or a digest
    | \d{{4}}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
    | (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\ )?(?:{_MONTHS})[a-z]*\ \d\d?,?\ \d{{4}}
      (?:\ \d\d:\d\d(?::\d\d)?(?:\ GMT[+-]\d{{4}})?)?
    | \d\d?/\d\d?/\d{{4}}
    )(?![0-9A-Za-z])""",
    re.VERBOSE,
)
VARIES = "‹varies›"


def list_varying(texts: Iterable[str]) -> frozenset[str]:
    """The ids and times in these texts.

    >>> sorted(list_varying(["Since 2026-11-30, as of 3f9c2a1."]))
    ['2026-11-30', '3f9c2a1']
    """
    return frozenset(found[0] for text in texts for found in _VARYING.finditer(text))


def normalise_request(
    path: str,
    headers: Mapping[str, str],
    body: Mapping[str, object],
    *,
    given: Collection[str] = (),
    folder: str | None = None,
) -> dict[str, object]:
    """The request in that form. Header names are lower case. `given`: ids and times that the run was given, which
    stay (`list_varying`); `folder`: where this run alone works. Raises `RecursionError` for a body that is too
    deep.

    >>> normalise_request("/v1/messages", {"host": "x"}, {"system": "It is 2026-11-30.", "user": "7"})
    {'path': '/v1/messages', 'headers': {}, 'body': {'system': 'It is ‹varies›.'}}
    """
    normalise = partial(_normalise_text, given=given, folder=folder)
    return {
        "path": path,
        "headers": {name: headers[name] for name in _FEATURES if name in headers},
        "body": {name: _map_texts(value, normalise) for name, value in body.items() if name not in _LABELS},
    }


def _normalise_text(text: str, given: Collection[str], folder: str | None) -> str:
    text = text.replace(folder, VARIES) if folder else text
    if not given:
        return _VARYING.sub(VARIES, text)
    return _VARYING.sub(lambda found: found[0] if found[0] in given else VARIES, text)


def _map_texts(value: object, normalise: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return normalise(value)
    if isinstance(value, dict):
        return {name: _map_texts(one, normalise) for name, one in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_map_texts(one, normalise) for one in cast("list[object]", value)]
    return value
