"""Requests of our own, after the agent has ended: whether the provider refuses everybody, or this agent's request.

Only what they meet halts a campaign or loses an attempt: a header, a size or a path of the agent's choice cannot.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from trialfleet_runner.gateway.answers import Assembler
from trialfleet_runner.gateway.dialects import DIALECTS, Body, Dialect
from trialfleet_runner.gateway.faults import Fault, ProviderFailure, failure_of
from trialfleet_runner.gateway.gemini import Gemini
from trialfleet_runner.gateway.planned_model import FailedRequest, SentRequest
from trialfleet_runner.gateway.request_size import measure_request
from trialfleet_runner.gateway.upstream import (
    ProviderResponse,
    Upstream,
    UpstreamConnections,
    UpstreamRefusal,
    json_body,
    whole_body,
)

AGAIN_AFTER_S = (0.0, 20.0, 60.0)  # after the agent's end
_ANSWER_S = 60.0
_OUTPUT_TOKENS = 16  # the fewest that every API accepts
_CHUNK = 2**16
_HEADERS = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
_MODEL_IN_PATH = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True)
class ProviderProbe:
    """Asks `upstream` by connections of its own: those of the agent are closed."""

    upstream: Upstream
    delays_s: tuple[float, ...] = AGAIN_AFTER_S

    def confirms(self, suspect: FailedRequest, model: str, redact: Callable[[str], str]) -> bool:
        """Whether a minimal request for the planned model meets the same failure. What may be about the path
        rather than about the key counts only if no API of the provider answers. `redact`: as it was done to the
        suspect's words."""
        own, *others = _requests_of_ours(suspect.sent.dialect, model)
        again = self.ask(own)
        if again is None:
            return False
        if not suspect.failure.repeats(replace(again, words=redact(again.words))):
            return False
        return suspect.failure.of_key or not any(self.ask(other) is None for other in others)

    def gave_up(self, last: FailedRequest, model: str, passed: int | None, stop: threading.Event) -> bool:
        """Whether the agent's last request, repeated 0, 20 and 60 s after its end, is never answered, and one of
        our own is not, either: an agent can compose what nobody answers. Ours has as many tokens as the provider
        has answered in this attempt (`passed`), and no more than the agent's: a limit of the account may let only
        small ones through. None: no model had answered yet, so that the program composed the request, and not the
        agent; then the repetitions decide alone. A refusal is an answer. False also if `stop` is set in the
        meantime."""
        dialect, sent = last.sent.dialect, last.sent
        body = dialect.with_cap(sent.body, _OUTPUT_TOKENS) or sent.body
        repeated = SentRequest(dialect, sent.query, sent.headers, body)
        began = time.monotonic()
        for delay_s in self.delays_s:
            if stop.wait(max(0.0, began + delay_s - time.monotonic())):
                return False
            if not self._is_unanswered(repeated):
                return False
        if passed is None:
            return True
        tokens = min(passed, measure_request(body, len(json.dumps(body))).least_tokens)
        own = _requests_of_ours(dialect, model, tokens)[0]
        capped = own.dialect.with_cap(own.body, _OUTPUT_TOKENS) or own.body
        return self._is_unanswered(replace(own, body=capped))

    def _is_unanswered(self, request: SentRequest) -> bool:
        failure = self.ask(request)
        return failure is not None and failure.fault is Fault.TRANSIENT

    def ask(self, request: SentRequest) -> ProviderFailure | None:
        """None: it is answered."""
        line, target = UpstreamConnections(self.upstream), request.dialect.path + request.query
        data = json.dumps(request.body).encode()
        try:
            with line.open("POST", target, request.headers, data, _ANSWER_S) as response:
                return _failure(response, request.dialect)
        except UpstreamRefusal as error:
            return failure_of_refusal(error)
        except (OSError, http.client.HTTPException) as error:
            return ProviderFailure(Fault.TRANSIENT, None, (), f"{type(error).__name__}: {error}"[:300])


def failure_of_refusal(error: UpstreamRefusal) -> ProviderFailure:
    """What the provider cannot take from anybody, by our own rules."""
    return ProviderFailure(Fault.FATAL, None, (), str(error))


def _failure(response: ProviderResponse, dialect: Dialect) -> ProviderFailure | None:
    if not 200 <= response.status < 300:
        return failure_of(response.status, json_body(whole_body(response)))
    assembler = dialect.stream(response.headers.get_content_type())
    if assembler is not None:
        return _failure_of_stream(response, assembler)
    body = json_body(whole_body(response))
    return None if dialect.whole(body).complete else replace(failure_of(None, body), status=response.status)


def _failure_of_stream(response: ProviderResponse, assembler: Assembler) -> ProviderFailure | None:
    while chunk := response.read1(_CHUNK):
        assembler.feed(chunk)
    answer = assembler.answer()
    return None if answer.complete else replace(failure_of(None, answer.failed), status=response.status)


def _requests_of_ours(own: Dialect, model: str, tokens: int = 0) -> list[SentRequest]:
    """For the planned model, in every API; the first in that of `own`. `tokens`: of the prompt; 0: a minimal
    one."""
    text = "word " * tokens or "hi"
    hi = [{"role": "user", "content": text}]
    bodies: dict[str, Body] = {
        "/v1/messages": {"model": model, "max_tokens": 1, "messages": hi},
        "/v1/chat/completions": {"model": model, "messages": hi},
        "/v1/responses": {"model": model, "input": text},
    }
    forms = [(DIALECTS[path], body) for path, body in bodies.items()]
    if _MODEL_IN_PATH.fullmatch(model):
        path = own.path.replace(":streamGenerateContent", ":generateContent")
        path = path if isinstance(own, Gemini) else f"/v1beta/models/{model}:generateContent"
        said: Body = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        forms.append((Gemini(path, model, stream=False, events=False), said))
    forms.sort(key=lambda form: type(form[0]) is not type(own))
    return [SentRequest(dialect, "", _HEADERS, body) for dialect, body in forms]
