"""Which model requests may go to the provider, and as what."""

from __future__ import annotations

import json

from trialfleet_runner.gateway.account import Admitted, Asked, Refused
from trialfleet_runner.gateway.call import Call, Reply
from trialfleet_runner.gateway.exchange import Exchange
from trialfleet_runner.gateway.shared import Shared


def serve(shared: Shared, call: Call, reply: Reply) -> None:
    """Answer one model request: by the provider, or by saying why not. Raises `ClientGone`."""
    remote = None if shared.allow_remote else call.dialect.remote(call.body)
    if remote is not None:
        _refuse(shared, call, reply, f"{remote} would reach the network from the provider's side", None)
        return
    asked = Asked(
        model=call.model,
        main=shared.tally.is_main(call.model),
        tools=bool(call.body.get("tools")),
        bytes=len(call.data),
        output_cap=call.dialect.output_cap(call.body),
    )
    admitted = shared.account.admit(asked)
    if isinstance(admitted, Admitted):
        prepared = _prepared(call, admitted)
        if prepared is not None:
            Exchange(shared, call, prepared, admitted, reply).run()
            return
        shared.account.settle(admitted, None, answered=False)
        admitted = Refused("cost", "the trial's budget is nearly spent and the request cannot be cut to it")
    if admitted.kind == "unpriced" and asked.main:
        shared.halt(admitted.message)
    _refuse(shared, call, reply, admitted.message, admitted)


def _prepared(call: Call, admitted: Admitted) -> bytes | None:
    """The bytes to send: the agent's own unless something had to change; None: it cannot be cut."""
    body = call.dialect.prepared(call.body)
    if admitted.output_cap is not None:
        cut = call.dialect.with_cap(body, admitted.output_cap)
        if cut is None:
            return None
        body = cut
    try:
        return call.data if body is call.body else json.dumps(body).encode()
    except RecursionError:
        return None


def _refuse(shared: Shared, call: Call, reply: Reply, reason: str, refused: Refused | None) -> None:
    shared.tally.refuse(reason, refused.stop if refused else None)
    body = call.dialect.refusal(f"trialfleet: {reason}", "invalid_request_error")
    data = json.dumps(body).encode()
    reply.start(400, {"content-type": "application/json", "x-should-retry": "false"}, len(data))
    reply.send(data)
    reply.finish()
