"""Which paths the gateway serves: model requests by dialect, and the few that no model answers."""

from __future__ import annotations

import json
import re
from typing import Any

from trialfleet_ledger.untrusted import mapping
from trialfleet_runner.gateway.dialects import DIALECTS, Dialect
from trialfleet_runner.gateway.gemini import Gemini, google_error
from trialfleet_runner.gateway.requests.gemini_fields import GEMINI_COUNTED
from trialfleet_runner.gateway.requests.messages_fields import MESSAGES
from trialfleet_runner.gateway.requests.shapes import Fields

_GEMINI = re.compile(
    r"/v1(?:beta|alpha)?/models/(?P<model>[A-Za-z0-9._-]{1,200}):(?P<method>generateContent|streamGenerateContent)"
)
_GEMINI_COUNT = re.compile(r"/v1(?:beta|alpha)?/models/(?P<model>[A-Za-z0-9._-]{1,200}):countTokens")
_MODELS = re.compile(r"/v1(?:beta|alpha)?/models(?:/(?P<model>[A-Za-z0-9._:@-]{1,200}))?")
_GOOGLE = re.compile(r"/v1(?:beta|alpha)/|/v1/models/[^/]*:[a-z]+[A-Z]")


def dialect_of(path: str, query: str) -> Dialect | None:
    """The form of a model request; None: no model request is served at this path.

    >>> dialect_of("/v1beta/models/gemini-2.5-pro:streamGenerateContent", "?alt=sse").model({})
    'gemini-2.5-pro'
    """
    found = _GEMINI.fullmatch(path)
    if found is None:
        return DIALECTS.get(path)
    stream, events = found["method"] == "streamGenerateContent", "alt=sse" in query.lstrip("?").split("&")
    return Gemini(path, found["model"], stream=stream, events=events)


def lists_models(path: str) -> bool:
    """Whether a GET of this path is passed through: the list of models, or one of it."""
    return _MODELS.fullmatch(path) is not None


def count_fields(path: str) -> Fields | None:
    """What a request may have that counts tokens; None: no tokens are counted at this path."""
    if path == "/v1/messages/count_tokens":
        return MESSAGES
    return GEMINI_COUNTED if _GEMINI_COUNT.fullmatch(path) else None


def collect_models(path: str, body: dict[str, Any]) -> list[str]:
    """The models of a request that no model answers, in its path and its body.

    >>> asked = {"generateContentRequest": {"model": "models/gemini-2.5-flash"}}
    >>> collect_models("/v1beta/models/gemini-2.5-pro:countTokens", asked)
    ['gemini-2.5-pro', 'gemini-2.5-flash']
    >>> collect_models("/v1/models", {})
    []
    """
    found = _GEMINI_COUNT.fullmatch(path) or _MODELS.fullmatch(path)
    names = [found["model"]] if found else []
    names += [body.get("model"), mapping(body.get("generateContentRequest")).get("model")]
    return [str(name).removeprefix("models/") for name in names if name is not None]


def local_error(path: str, status: int, kind: str, message: str) -> bytes:
    """The body of an error that the gateway itself answers with, in the form of the path's API."""
    if _GOOGLE.match(path):
        return json.dumps(google_error(message, kind, code=status)).encode()
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, "code": kind}}).encode()


def without_key(query: str) -> tuple[str, str]:
    """A key that a Google client wrote into the query, and the query without it.

    >>> without_key("alt=sse&key=tf-1")
    ('tf-1', 'alt=sse')
    """
    items = query.split("&") if query else []
    keys = [item.removeprefix("key=") for item in items if item.startswith("key=")]
    return (keys[0] if keys else ""), "&".join(item for item in items if not item.startswith("key="))
