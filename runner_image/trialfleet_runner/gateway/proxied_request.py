"""One request for a model: admitted or refused, forwarded, watched while it streams back, and accounted for."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from trialfleet_deliveries.received_texts import RequestReading
from trialfleet_ledger.records.measurements import TOKEN_KINDS
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_ledger.untrusted import plain
from trialfleet_runner.gateway.answers import Assembler, ModelAnswer
from trialfleet_runner.gateway.budget import RequestCost, RequestRefused, Reservation
from trialfleet_runner.gateway.canary import look, strings
from trialfleet_runner.gateway.dialects import ToolCall
from trialfleet_runner.gateway.faults import (
    Fault,
    ProviderFailure,
    failure_of,
    retry_after_s,
    stated_token_limit,
    stated_wait_s,
)
from trialfleet_runner.gateway.gateway_context import AgentConnection, AgentRequest, ClientGone, GatewayContext
from trialfleet_runner.gateway.planned_model import FailedRequest
from trialfleet_runner.gateway.provider_probe import failure_of_refusal
from trialfleet_runner.gateway.record import capped
from trialfleet_runner.gateway.redaction import StreamRedaction
from trialfleet_runner.gateway.request_json import serialise_request
from trialfleet_runner.gateway.request_size import RequestSize, measure_request
from trialfleet_runner.gateway.upstream import (
    ProviderResponse,
    UpstreamRefusal,
    json_body,
    passed_back,
    whole_body,
)

_CHUNK = 2**16


class ProxiedRequest:
    """One admitted request. It is settled exactly once, on every path."""

    def __init__(
        self,
        of: GatewayContext,
        call: AgentRequest,
        data: bytes,
        admitted: Reservation,
        reply: AgentConnection,
        looked: Callable[[], object],
    ) -> None:
        self.of, self.call, self.data, self.admitted, self.reply = of, call, data, admitted, reply
        self.looked = looked
        self.started = of.clock()
        self.usage: TokenUsage | None = None
        self.estimated = 0
        self.tier: str | None = None
        self.answered = self.read = self.settled = self.left = False
        self.counted = True  # towards the cap on requests
        self.reading = RequestReading(())

    def run(self) -> None:
        self.of.tally.sent(self.started, look(self.call.body, self.of.canaries))
        self.reading = self.of.received.read_request(strings(self.call.body))
        upstream = self.of.line.upstream
        streamed = self.call.dialect.streamed(self.call.body)
        idle_s = upstream.idle_timeout_s if streamed else upstream.whole_timeout_s
        target = self.call.dialect.path + self.call.query
        self.of.live.add(self)
        try:
            with self.of.line.open("POST", target, self.call.headers, self.data, idle_s, owner=self) as response:
                self._answer(response)
        except (OSError, http.client.HTTPException) as error:
            self._unreachable(error)
        except UpstreamRefusal as error:
            self._failed(failure_of_refusal(error), None)
            self._local_error(404, str(error))
        finally:
            self.of.live.discard(self)
            self._settle()

    def _settle(self, calls: Sequence[ToolCall] = ()) -> int | None:
        """Once, and before the agent sees the end of its answer: what it asks next is judged by true sums.
        Returns the number of the turn, if it was one."""
        if self.settled:
            return None
        self.settled = True
        return self.of.account.settle(
            self.admitted,
            self.usage,
            estimated=self.estimated,
            answered=self.answered,
            read=self.read,
            counted=self.counted,
            tier=self.tier,
            calls=[call.input for call in calls],
        )

    def _answer(self, response: ProviderResponse) -> None:
        self.looked()
        if not 200 <= response.status < 300:
            self._error(response)
            return
        self.of.received.confirm_request(self.reading)
        asked = self.admitted.asked
        if asked.main:
            self.of.first_request.confirm_read(self.call.keep_request(has_tools=bool(asked.opening.tools)))
        self.of.tally.begin_answer(acts=asked.main or bool(asked.opening.tools))
        assembler = self.call.dialect.stream(response.headers.get_content_type())
        if assembler is not None:
            self._stream(response, assembler)
        else:
            self._whole(response)

    def _stream(self, response: ProviderResponse, assembler: Assembler) -> None:
        broken: str | None = None
        redaction = StreamRedaction(self.of.keys)
        try:
            self.reply.start(response.status, self._headers(response), None)
            while True:
                try:
                    chunk = response.read1(_CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    broken = f"the stream broke: {_text(error)}"
                    break
                if not chunk:
                    break
                assembler.feed(chunk)
                self.reply.send(redaction.feed(chunk))
            self.reply.send(redaction.end())
        except ClientGone:
            self.left = True
        answer = assembler.answer()
        if (self.of.line.closed or self.left) and not answer.complete and answer.error is None:
            self._interrupted(answer)
        elif answer.complete:
            self._complete(answer, response.status)
            self._quietly(self.reply.finish)
            return
        else:
            self._failed(_stream_failure(response.status, answer, broken), answer)
            if answer.error is not None and broken is None:
                self._quietly(self.reply.finish)
                return
        self.reply.abort()

    def _whole(self, response: ProviderResponse) -> None:
        data = whole_body(response)
        body = json_body(data)
        answer = self.call.dialect.whole(body)
        if answer.complete:
            self._complete(answer, response.status)
            self._pass(response, data)
            return
        failure = failure_of(None, body)  # an error page, JSON that was cut, or an error that is said with 200
        self._failed(replace(failure, status=response.status), answer)
        message = self.of.bodies.redact(failure.message)
        self._local_error(400 if failure.may_be_permanent else 502, f"the provider's answer is none: {message}")

    def _error(self, response: ProviderResponse) -> None:
        data = whole_body(response)
        body = json_body(data)
        failure = failure_of(response.status, body)
        limit = stated_token_limit(response.getheaders(), body)
        if failure.fault is Fault.TRANSIENT and limit is not None and self.admitted.asked.least_tokens > limit:
            failure = replace(failure, fault=Fault.REQUEST)  # it never passes: the agent's own doing
        wait_s = stated_wait_s(response.headers.get("retry-after"), body)
        self._failed(failure, None, math.inf if wait_s is None else self.of.clock() + wait_s)
        if 300 <= response.status < 400:
            self._local_error(502, f"the provider redirects ({response.status}), which is not followed")
        else:
            self._pass(response, data, retry_after_s(body) or self._advised_wait_s(failure))

    def _unreachable(self, error: Exception) -> None:
        """No answer, or a whole one that broke off before anything of it was passed on. Where the agent or the
        runner hung up, a model may have been at work all the time."""
        if self.of.line.closed or self.left:
            self.read = not isinstance(error, ConnectionAbortedError)
            if self.read:
                self.estimated = self.admitted.estimate_output(0, self.of.clock() - self.started)
            self.of.tally.hung_up()
            self.reply.abort()
            return
        failure = ProviderFailure(Fault.TRANSIENT, None, (), f"no answer: {_text(error)}")
        self._failed(failure, None)
        self._local_error(502, "the model provider does not answer", self._advised_wait_s(failure))

    def _complete(self, answer: ModelAnswer, status: int) -> None:
        self._charge(answer)
        self._succeed(answer)
        calls = self.call.dialect.calls(answer.body)
        turn = self._settle(calls)
        self._note(answer, turn, calls)
        self._record(status, answer, turn, None)

    def _succeed(self, answer: ModelAnswer) -> None:
        self.answered = self.read = True
        self.of.tally.succeeded(
            self.of.clock(),
            chain=self.call.chain,
            started=self.started,
            main=self.admitted.asked.main,
            answer=answer,
        )

    def _interrupted(self, answer: ModelAnswer) -> None:
        """The agent or the runner hung up on a stream that the provider had begun. A model may have been at work,
        seen or not, and is paid by its time; a turn, and a sign that the provider answers, is what has content."""
        self._charge(answer, self.of.clock() - self.started)
        self.read = True
        if answer.begun:
            self._succeed(answer)
        turn = self._settle(self.call.dialect.calls(answer.body)) if answer.begun else self._settle()
        self.of.tally.hung_up()
        self._record(None, answer, turn, "interrupted")

    def _failed(self, failure: ProviderFailure, answer: ModelAnswer | None, until: float = math.inf) -> None:
        """`until`: the end of the provider's Retry-After."""
        failure = replace(failure, words=self.of.bodies.redact(failure.words))
        if answer is not None:
            self._charge(answer)
            self.read = answer.usage is not None or answer.begun
        self.counted = self.read or failure.fault is Fault.REQUEST
        self._settle()
        chain, main = self.call.chain, self.admitted.asked.main
        if failure.fault is Fault.REQUEST:
            self.of.tally.declined(chain=chain, started=self.started, main=main)
        one = FailedRequest(self.started, self.call.sent, failure)
        self.of.tally.failed(self.of.clock(), chain=chain, main=main, one=one, until=until)
        self._record(failure.status, answer, None, failure.message)

    def _charge(self, answer: ModelAnswer, seconds: float = 0.0) -> None:
        """What was counted, and of an answer that was cut or came without counts an estimate of its output.
        `seconds`: in which a model has worked on it, if it was left."""
        self.usage, self.tier = answer.usage, answer.tier
        counted = answer.usage.output if answer.usage else 0
        chars = answer.chars if answer.complete else answer.streamed_chars
        if not (answer.complete and counted):
            self.estimated = max(0, self.admitted.estimate_output(chars, seconds) - counted)

    def _note(self, answer: ModelAnswer, turn: int | None, calls: list[ToolCall]) -> None:
        """One line per complete answer, which joins an agent's output with measured counts and times."""
        self.of.answers.write(
            {
                "id": answer.id,
                "turn": turn,
                "at_s": round(self.of.clock(), 3),
                "model": answer.model,
                **(answer.usage.by_kind() if answer.usage else dict.fromkeys(TOKEN_KINDS)),
                "tools": [call.name for call in calls],
            }
        )

    def _record(self, status: int | None, answer: ModelAnswer | None, turn: int | None, error: str | None) -> None:
        self.of.bodies.write(
            {
                "at_s": round(self.started, 3),
                "path": self.call.dialect.path,
                "turn": turn,
                "status": status,
                "error": error,
                "output_cap": self.admitted.output_cap,
                "request": capped(self.call.body, len(self.data)),
                "response": None if answer is None else answer.body,
            }
        )

    def _pass(self, response: ProviderResponse, data: bytes, retry_after: int | None = None) -> None:
        """`retry_after`: seconds; a header of the provider comes first."""
        safe = self.of.keys.redact_bytes(data)
        headers = _wait_header(retry_after) | self._headers(response)
        self._quietly(lambda: self.reply.whole(response.status, headers, safe))

    def _headers(self, response: ProviderResponse) -> dict[str, str]:
        return self.of.keys.redact_headers(passed_back(response.getheaders()))

    def _advised_wait_s(self, failure: ProviderFailure) -> int | None:
        planned = self.admitted.asked.main and failure.fault is Fault.TRANSIENT
        return self.of.tally.advised_wait_s() if planned else None

    def _local_error(self, status: int, message: str, retry_after: int | None = None) -> None:
        body = self.call.dialect.refusal(f"trialfleet: {message}", "api_error")
        data = json.dumps(body).encode()
        headers = _wait_header(retry_after) | {"content-type": "application/json"}
        self._quietly(lambda: self.reply.whole(status, headers, data))

    def _quietly(self, act: Callable[[], None]) -> None:
        """The answer is already accounted for: an agent that hangs up now changes nothing."""
        with suppress(ClientGone):
            act()


def _stream_failure(status: int, answer: ModelAnswer, broken: str | None) -> ProviderFailure:
    """A stream without its end: as its error says, or broken off."""
    if answer.error is not None:
        return replace(failure_of(None, answer.failed), status=status)
    message = broken or "the stream ended before the answer did"
    return ProviderFailure(Fault.TRANSIENT, status, (), message)


def _wait_header(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"retry-after": str(seconds)}


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def describe_foreign(model: str) -> str:
    """What is said of a model that the plan lacks."""
    return f"the model {plain(repr(model), 200)} is not in the plan; agent.options.side_models can permit it"


def serve(shared: GatewayContext, call: AgentRequest, reply: AgentConnection) -> None:
    """Answer one model request: by the provider, or by saying why not. Raises `ClientGone`."""
    looked = shared.on_request(shared.account.spent.turns)
    forbidden = call.dialect.fields.problem(call.body, "", shared.permitted)
    if forbidden is not None:
        _refuse(shared, call, reply, forbidden, None)
        return
    body = call.dialect.drop_labels(call.body, shared.permitted)
    if body is not call.body:
        call = replace(call, body=body, data=serialise_request(body))
    if not shared.tally.is_declared(call.model):
        shared.tally.refuse_model(call.model)
        _refuse(shared, call, reply, describe_foreign(call.model), None, as_error=(404, "not_found_error"))
        return
    size = measure_request(call.body, len(call.data))
    if size.least_tokens > shared.request_tokens:
        message = f"prompt is too long: more than limits.request_tokens ({shared.request_tokens:,} tokens)"
        _refuse(shared, call, reply, message, None, as_error=(413, "request_too_large"))
        return
    asked = _cost_of(call, size, shared.request_tokens, main=shared.tally.is_main(call.model))
    admitted = shared.account.admit(asked, shared.drop_left)
    if isinstance(admitted, Reservation):
        prepared = _prepared(call, admitted)
        if prepared is not None:
            ProxiedRequest(shared, call, prepared, admitted, reply, looked).run()
            return
        shared.account.settle(admitted, None, answered=False, counted=False)
        admitted = RequestRefused("cost", "the trial's budget is nearly spent and the request cannot be cut to it")
    if admitted.kind == "unpriced" and asked.main:
        shared.tally.halt_campaign(admitted.message)
    _refuse(shared, call, reply, admitted.message, admitted)


def _cost_of(call: AgentRequest, size: RequestSize, most_tokens: int, *, main: bool) -> RequestCost:
    return RequestCost(
        model=call.model,
        main=main,
        opening=call.dialect.opening(call.body),
        bytes=size.text_bytes,
        least_tokens=size.least_tokens,
        media_tokens=size.most_media_tokens(most_tokens),
        output_cap=call.dialect.output_cap(call.body),
        cached_1h=b'"1h"' in call.data,
        tier=call.dialect.tier(call.body),
    )


def _prepared(call: AgentRequest, admitted: Reservation) -> bytes | None:
    """The bytes to send: the request as it was read, unless something had to change; None: it cannot be cut."""
    body = call.dialect.prepared(call.body)
    if admitted.output_cap is not None:
        cut = call.dialect.with_cap(body, admitted.output_cap)
        if cut is None:
            return None
        body = cut
    return call.data if body is call.body else serialise_request(body)


def _refuse(
    shared: GatewayContext,
    call: AgentRequest,
    reply: AgentConnection,
    reason: str,
    refused: RequestRefused | None,
    *,
    as_error: tuple[int, str] = (400, "invalid_request_error"),
) -> None:
    """`as_error`: status and type of the error."""
    shared.tally.refuse(reason, refused.stop if refused else None)
    status, kind = as_error
    data = json.dumps(call.dialect.refusal(f"trialfleet: {reason}", kind)).encode()
    reply.whole(status, {"content-type": "application/json", "x-should-retry": "false"}, data)
