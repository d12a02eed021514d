"""Vertex AI as a script plays it: Claude by rawPredict and Gemini, for the bearer tokens that are valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.support.scripted_gemini import GeminiHandler
from tests.support.scripted_messages import (
    Fail,
    MessagesHandler,
    Request,
    Say,
    ScriptedHandler,
    ScriptedMessages,
    serving,
)

BASE = "/v1/projects/my-project/locations/europe-west1/publishers"


class ScriptedVertex(ScriptedMessages):
    def __init__(self) -> None:
        super().__init__()
        self.valid = {"ya29.first"}


@contextmanager
def scripted_vertex() -> Iterator[ScriptedVertex]:
    played = ScriptedVertex()
    with serving(played, handler=VertexHandler):
        yield played


class VertexHandler(ScriptedHandler):
    """Claude's and Gemini's answers are those of their own APIs; errors are Google's."""

    scripted: ScriptedVertex

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path.partition("?")[0], headers, json.loads(data))
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.scripted.valid:
            self._json(401, self.error(Fail(401, "UNAUTHENTICATED", "Request had invalid credentials.")))
        elif not request.path.startswith(BASE):
            self._json(404, self.error(Fail(404, "NOT_FOUND", "no such path")))
        else:
            self.play(request)

    def aside(self, request: Request) -> dict[str, Any] | None:
        return {"input_tokens": 7} if "count-tokens:" in request.path else None

    def streamed(self, request: Request) -> bool:
        if "/google/" in request.path:
            return GeminiHandler.streamed(self, request)  # type: ignore[arg-type]
        return request.path.endswith(":streamRawPredict")

    def message(self, reply: Say, request: Request, number: int) -> dict[str, Any]:
        if "/google/" in request.path:
            return GeminiHandler.message(self, reply, request, number)  # type: ignore[arg-type]
        model = request.path.rpartition("/")[2].partition(":")[0].replace("@", "-")
        asked = Request(request.path, request.headers, {"model": model})
        return MessagesHandler.message(self, reply, asked, number)  # type: ignore[arg-type]

    def _opening(self, text: str, request: Request, number: int) -> list[bytes]:
        if "/google/" in request.path:
            return GeminiHandler._opening(self, text, request, number)  # type: ignore[arg-type]
        return super()._opening(text, request, number)

    def pieces(self, message: dict[str, Any]) -> list[bytes]:
        spoken = GeminiHandler if "candidates" in message else MessagesHandler
        return spoken.pieces(self, message)  # type: ignore[arg-type]

    def error_piece(self, failure: Fail) -> bytes:
        """Claude's streams end with Claude's error, although other errors are Google's."""
        if "/google/" in self.path:
            return super().error_piece(failure)
        said = replace(failure, kind="invalid_request_error")
        return b"data: " + json.dumps(MessagesHandler.error(self, said)).encode() + b"\n\n"  # type: ignore[arg-type]

    def error(self, reply: Fail) -> dict[str, Any]:
        return GeminiHandler.error(self, reply)  # type: ignore[arg-type]
