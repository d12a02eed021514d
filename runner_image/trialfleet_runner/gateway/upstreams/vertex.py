"""Google's Vertex AI: Claude by rawPredict and Gemini by generateContent, with an access token."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from trialfleet_ledger.untrusted import json_object, mapping
from trialfleet_runner.gateway.request_json import serialise_request
from trialfleet_runner.gateway.requests.messages_fields import FIRST_PARTY_HINTS, MESSAGES
from trialfleet_runner.gateway.upstream import Outgoing, Upstream, UpstreamRefusal
from trialfleet_runner.gateway.upstreams.access_token import AccessToken

_VERSION = "vertex-2023-10-16"
_GEMINI = re.compile(r"/v1[a-z0-9]*/models/(?P<model>[^/:?]+):(?P<method>[A-Za-z]+)(?P<query>\?.*)?")
_DATED = re.compile(r"-(\d{8})$")


@dataclass(frozen=True)
class Vertex(Upstream):
    """`models`: names as agents ask for them -> names of Vertex; without an entry a date's dash becomes an @."""

    project: str = ""
    location: str = "global"
    token: AccessToken = field(default_factory=lambda: AccessToken(lambda: ("", 0.0)), repr=False)
    models: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    def watch(self, hide: Callable[[str], None]) -> None:
        self.token.watch(hide)

    def outgoing(self, request: Outgoing) -> Outgoing:
        publisher, method, data = self._method(request)
        target = f"/v1/projects/{self.project}/locations/{self.location}/publishers/{publisher}:{method}"
        key = {"authorization": f"Bearer {self.token.get()}", "accept-encoding": "identity"}
        return replace(request, target=self.prefix + target, headers=self.passed(request.headers) | key, data=data)

    def _method(self, request: Outgoing) -> tuple[str, str, bytes | None]:
        """Publisher and model, method with its query, body."""
        path, gemini = request.target.partition("?")[0], _GEMINI.fullmatch(request.target)
        if gemini is not None:
            model = self.models.get(gemini["model"], gemini["model"])
            return f"google/models/{model}", gemini["method"] + (gemini["query"] or ""), request.data
        if path not in ("/v1/messages", "/v1/messages/count_tokens"):
            raise UpstreamRefusal(f"Vertex AI serves the Messages API and Gemini's, not {path}")
        known = mapping(MESSAGES.without(json_object(request.data or b""), FIRST_PARTY_HINTS))
        body = known | {"anthropic_version": _VERSION}
        model = self._claude(str(body.get("model", "")))
        if path.endswith("count_tokens"):
            return "anthropic/models/count-tokens", "rawPredict", serialise_request(body | {"model": model})
        body.pop("model", None)
        method = "streamRawPredict" if body.get("stream") is True else "rawPredict"
        return f"anthropic/models/{model}", method, serialise_request(body)

    def _claude(self, model: str) -> str:
        found = self.models.get(model) or _DATED.sub(r"@\1", model)
        if not re.fullmatch(r"[A-Za-z0-9._@-]{1,200}", found):
            raise UpstreamRefusal(f"model: {model!r} is not the name of a model")
        return found

    def renew(self, refused: Outgoing) -> bool:
        return self.token.renew(refused.headers["authorization"].removeprefix("Bearer "))
