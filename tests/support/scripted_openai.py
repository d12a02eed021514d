"""OpenAI's two APIs as a script plays them: Chat Completions and Responses, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.scripted_messages import Fail, Request, Say, ScriptedHandler, ScriptedMessages, serving


@contextmanager
def scripted_openai() -> Iterator[ScriptedMessages]:
    played = ScriptedMessages()
    with serving(played, handler=OpenAIHandler):
        yield played


class OpenAIHandler(ScriptedHandler):
    """Counts of a streamed chat are sent only if the request asks for them."""

    def streamed(self, request: Request) -> bool:
        self.counted = bool(request.body.get("stream_options", {}).get("include_usage"))
        return super().streamed(request)

    def message(self, reply: Say, request: Request, number: int) -> dict[str, Any]:
        model, usage = request.body.get("model", ""), reply.usage
        sent = usage.input + usage.cache_read + usage.cache_write
        if request.path.endswith("/responses"):
            calls = [
                {"type": "function_call", "call_id": f"call_{place}", "name": name, "arguments": json.dumps(given)}
                for place, (name, given) in enumerate(reply.tools)
            ]
            text = {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": reply.text}],
            }
            counts = {
                "input_tokens": sent,
                "input_tokens_details": {"cached_tokens": usage.cache_read},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.thoughts},
            }
            head = {"id": f"resp_{number:06}", "object": "response", "status": "completed", "model": model}
            return {**head, "output": [text, *calls], "usage": counts}
        tools = [
            {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for place, (name, given) in enumerate(reply.tools)
        ]
        said = {"role": "assistant", "content": reply.text, **({"tool_calls": tools} if tools else {})}
        counts = {
            "prompt_tokens": sent,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens": usage.output,
        }
        choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if tools else "stop"}
        head = {"id": f"chatcmpl_{number:06}", "object": "chat.completion", "model": model}
        return {**head, "choices": [choice], "usage": counts}

    counted = False  # the last request asked for counts in the stream

    def _opening(self, text: str, request: Request, number: int) -> list[bytes]:
        return super()._opening(text, request, number)[:2]  # the third event ends an answer of Chat Completions

    def pieces(self, message: dict[str, Any]) -> list[bytes]:
        events = _response_events(message) if "output" in message else _chat_events(message, counted=self.counted)
        ending = [] if "output" in message else [b"data: [DONE]\n\n"]
        return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events] + ending

    def error_piece(self, failure: Fail) -> bytes:
        if not self.path.endswith("/responses"):
            return super().error_piece(failure)
        error = {"code": failure.kind, "message": failure.message}
        return b"data: " + json.dumps({"type": "response.failed", "response": {"error": error}}).encode() + b"\n\n"

    def error(self, reply: Fail) -> dict[str, Any]:
        return {"error": {"message": reply.message, "type": reply.kind, "param": None, "code": reply.kind}}


def _response_events(message: dict[str, Any]) -> list[dict[str, Any]]:
    opening = {**message, "output": [], "usage": None, "status": "in_progress"}
    words = message["output"][0]["content"][0]["text"]
    return [
        {"type": "response.created", "response": opening},
        {"type": "response.output_text.delta", "delta": words},
        *({"type": "response.output_item.done", "item": item} for item in message["output"]),
        {"type": "response.completed", "response": message},
    ]


def _chat_events(message: dict[str, Any], *, counted: bool) -> list[dict[str, Any]]:
    head = {**{key: message[key] for key in ("id", "model")}, "object": "chat.completion.chunk"}
    (choice,) = message["choices"]
    calls = [{"index": place, **call} for place, call in enumerate(choice["message"].get("tool_calls", []))]
    deltas = [{"content": choice["message"]["content"]}, {"tool_calls": calls}]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    return chunks + ([{**head, "choices": [], "usage": message["usage"]}] if counted else [])
