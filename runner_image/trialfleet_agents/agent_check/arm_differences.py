"""What the first requests of two runs of an agent differ in, apart from the texts that one was given. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, cast

from trialfleet_agents.agent_check.delivery_matrix import OWN_WORDS, TOOL
from trialfleet_agents.agent_check.scripted_model import ModelRequest
from trialfleet_deliveries.request_form import normalise_request

QUOTED_CHARS = 120  # of a difference
_OWN = "…"  # in the place of the check's own words
_SHOWN_CHARS = 20  # of what two texts begin with
_WORD = re.compile(r"\w")
_TOOL = re.compile(r".*?(?:tools|functionDeclarations)\[[^\[\]]+\]")


class _RequestLine(NamedTuple):
    """One line of a string of the request, or another value. `place`: the keys that lead there; what a list holds
    is named by its name, role or type, since its number changes with what comes before."""

    place: str
    text: str


def list_differences(bare: ModelRequest, arm: ModelRequest) -> tuple[str, ...]:
    """In words, in the order of the request. Left out: the canaries, the names of the check's skill and tool, and
    what two runs differ in that are given the same (`normalise_request`).

    >>> bare = ModelRequest("/v1/messages", {}, {"system": "You are one agent.", "messages": ["Go."]})
    >>> arm = ModelRequest("/v1/messages", {}, {"system": "You are another agent.", "messages": ["Go."]})
    >>> list_differences(bare, arm)
    ('system: “You are another agent.” in place of “You are one agent.”',)
    """
    one, other = ([*_list_lines(request)] for request in (bare, arm))
    changes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    known = {line.place for line in one}, {line.place for line in other}
    found = (
        said
        for tag, begin, end, start, stop in changes
        if tag != "equal"
        for said in _name_change(one[begin:end], other[start:stop], known)
    )
    return tuple(dict.fromkeys(found))


def _list_lines(request: ModelRequest) -> Iterator[_RequestLine]:
    """Those that hold a word which is not the check's own."""
    body = {name: _remove_own(value) for name, value in request.body.items()}
    for name, value in normalise_request(request.path, request.headers, body).items():
        place = "" if name == "body" else name
        yield from (line for line in _split_value(value, place) if _WORD.search(line.text))


def _remove_own(value: object) -> object:
    if isinstance(value, str):
        return OWN_WORDS.sub(_OWN, value)
    if isinstance(value, dict):
        return {name: _remove_own(one) for name, one in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_remove_own(one) for one in cast("list[object]", value) if not _name_entry(one).endswith(TOOL)]
    return value


def _split_value(value: object, place: str) -> Iterator[_RequestLine]:
    if isinstance(value, dict):
        held = cast("dict[str, object]", value)
        for name in sorted(held):
            yield from _split_value(held[name], f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            name = _name_entry(one)
            yield from _split_value(one, f"{place}[{name}]" if name else place)
    elif isinstance(value, str):
        yield from (_RequestLine(place, " ".join(line.split()).strip(f"{_OWN} ")) for line in value.splitlines())
    else:
        yield _RequestLine(place, json.dumps(value))


def _name_entry(entry: object) -> str:
    """What tells an entry of a list from the others, as far as it says so itself."""
    if not isinstance(entry, dict):
        return ""
    held = cast("dict[str, object]", entry)
    inner = held.get("function")
    name = cast("dict[str, object]", inner).get("name") if isinstance(inner, dict) else None
    return str(name or held.get("name") or held.get("role") or "")


def _name_change(
    before: Sequence[_RequestLine], after: Sequence[_RequestLine], known: tuple[set[str], set[str]]
) -> Iterator[str]:
    """`known`: the places of either request. A tool that only one of them has is named once."""
    lost, came = _join_by_place(before, known[1]), _join_by_place(after, known[0])
    for place, text in came.items():
        if not text:
            yield f"adds {place}"
        elif place.endswith("content.type"):
            yield f"{place.removesuffix('.type')}: one more block"
        else:
            yield f"{place}: {_quote(text, lost.pop(place, ''))}"
    for place, text in lost.items():
        yield f"{place}: without “{_cut(text)}”" if text else f"lacks {place}"


def _join_by_place(lines: Sequence[_RequestLine], known: set[str]) -> dict[str, str]:
    """place -> its lines in one; empty for a tool of which the other request has nothing."""
    found = dict[str, str]()
    for line in lines:
        tool = _find_unknown_tool(line.place, known)
        if tool is not None:
            found[tool] = ""
        else:
            found[line.place] = f"{found.get(line.place, '')} {line.text}".lstrip()
    return found


def _find_unknown_tool(place: str, known: set[str]) -> str | None:
    tool = _TOOL.match(place)
    return None if tool is None or any(one.startswith(tool[0]) for one in known) else tool[0]


def _quote(text: str, before: str) -> str:
    """`text`, and what stands in its place in the other request. What both begin with is left out."""
    if not before:
        return f"“{_cut(text)}”"
    pairs = enumerate(zip(text, before, strict=False))
    same = next((n for n, (one, other) in pairs if one != other), min(len(text), len(before)))
    same = same - _SHOWN_CHARS if same > 2 * _SHOWN_CHARS else 0
    lead = "…" if same else ""
    return f"“{lead}{_cut(text[same:])}” in place of “{lead}{_cut(before[same:])}”"


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]}…"
