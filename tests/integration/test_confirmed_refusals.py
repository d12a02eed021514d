"""What the provider says to everybody halts, in whatever form it comes; what it says to one request does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.model_hosts import HOSTS, ask_model, gateway_to, request_for
from tests.support.model_requests import GEMINI, MESSAGES
from tests.support.scripted_messages import Fail, FailInside

KEY = "sk-ant-x"
LIMIT = f"You have reached your specified API usage limits with {KEY}."
KINDS = {"bedrock": "ValidationException", "vertex": "INVALID_ARGUMENT"}
FORMS = ["with its status", "inside a stream", "with 200"]


def make_refusal(name: str, message: str) -> Fail:
    google = HOSTS[name].path == GEMINI
    kind = KINDS.get(name) or ("FAILED_PRECONDITION" if google else "invalid_request_error")
    return Fail(400, kind, message)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form) for name in HOSTS for form in FORMS if (name, form) != ("bedrock", FORMS[2])
    ],  # its errors with 200 come in streams alone
)
def test_an_accounts_limit_halts_in_every_form(tmp_path: Path, name: str, form: str) -> None:
    host = HOSTS[name]
    path, body = request_for(host, streamed=form == "inside a stream")
    model = "claude-sonnet-4-6" if host.path == MESSAGES else str(body.get("model", "gemini-2.5-pro"))
    for everybody in (True, False):  # the control: the same words, which no other request meets
        folder = tmp_path / str(everybody)
        folder.mkdir()
        with gateway_to(folder, host, model=model) as (gateway, server):
            failure = make_refusal(name, LIMIT)
            other = failure if everybody else make_refusal(name, "messages: at least one message is required")
            server.play(failure if form == FORMS[0] else FailInside(failure), then=other)
            ask_model(gateway, path, json.dumps(body).encode())
        halt = gateway.report().halt
        assert (halt is not None) is everybody, gateway.report().errors
        assert halt is None or LIMIT.partition(KEY)[0] in halt
