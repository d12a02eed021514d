"""Amazon Bedrock: the Messages API over InvokeModel, signed; its event stream comes back as the API's own."""

from __future__ import annotations

import base64
import binascii
import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import quote, urlsplit

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.untrusted import json_object, mapping
from trialfleet_runner.gateway.request_json import serialise_request
from trialfleet_runner.gateway.requests.messages_fields import FIRST_PARTY_HINTS, MESSAGES
from trialfleet_runner.gateway.upstream import (
    Outgoing,
    ProviderResponse,
    Upstream,
    UpstreamRefusal,
    json_body,
    whole_body,
)
from trialfleet_runner.gateway.upstreams.event_stream import EventMessage, EventStreamDecoder

_VERSION = "bedrock-2023-05-31"
_EVENT_STREAM = "application/vnd.amazon.eventstream"
# Beta features that Bedrock takes; it refuses a request that names another.
_BETAS = (
    "computer-use-",
    "context-1m-",
    "context-management-",
    "dev-full-thinking-",
    "effort-",
    "fine-grained-tool-streaming-",
    "interleaved-thinking-",
    "output-128k-",
    "token-efficient-tools-",
    "tool-examples-",
    "tool-search-tool-",
)
_KINDS = {
    "ThrottlingException": "rate_limit_error",
    "ServiceQuotaExceededException": "rate_limit_error",
    "ServiceUnavailableException": "overloaded_error",
    "ModelNotReadyException": "overloaded_error",
    "AccessDeniedException": "permission_error",
    "UnrecognizedClientException": "authentication_error",
    "InvalidSignatureException": "authentication_error",
    "ExpiredTokenException": "authentication_error",
    "ResourceNotFoundException": "not_found_error",
    "ValidationException": "invalid_request_error",
}
_NO_MODEL = ("model identifier", "on-demand throughput", "end of its life")
_FAILED_DEPENDENCY = 424  # the model failed; nobody but Bedrock uses it, and clients retry a 500

Sign = Callable[[str, bytes, dict[str, str]], dict[str, str]]


@dataclass(frozen=True)
class Bedrock(Upstream):
    """`models`: names as agents ask for them -> ids or inference profiles of Bedrock; a name with `anthropic.` in
    it, or an ARN, is one. `sign`: URL, body, headers -> headers with the signature; None: `key` is an API key of
    Bedrock. `held`: what must be redacted besides the key."""

    models: Mapping[str, str] = field(default_factory=dict[str, str])
    sign: Sign | None = field(default=None, repr=False)
    held: tuple[str, ...] = field(default=(), repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*super().secrets, *self.held)

    def outgoing(self, request: Outgoing) -> Outgoing:
        path = request.target.partition("?")[0]
        if path != "/v1/messages":
            raise UpstreamRefusal(f"Bedrock serves the Messages API only, not {path}")
        body = mapping(MESSAGES.without(json_object(request.data or b""), FIRST_PARTY_HINTS))
        model, streamed = self._id(str(body.pop("model", ""))), body.pop("stream", False) is True
        betas = [one.strip() for one in request.headers.get("anthropic-beta", "").split(",")]
        body["anthropic_version"] = _VERSION
        if taken := [beta for beta in betas if beta.startswith(_BETAS)]:
            body["anthropic_beta"] = taken
        action = "invoke-with-response-stream" if streamed else "invoke"
        target, data = f"{self.prefix}/model/{quote(model, safe='')}/{action}", serialise_request(body)
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        return Outgoing("POST", target, self._authorised(target, data, headers), data)

    def received(self, response: http.client.HTTPResponse) -> ProviderResponse:
        return BedrockResponse(response)

    def _id(self, model: str) -> str:
        found = self.models.get(model, model)
        if "anthropic." not in found and not found.startswith("arn:"):
            raise UpstreamRefusal(
                f"model: {model!r} is not an id of Bedrock; map it in agent.options.model_ids, "
                f"for example {{{model}: us.anthropic.{model}}}"
            )
        return found

    def _authorised(self, target: str, data: bytes, headers: dict[str, str]) -> dict[str, str]:
        if self.sign is None:
            return headers | {"authorization": f"Bearer {self.key}"}
        parts = urlsplit(self.base_url)
        return self.sign(f"{parts.scheme}://{parts.netloc}{target}", data, headers)


class BedrockResponse:
    """An answer of Bedrock in the form of the Messages API: its stream as events, its errors as errors."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self._decoder = EventStreamDecoder()
        self._error: bytes | None = None
        self.headers = Message()
        for name, value in response.getheaders():
            self.headers[{"x-amzn-requestid": "request-id"}.get(name.lower(), name)] = value
        self.status = 500 if response.status == _FAILED_DEPENDENCY else response.status
        self._streamed = response.headers.get_content_type() == _EVENT_STREAM
        if self._streamed:
            self.headers.replace_header("content-type", "text/event-stream")

    def getheaders(self) -> list[tuple[str, str]]:
        return list(self.headers.items())

    def read(self, amt: int | None = None) -> bytes:
        if 200 <= self.status < 300:
            return self._response.read(amt)
        if self._error is not None:
            return b""
        kind = (self._response.headers.get("x-amzn-errortype") or "").partition(":")[0]
        self._error = json.dumps(_error(kind, json_body(whole_body(self._response)))).encode()
        return self._error

    def read1(self, n: int = -1) -> bytes:
        if not self._streamed:
            return self._response.read1(n)
        while chunk := self._response.read1(n):
            if found := b"".join(map(_event, self._decoder.feed(chunk))):
                return found
        return b""


def _error(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """An error of Bedrock (`ThrottlingException`, `{"message": …}`) in the form of the Messages API."""
    message = str(body.get("message") or body.get("Message") or kind)
    error = {"type": _KINDS.get(kind, "api_error"), "message": message}
    if any(words in message for words in _NO_MODEL):
        error["code"] = "model_not_found"
    return {"type": "error", "error": error}


def _event(message: EventMessage) -> bytes:
    """One event of the Messages API as SSE."""
    if message.headers.get(":message-type") == "event":
        event = _chunk(message.payload)
    else:
        kind = message.headers.get(":exception-type") or message.headers.get(":error-code") or ""
        event = _error(kind[:1].upper() + kind[1:], json_object(message.payload))
    if not event:
        return b""
    name = str(event.get("type")).encode()
    return b"event: " + name.replace(b"\n", b"") + b"\ndata: " + json.dumps(event).encode() + b"\n\n"


def _chunk(payload: bytes) -> dict[str, Any]:
    try:
        return json_object(base64.b64decode(str(json_object(payload).get("bytes")), validate=True))
    except binascii.Error as error:
        raise http.client.HTTPException("an event of the stream is not base64") from error


def signer(region: str, keys: tuple[str, str, str | None] | None) -> tuple[Sign, tuple[str, ...]]:
    """Signature version 4 by botocore, and the secrets that it holds. `keys`: id, secret and session token; None:
    the usual chain (environment, profile, role). A role's credentials are renewed by botocore.

    Raises `OperatorError` without botocore and without credentials.
    """
    try:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        from botocore.session import Session
    except ImportError as error:
        raise OperatorError(
            "requests to Amazon Bedrock cannot be signed: botocore is not installed",
            where="agent: options: provider",
            hint="pip install botocore, or set AWS_BEARER_TOKEN_BEDROCK (no signature)",
        ) from error
    credentials = Credentials(*keys) if keys else Session().get_credentials()
    if credentials is None:
        raise OperatorError(
            "no AWS credentials for the model provider bedrock",
            where="environment: AWS_ACCESS_KEY_ID",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or AWS_BEARER_TOKEN_BEDROCK",
        )

    def sign(url: str, data: bytes, headers: dict[str, str]) -> dict[str, str]:
        request = AWSRequest("POST", url, data=data, headers=headers)
        SigV4Auth(credentials, "bedrock", region).add_auth(request)
        return {name.lower(): value for name, value in request.headers.items()}

    frozen = credentials.get_frozen_credentials()
    return sign, tuple(text for text in (frozen.secret_key, frozen.token) if text)
