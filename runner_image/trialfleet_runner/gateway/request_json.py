"""The JSON of requests: read strictly, so that all parsers read the same, and written again from what was read."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, cast


class MalformedRequest(ValueError):
    """The body is not JSON, or JSON that two parsers may read differently."""


class RepeatedFields(dict[str, Any]):
    """A JSON object that names `repeated` twice; the last value counts."""

    repeated: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    names = [name for name, _ in pairs]
    ambiguous = RepeatedFields(fields)
    ambiguous.repeated = next(name for name in names if names.count(name) > 1)
    return ambiguous


def _refuse_constant(text: str) -> NoReturn:
    raise MalformedRequest(f"the body holds {text}, which is not JSON; send a finite number")


def _finite_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text[:40])


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite_float)


def parse_request(data: bytes) -> dict[str, Any]:
    """The body's object, with `RepeatedFields` where a name occurs twice. Raises `MalformedRequest`.

    >>> parse_request(b'{"n": 1}')
    {'n': 1}
    >>> parse_request('{"n": 1}'.encode("utf-16"))
    Traceback (most recent call last):
    trialfleet_runner.gateway.request_json.MalformedRequest: the body is not UTF-8; send JSON in UTF-8
    """
    try:
        value: object = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise MalformedRequest("the body is not UTF-8; send JSON in UTF-8") from None
    except MalformedRequest:
        raise
    except (ValueError, RecursionError):
        raise MalformedRequest("the body is not a JSON object") from None
    if not isinstance(value, dict) or not value:
        raise MalformedRequest("the body is not a JSON object")
    return cast("dict[str, Any]", value)


def serialise_request(body: dict[str, Any]) -> bytes:
    """The bytes that leave: each name once, in UTF-8. Raises `RecursionError` for a body that is too deep."""
    try:
        return _compact(body, ascii_only=False)
    except UnicodeEncodeError:  # half of a surrogate pair: JSON can hold it, UTF-8 cannot
        return _compact(body, ascii_only=True)


def _compact(body: dict[str, Any], *, ascii_only: bool) -> bytes:
    return json.dumps(body, ensure_ascii=ascii_only, separators=(",", ":"), allow_nan=False).encode()
