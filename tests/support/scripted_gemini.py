"""The Gemini API as a script plays it: generateContent, streamGenerateContent as events or array, countTokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.scripted_messages import Fail, Request, Say, ScriptedHandler, ScriptedMessages, Usage, serving


@contextmanager
def scripted_gemini() -> Iterator[ScriptedMessages]:
    played = ScriptedMessages()
    with serving(played, handler=GeminiHandler):
        yield played


def gemini_counts(usage: Usage) -> dict[str, int]:
    """As `usageMetadata`: the prompt includes what was cached, the candidates exclude thoughts."""
    found = {
        "promptTokenCount": usage.input + usage.cache_read + usage.cache_write,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output - usage.thoughts,
        "thoughtsTokenCount": usage.thoughts,
        "totalTokenCount": usage.input + usage.cache_read + usage.cache_write + usage.output,
    }
    return {key: value for key, value in found.items() if value}


class GeminiHandler(ScriptedHandler):
    def aside(self, request: Request) -> dict[str, Any] | None:
        return {"totalTokens": 7} if request.path.endswith(":countTokens") else None

    def streamed(self, request: Request) -> bool:
        self.stream_type = "text/event-stream" if "alt=sse" in self.path else "application/json; charset=UTF-8"
        return "alt=sse" in self.path or request.path.endswith(":streamGenerateContent")

    def message(self, reply: Say, request: Request, number: int) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        parts += [{"functionCall": {"name": name, "args": given}} for name, given in reply.tools]
        model = request.path.rpartition("/")[2].partition(":")[0]
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": gemini_counts(reply.usage),
            "modelVersion": model,
            "responseId": f"r{number:06}",
        }

    def pieces(self, message: dict[str, Any]) -> list[bytes]:
        """One chunk per part, then the end; counts grow."""
        chunks = []
        for part in message["candidates"][0]["content"]["parts"]:
            prompt = {"promptTokenCount": message["usageMetadata"].get("promptTokenCount", 0)}
            content = {"content": {"role": "model", "parts": [part]}, "index": 0}
            chunks.append({**message, "candidates": [content], "usageMetadata": prompt})
        end = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
        chunks.append({**message, "candidates": [end]})
        if self.stream_type.startswith("text/event-stream"):
            return [b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks]
        texts = [json.dumps(chunk, indent=2).encode() for chunk in chunks]
        return [b"[" + texts[0], *(b"\n,\r\n" + text for text in texts[1:]), b"]"]

    def _opening(self, text: str, request: Request, number: int) -> list[bytes]:
        self.streamed(request)
        message = self.message(Say(text), request, number)
        if text:
            return self.pieces(message)[:1]
        head = json.dumps({key: message[key] for key in ("modelVersion", "responseId")}).encode()
        return [b"data: " + head + b"\r\n\r\n"]

    def error(self, reply: Fail) -> dict[str, Any]:
        error = {"code": reply.status, "message": reply.message, "status": reply.kind}
        return {"error": error | ({"details": list(reply.details)} if reply.details else {})}

    def do_GET(self) -> None:
        self._json(200, {"models": [{"name": "models/gemini-2.5-pro"}]})
