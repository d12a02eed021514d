"""Answers of a model that plays a script, in the form of every API that agents speak: whole, or as a stream."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from trialfleet_agents.tool_calls import Call
from trialfleet_ledger.token_usage import TokenUsage

Wire = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the model says, then the tools that it calls."""

    text: str = "Done."
    calls: tuple[Call, ...] = ()
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(input=10, output=5))


def rendered(path: str, answer: Answer, model: str, number: int) -> tuple[Wire, list[Wire | str]]:
    """The whole body, and the events of a stream, as the API at `path` has them. `number` makes ids unique.

    Raises `KeyError` for a path that no API has.
    """
    if ":" in path and "/models/" in path:
        body = _gemini(answer, model)
        return body, [body]
    make = {"/v1/messages": _messages, "/v1/chat/completions": _chat, "/v1/responses": _responses}[path]
    return make(answer, model, number)


def server_sent(event: Wire | str) -> bytes:
    """One event of a stream of server-sent events. An event with a type carries it as its name too."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _messages(answer: Answer, model: str, number: int) -> tuple[Wire, list[Wire | str]]:
    usage = answer.usage
    content: list[Wire] = [{"type": "text", "text": answer.text}] if answer.text else []
    for place, call in enumerate(answer.calls):
        content.append(
            {"type": "tool_use", "id": f"toolu_{number:06}_{place}", "name": call.name, "input": call.given}
        )
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
    ending = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    head = {"id": f"msg_{number:06}", "type": "message", "role": "assistant", "model": model}
    whole = {**head, "content": content, **ending, "usage": counts}
    opening = {**whole, "content": [], "stop_reason": None, "usage": {**counts, "output_tokens": 1}}
    events: list[Wire | str] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(content):
        events += _block(index, block)
    final = {"output_tokens": usage.output}
    return whole, [*events, {"type": "message_delta", "delta": ending, "usage": final}, {"type": "message_stop"}]


def _block(index: int, block: Wire) -> list[Wire]:
    if block["type"] == "text":
        start: Wire = {"type": "text", "text": ""}
        delta: Wire = {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def _chat(answer: Answer, model: str, number: int) -> tuple[Wire, list[Wire | str]]:
    usage = answer.usage
    calls = [
        {
            "index": place,
            "id": f"call_{number:06}_{place}",
            "type": "function",
            "function": {"name": call.name, "arguments": _text(call)},
        }
        for place, call in enumerate(answer.calls)
    ]
    sent = usage.input + usage.cache_read
    counts = {
        "prompt_tokens": sent,
        "completion_tokens": usage.output,
        "total_tokens": sent + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
    message = {"role": "assistant", "content": answer.text, **({"tool_calls": calls} if calls else {})}
    finish = "tool_calls" if calls else "stop"
    head = {"id": f"chatcmpl-{number:06}", "created": 1_700_000_000, "model": model}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": counts}

    def chunk(delta: Wire, reason: str | None = None) -> Wire:
        given = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "object": "chat.completion.chunk", "choices": [given]}

    last: Wire = {**chunk({}), "choices": [], "usage": counts}
    return whole, [chunk({**message}), chunk({}, finish), last, "[DONE]"]


def _responses(answer: Answer, model: str, number: int) -> tuple[Wire, list[Wire | str]]:
    usage = answer.usage
    output: list[Wire] = []
    if answer.text:
        part: Wire = {"type": "output_text", "text": answer.text, "annotations": []}
        output.append({"type": "message", "id": f"msg_{number:06}", "role": "assistant", "content": [part]})
    for place, call in enumerate(answer.calls):
        name, text = f"{number:06}_{place}", _text(call)
        kind, given = ("custom", "input") if isinstance(call.given, str) else ("function", "arguments")
        item = {"type": "custom_tool_call" if kind == "custom" else "function_call", "id": f"fc_{name}"}
        space = {"namespace": call.namespace} if call.namespace else {}
        output.append({**item, "call_id": f"call_{name}", "name": call.name, **space, given: text})
    sent = usage.input + usage.cache_read
    counts = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + usage.output,
    }
    output = [{**item, "status": "completed"} for item in output]
    head = {"id": f"resp_{number:06}", "object": "response", "created_at": 1_700_000_000, "model": model}
    whole = {**head, "status": "completed", "output": output, "usage": counts}
    events: list[Wire] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(output):
        begun = {**item, "status": "in_progress"}
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": begun},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    events.append({"type": "response.completed", "response": whole})
    return whole, [{**event, "sequence_number": place} for place, event in enumerate(events)]


def _gemini(answer: Answer, model: str) -> Wire:
    usage = answer.usage
    parts: list[Wire] = [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"name": call.name, "args": call.given}} for call in answer.calls]
    counts = {
        "promptTokenCount": usage.input + usage.cache_read,
        "candidatesTokenCount": usage.output,
        "cachedContentTokenCount": usage.cache_read,
        "totalTokenCount": usage.input + usage.cache_read + usage.output,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": model}


def _text(call: Call) -> str:
    return call.given if isinstance(call.given, str) else json.dumps(call.given)
