"""The APIs that the gateway speaks at fixed paths: where they differ and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trialfleet_ledger.token_usage import count, messages_usage, openai_usage
from trialfleet_ledger.untrusted import mapping, objects
from trialfleet_runner.gateway.answers import (
    UNANSWERED,
    Assembler,
    ChatAssembler,
    MessagesAssembler,
    ModelAnswer,
    ResponsesAssembler,
    whole_answer,
)
from trialfleet_runner.gateway.conversations import Opening
from trialfleet_runner.gateway.requests.messages_fields import MESSAGES, METADATA
from trialfleet_runner.gateway.requests.openai_fields import CHAT, RESPONSES, SPECIFIC
from trialfleet_runner.gateway.requests.shapes import Fields, Labels

Body = dict[str, Any]
_SPECIFIC = "provider_specific_fields"
_SPECIFIC_PLACE = f"messages.{_SPECIFIC}"


@dataclass(frozen=True)
class ToolCall:
    """`input`: JSON, or text that is none."""

    name: str
    input: object


def _name(tool: Body) -> str:
    """Of a tool or call without one, as a shell that the API knows: its type."""
    return str(tool.get("name") or tool.get("type"))


def _before_the_model(messages: object) -> Iterator[str]:
    """Texts of the user's messages up to the first of the model."""
    for message in objects(messages):
        role = message.get("role")
        if role == "assistant" or (role is None and message.get("type") not in (None, "message")):
            return
        if role == "user":
            content = message.get("content")
            yield content if isinstance(content, str) else "\n".join(texts(objects(content)))


def texts(parts: list[Body]) -> Iterator[str]:
    return (part["text"] for part in parts if isinstance(part.get("text"), str))


def _keep_known(body: Body, name: str, labels: Labels) -> Body:
    """With the labels' known fields alone in the field `name`."""
    given = mapping(body.get(name))
    kept = labels.keep_known(given)
    if kept == given:
        return body
    return {**body, name: kept} if kept else {key: value for key, value in body.items() if key != name}


class Dialect:
    """What the APIs have in common, as OpenAI's have it."""

    path = ""
    fields: Fields  # what a request may have; the rest is refused
    assembler: type[Assembler]
    caps: tuple[str, ...] = ()  # fields that limit the output; the first is the one to set
    parts = ""  # the field of an answer that lists its parts
    labelled = "metadata"  # the field of a request that has labels
    labels = Labels()  # what is sent of them

    def whole(self, body: Body) -> ModelAnswer:
        """A 2xx answer that was not streamed; without its parts it is none (an error page, JSON that was cut)."""
        complete = body.get("error") is None and isinstance(body.get(self.parts), list)
        return whole_answer(body, openai_usage, complete=complete and self.has_answer(body))

    def has_answer(self, body: Body) -> bool:
        """Whether a body with its parts is an answer."""
        return True

    def model(self, body: Body) -> str:
        return str(body.get("model", ""))

    def tier(self, body: Body) -> str | None:
        """The service tier that the request asks for."""
        asked = body.get("service_tier") or body.get("serviceTier")
        return asked if isinstance(asked, str) else None

    def streamed(self, body: Body) -> bool:
        """Whether the request asks for a stream."""
        return body.get("stream") is True

    def stream(self, content_type: str) -> Assembler | None:
        """What assembles an answer of this content type as it comes; None: it comes whole."""
        return self.assembler() if content_type == "text/event-stream" else None

    def calls(self, body: Body) -> list[ToolCall]:
        """Tools that an answer calls, in order."""
        raise NotImplementedError

    def opening(self, body: Body) -> Opening:
        """The user's text before the model first speaks, and the tools that are offered."""
        tools = (mapping(tool.get("function")).get("name") or _name(tool) for tool in objects(body.get("tools")))
        return Opening("\n".join(_before_the_model(body.get("messages"))), frozenset(map(str, tools)))

    def refusal(self, message: str, kind: str) -> Any:
        """An error in this API's form, as JSON."""
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}

    def output_cap(self, body: Body) -> int | None:
        """The request's own limit on output tokens; None: it has none, or one that is not positive, which some
        servers read as none. Of two limits the larger: a provider may keep either."""
        given = [count(body, cap) for cap in self._given_caps(body)]
        return max(given) if given and all(given) else None

    def _given_caps(self, body: Body) -> list[str]:
        return [cap for cap in self.caps if body.get(cap) is not None]

    def with_cap(self, body: Body, tokens: int) -> Body | None:
        """The request limited to `tokens` output tokens; None when it cannot be."""
        return {**body, **dict.fromkeys(self._given_caps(body) or self.caps[:1], tokens)}

    def drop_labels(self, body: Body, permitted: frozenset[str]) -> Body:
        """The request without fields that no model reads and a proxy on the way may act on, unless they are
        permitted; the same object when nothing changes."""
        return body if self.labelled in permitted else _keep_known(body, self.labelled, self.labels)

    def prepared(self, body: Body) -> Body:
        """The request with usage reporting asked for; the same object when nothing changes."""
        return body


class Messages(Dialect):
    """Anthropic's Messages API."""

    path = "/v1/messages"
    fields = MESSAGES
    assembler = MessagesAssembler
    caps = ("max_tokens",)
    parts = "content"
    labels = METADATA

    def whole(self, body: Body) -> ModelAnswer:
        return whole_answer(
            body, messages_usage, complete=body.get("type") == "message" and isinstance(body.get(self.parts), list)
        )

    def calls(self, body: Body) -> list[ToolCall]:
        called = (block for block in objects(body.get("content")) if "name" in block)
        return [ToolCall(str(block["name"]), block.get("input")) for block in called]

    def refusal(self, message: str, kind: str) -> Any:
        return {"type": "error", "error": {"type": kind, "message": message}}

    def with_cap(self, body: Body, tokens: int) -> Body | None:
        """A fixed thinking budget must stay below `max_tokens`: such a request cannot be cut below it."""
        thinking = count(mapping(body.get("thinking")), "budget_tokens")
        return super().with_cap(body, tokens) if tokens > thinking else None


class Chat(Dialect):
    """OpenAI's Chat Completions, as most gateways speak it."""

    path = "/v1/chat/completions"
    fields = CHAT
    assembler = ChatAssembler
    caps = ("max_completion_tokens", "max_tokens")
    parts = "choices"

    def has_answer(self, body: Body) -> bool:
        return any(mapping(choice.get("message")) for choice in objects(body.get("choices")))

    def calls(self, body: Body) -> list[ToolCall]:
        message = mapping((objects(body.get("choices")) or [{}])[0].get("message"))
        called = (mapping(call.get("function")) for call in objects(message.get("tool_calls")))
        return [ToolCall(str(call["name"]), _input(call.get("arguments"))) for call in called if "name" in call]

    def drop_labels(self, body: Body, permitted: frozenset[str]) -> Body:
        body, messages = super().drop_labels(body, permitted), objects(body.get("messages"))
        if _SPECIFIC_PLACE in permitted or not any(_SPECIFIC in message for message in messages):
            return body
        return {**body, "messages": [_keep_known(message, _SPECIFIC, SPECIFIC) for message in messages]}

    def prepared(self, body: Body) -> Body:
        options = mapping(body.get("stream_options"))
        if not body.get("stream") or options.get("include_usage") is True:
            return body
        return {**body, "stream_options": {**options, "include_usage": True}}


class Responses(Dialect):
    """OpenAI's Responses API."""

    path = "/v1/responses"
    fields = RESPONSES
    assembler = ResponsesAssembler
    caps = ("max_output_tokens",)
    parts = "output"

    def has_answer(self, body: Body) -> bool:
        return body.get("status") not in UNANSWERED

    def calls(self, body: Body) -> list[ToolCall]:
        found = [item for item in objects(body.get("output")) if str(item.get("type")).endswith("_call")]
        return [ToolCall(_name(item), _input(item.get("arguments") or item.get("input"))) for item in found]

    def opening(self, body: Body) -> Opening:
        given = body.get("input")
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return super().opening({"messages": messages, "tools": body.get("tools")})


def _input(arguments: object) -> object:
    """A call's arguments, which OpenAI's APIs write as JSON in a string."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


DIALECTS: dict[str, Dialect] = {dialect.path: dialect for dialect in (Messages(), Chat(), Responses())}
