"""Amazon Bedrock as a script plays it: InvokeModel whole and streamed. It computes every signature itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import struct
from binascii import crc32
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote

from tests.support.scripted_messages import Fail, MessagesHandler, Request, Say, ScriptedMessages, serving

KEY_ID, SECRET, SESSION, REGION = "AKIAEXAMPLE", "aws/secret+key", "session==token", "eu-central-1"
BEARER = "bedrock-api-key"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>\w+)/(?P<scope>[\w/-]+), "
    r"SignedHeaders=(?P<names>[a-z0-9;-]+), Signature=(?P<signature>[0-9a-f]{64})"
)


@contextmanager
def scripted_bedrock() -> Iterator[ScriptedMessages]:
    played = ScriptedMessages()
    with serving(played, handler=BedrockHandler):
        yield played


def signature_is_right(method: str, path: str, headers: dict[str, str], body: bytes) -> bool:
    """AWS Signature Version 4, from its description, without any AWS library."""
    given = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if given is None or given["id"] != KEY_ID or headers.get("x-amz-security-token") != SESSION:
        return False
    date = headers["x-amz-date"][:8]
    scope = f"{date}/{REGION}/bedrock/aws4_request"
    names = given["names"].split(";")
    if given["scope"] != scope or not {"host", "x-amz-date", "x-amz-security-token"} <= set(names):
        return False
    canonical = "\n".join(
        [
            method,
            quote(path, safe="/~-_."),  # the path as it was sent, encoded once more
            "",
            *(f"{name}:{' '.join(headers[name].split())}" for name in names),
            "",
            given["names"],
            hashlib.sha256(body).hexdigest(),
        ]
    )
    text = "\n".join(
        ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = b"AWS4" + SECRET.encode()
    for part in (date, REGION, "bedrock", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), given["signature"])


def event_message(headers: dict[str, str], payload: bytes) -> bytes:
    """One message of the binary event stream."""
    fields = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(fields) + len(payload), len(fields))
    data = prelude + struct.pack("!I", crc32(prelude)) + fields + payload
    return data + struct.pack("!I", crc32(data))


def chunk_message(event: dict[str, Any]) -> bytes:
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcd"}).encode()
    kind = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return event_message(kind, payload)


class BedrockHandler(MessagesHandler):
    stream_type = "application/vnd.amazon.eventstream"

    def aside(self, request: Request) -> dict[str, Any] | None:
        return None

    def do_POST(self) -> None:
        self.body_bytes = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        signed = signature_is_right("POST", self.path, headers, self.body_bytes)
        if not signed and headers.get("authorization") != f"Bearer {BEARER}":
            self.refuse(Fail(403, "InvalidSignatureException", "The request signature does not match."))
            return
        self.play(Request(self.path, headers, json.loads(self.body_bytes)))

    def refuse(self, reply: Fail) -> None:
        self.extra = {"x-amzn-errortype": f"{reply.kind}:http://internal.amazon.com/"}
        self._json(reply.status, self.error(reply), retry_after=reply.retry_after)

    def streamed(self, request: Request) -> bool:
        return request.path.endswith("/invoke-with-response-stream")

    def message(self, reply: Say, request: Request, number: int) -> dict[str, Any]:
        model = unquote(request.path.split("/")[2]).rpartition("anthropic.")[2]
        return super().message(reply, Request(request.path, request.headers, {"model": model}), number)

    def pieces(self, message: dict[str, Any]) -> list[bytes]:
        events = [json.loads(piece.split(b"data: ")[1]) for piece in super().pieces(message)]
        events[-1]["amazon-bedrock-invocationMetrics"] = {"inputTokenCount": 1}
        return [chunk_message(event) for event in events]

    def error_piece(self, failure: Fail) -> bytes:
        kind = failure.kind[:1].lower() + failure.kind[1:]
        headers = {":message-type": "exception", ":exception-type": kind}
        return event_message(headers, json.dumps({"message": failure.message}).encode())

    def error(self, reply: Fail) -> dict[str, Any]:
        return {"message": reply.message}
