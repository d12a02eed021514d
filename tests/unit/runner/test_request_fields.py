"""Which requests may leave: everything that agents send, and nothing else, in every API."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.model_requests import CHAT, FULL, GEMINI, HOSTED, MESSAGES, RESPONSES, Hosted
from trialfleet_runner.gateway.dialects import Dialect
from trialfleet_runner.gateway.request_json import RepeatedFields, parse_request
from trialfleet_runner.gateway.request_size import measure_request
from trialfleet_runner.gateway.requests.messages_fields import FIRST_PARTY_HINTS
from trialfleet_runner.gateway.routes import dialect_of

NOTHING: frozenset[str] = frozenset()
# Data of the agent: places whose content nobody interprets.
OPEN = ("input_schema", "input", "metadata", "parameters", "format", "parametersJsonSchema", "args", "response")
OPEN_PLACES = {
    MESSAGES: OPEN,
    CHAT: OPEN,
    RESPONSES: OPEN[:1] + OPEN[2:],
    GEMINI: (*OPEN, "functionCallingConfig"),
}


def dialect(path: str) -> Dialect:
    chosen = dialect_of(path, "")
    assert chosen is not None
    return chosen


def problem(path: str, body: dict[str, Any], permitted: frozenset[str] = NOTHING) -> str | None:
    return dialect(path).fields.problem(body, "", permitted)


def objects_of(value: Any, opened: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Every object that the API defines, outermost first."""
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            if name not in opened:
                yield from objects_of(inner, opened)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_of(inner, opened)


def altered(path: str) -> Iterator[dict[str, Any]]:
    """The full request with one field more, in other letter case or twice, at each of its objects."""
    for number, original in enumerate(objects_of(FULL[path], OPEN_PLACES[path])):
        for name in original:
            for change in ("case", "twice"):
                body = copy.deepcopy(FULL[path])
                found = list(objects_of(body, OPEN_PLACES[path]))[number]
                if change == "case":
                    found[name.swapcase()] = found[name]
                else:
                    twice = RepeatedFields(found)
                    twice.repeated = name
                    body = replaced(body, found, twice)
                yield body
        body = copy.deepcopy(FULL[path])
        list(objects_of(body, OPEN_PLACES[path]))[number]["odd"] = 1
        yield body


def replaced(value: Any, old: object, new: object) -> Any:
    if value is old:
        return new
    if isinstance(value, dict):
        return {name: replaced(inner, old, new) for name, inner in value.items()}
    return [replaced(inner, old, new) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", FULL)
def test_everything_that_agents_send_passes(path: str) -> None:
    assert problem(path, FULL[path]) is None
    assert problem(path, parse_request(json.dumps(FULL[path]).encode())) is None


@pytest.mark.parametrize("path", FULL)
def test_one_field_more_in_other_case_or_twice_is_refused_at_every_place(path: str) -> None:
    bodies = list(altered(path))
    assert len(bodies) > 40
    for body in bodies:
        assert problem(path, body) is not None, body


@pytest.mark.parametrize("path", FULL)
def test_the_agents_own_data_may_have_any_shape(path: str) -> None:
    free: Callable[[Any, object], object] = {
        MESSAGES: lambda body, data: body["tools"][0].update(input_schema=data),
        CHAT: lambda body, data: body["tools"][0]["function"].update(parameters=data),
        RESPONSES: lambda body, data: body["tools"][0].update(parameters=data),
        GEMINI: lambda body, data: body["contents"][1]["parts"][0]["functionCall"].update(args=data),
    }[path]
    twice = RepeatedFields({"type": "web_search", "url": "https://x"})
    twice.repeated = "type"
    body = copy.deepcopy(FULL[path])
    free(body, twice)
    assert problem(path, body) is None


DRESSED = (
    {"media_type": "image/png", "mimeType": "image/png", "data": "word " * 1000},
    {"url": "data:image/png;base64," + "word " * 1000},
    {"image_url": "data:image/png;base64," + "word " * 1000, "file_data": "word " * 1000},
    {"source": {"media_type": "image/png", "data": "word " * 1000}},
)


@pytest.mark.parametrize("dressed", DRESSED)
@pytest.mark.parametrize("path", FULL)
def test_text_in_the_agents_own_data_is_text_whatever_it_is_named(path: str, dressed: dict[str, Any]) -> None:
    """An image has few tokens, however long it is: the control is that the request's real ones still count."""
    original = copy.deepcopy(FULL[path])
    if path == RESPONSES:
        original["input"].append({"type": "shell_call_output", "call_id": "1", "output": [{}]})
    images = measure_request(original, 0).images
    found = 0
    for number, one in enumerate(objects_of(original, ())):
        if dressed.keys() & one.keys():
            continue  # a real image
        body = copy.deepcopy(original)
        list(objects_of(body, ()))[number].update(dressed)
        if problem(path, body) is None:
            assert measure_request(body, len(json.dumps(body))).text_bytes > 5000
            assert measure_request(body, 0).images == images
            found += 1
    assert found > 0
    assert images > 0


@pytest.mark.parametrize("hosted", HOSTED, ids=lambda one: f"{one.path.split(':')[-1]} {one.fields}"[:90])
def test_what_the_provider_would_do_itself_is_refused_and_its_control_passes(hosted: Hosted) -> None:
    assert problem(hosted.path, {**FULL[hosted.path], **hosted.fields}) is not None
    assert problem(hosted.path, {**FULL[hosted.path], **hosted.control}) is None


@pytest.mark.parametrize(
    ("path", "more", "words"),
    [
        (MESSAGES, {"Tools": []}, "the field 'Tools' is not passed on by the gateway; agent.options.fields can"),
        (
            MESSAGES,
            {"tools": [{"type": "web_search_20250305"}]},
            "the field 'tools' has the type 'web_search_2025",
        ),
        (MESSAGES, {"messages": [{"role": "user", "odd": 1}]}, "the field 'messages.odd' is not passed on"),
        (MESSAGES, {"max_tokens": 1.5}, "the field 'max_tokens' must be an integer"),
        (MESSAGES, {"max_tokens": True}, "the field 'max_tokens' must be an integer"),
        (MESSAGES, {"max_tokens": 2**60}, "the field 'max_tokens' is too large"),
        (MESSAGES, {"stream": 1}, "the field 'stream' must be true or false"),
        (MESSAGES, {"model": ["m"]}, "the field 'model' must be the name of a model"),
        (CHAT, {"n": 100}, "the field 'n' must be 1 or absent"),
    ],
)
def test_a_refusal_names_the_field(path: str, more: dict[str, Any], words: str) -> None:
    assert (problem(path, {**FULL[path], **more}) or "").startswith(words)


def test_a_campaign_can_permit_a_field() -> None:
    asked = {**FULL[MESSAGES], "speed": "fast", "messages": [{"role": "user", "content": "x", "odd": 1}]}
    assert problem(MESSAGES, asked, frozenset({"speed"})) is not None
    assert problem(MESSAGES, asked, frozenset({"speed", "messages.odd"})) is None


def test_hints_of_the_first_party_are_left_out_for_other_hosts_and_nothing_else() -> None:
    full: dict[str, Any] = copy.deepcopy({**FULL[MESSAGES], "service_tier": "standard_only"})
    full["messages"][1]["content"][2]["input"]["scope"] = "kept"
    text = json.dumps(dialect(MESSAGES).fields.without(full, FIRST_PARTY_HINTS))
    for name in FIRST_PARTY_HINTS:
        assert text.count(f'"{name}"') == (1 if name == "scope" else 0)
    assert json.loads(text)["system"] == [
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    ]
