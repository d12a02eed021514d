"""What an agent may do to be lost, or to halt a campaign: bytes on both streams, exit codes, requests.

The provider is healthy: it answers by rule what a request deserves, and any other request with an answer.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
from base64 import b64encode
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.scripted_messages import Server
from trialfleet_agents.registry import KINDS
from trialfleet_agents.registry import agent as registered
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.measurements import Delivery
from trialfleet_ledger.records.verdicts import Loss
from trialfleet_runner.attempt.agent_run import refuse_witnessed, stopped
from trialfleet_runner.attempt.loss import Lost, from_exception
from trialfleet_runner.attempt.parsed_output import parse_output
from trialfleet_runner.attempt.patch_record import delivered
from trialfleet_runner.gateway import Canaries, Gateway, Upstream
from trialfleet_runner.gateway.provider_probe import ProviderProbe
from trialfleet_sandbox.protocol import Exit

MODEL = "claude-sonnet-4-6"
LARGE = 100_000  # characters: more brings the provider's rate limit
PATHS = ("/v1/messages", "/v1/chat/completions", "/v1/responses", f"/v1beta/models/{MODEL}:generateContent")
WORDS = (
    *("hi", "LIMIT", "BROKEN", "PAGE", "DENIED", "REFUSED", "x" * (LARGE + 1)),
    *("Your credit balance is too low", "insufficient_quota billing", "No space left on device"),
)
OUTPUT = (
    b"forwarder: ARGV0: No such file or directory\n",
    b"bwrap: execvp sh: No such file or directory\n",
    b"No space left on device\n",
    b'{"type":"result","is_error":true,"num_turns":1e400,"usage":{"input_tokens":"\\ud800"}}\n',
    b'{"type":"error","error":{"type":"authentication_error"}}\n',
    b'[[[[{"a":' * 2000,
    b"\xff\xfe\x00\n" * 50,
    b"out of memory, killed, evicted\n",
)


_TOOLS: dict[str, dict[str, Any]] = {
    PATHS[0]: {"tools": [{"name": "t", "input_schema": {}}]},
    PATHS[1]: {"tools": [{"type": "function", "function": {"name": "t"}}]},
    PATHS[2]: {"tools": [{"type": "function", "name": "t"}]},
    PATHS[3]: {"tools": [{"functionDeclarations": [{"name": "t"}]}]},
}


@dataclass(frozen=True)
class Call:
    """One request. `hang_up`: the agent closes the connection without reading."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    hang_up: bool


CLAIMS = (  # of context files that no condition declares, as an agent's program words them
    "Contents of /home/agent/CLAUDE.md:\n\nrules",
    "Contents of /workspace/sub/CLAUDE.md (project instructions, checked into the codebase):\n\nrules",
    "tool.call hook additional context: Contents of /workspace/\ud800/AGENTS.md:\n\nrules",
    "\n".join(f"Contents of /{n}/.claude/x.md:\n\nrules" for n in range(500)),
)
CANARIES = Canaries(
    declared=(DeclaredText("files", "Prices are floats in euros."),),
    forbidden={"context other": ("Vouchers are looked up by their number, and one that was used never again.",)},
    files=frozenset({"/workspace/CLAUDE.md"}),
)


@dataclass(frozen=True)
class Behaviour:
    kind: str
    calls: tuple[Call, ...]
    stdout: bytes
    stderr: bytes
    ended: Exit


def draw_behaviour(draw: random.Random) -> Behaviour:
    """Any behaviour, by the seed of `draw`."""
    cause = draw.choices(("itself", "timeout", "memory", "disk"), (7, 1, 1, 1))[0]
    code = draw.choice((0, 1, 2, 3, 75, 126, 127, 137, 139, 143, 255))
    calls = tuple(_call(draw) for _ in range(draw.randrange(7)))
    if draw.random() < 0.5:  # after the program's own first request, its shell may say anything
        calls = (claiming_call(""), *calls, *(claiming_call(claim) for claim in draw.choices(CLAIMS, k=2)))
    return Behaviour(
        kind=draw.choice(sorted(KINDS)),
        calls=calls,
        stdout=b"".join(draw.choices(OUTPUT, k=draw.randrange(4))) + draw.randbytes(draw.randrange(40)),
        stderr=b"".join(draw.choices(OUTPUT, k=draw.randrange(4))),
        ended=Exit(code, cause, draw.random() * 100, 1.0),  # type: ignore[arg-type]  # one of its causes
    )


def claiming_call(claim: str) -> Call:
    """A request whose program says so of itself; "" claims nothing."""
    body = {"model": MODEL, "max_tokens": 20, "system": claim or "Be brief.", **_TOOLS[PATHS[0]]}
    asked = {**body, "messages": [{"role": "user", "content": "hi"}]}
    return Call("POST", PATHS[0], json.dumps(asked).encode(), {}, hang_up=False)


def _call(draw: random.Random) -> Call:
    headers = draw.choice(({}, {}, {"anthropic-beta": "nope"}))
    if draw.random() < 0.15:
        return Call("GET", draw.choice(("/v1/models", "/v1/models/x", "/metrics")), b"", headers, hang_up=False)
    path, text = draw.choice(PATHS), draw.choice(WORDS)
    body: dict[str, Any] = {
        PATHS[0]: {"max_tokens": 20, "messages": [{"role": "user", "content": text}]},
        PATHS[1]: {"messages": [{"role": "user", "content": text}]},
        PATHS[2]: {"input": text},
        PATHS[3]: {"contents": [{"role": "user", "parts": [{"text": text}]}]},
    }[path]
    if path != PATHS[3]:
        body |= {"model": draw.choice((MODEL, MODEL, MODEL, "claude-nope", "")), "stream": draw.random() < 0.2}
    if draw.random() < 0.5:
        body |= _TOOLS[path]
    if draw.random() < 0.1:
        body |= draw.choice(({"n": 100}, {"Tools": []}, {"mcp_servers": [{"url": "http://x"}]}))
    data = json.dumps(body).encode() if draw.random() < 0.9 else draw.randbytes(30)
    return Call("POST", path, data, headers, hang_up=draw.random() < 0.1)


def loss_of(behaviour: Behaviour, provider: str, folder: Path) -> Loss | None:
    """What the runner makes of the behaviour, by its own parts; None: a verdict."""
    upstream = Upstream(provider, "sk-the-real-key")
    probe = ProviderProbe(upstream, delays_s=(0.0, 0.0, 0.0))
    given = {"model": MODEL, "side_models": (), "canaries": CANARIES}
    with Gateway(upstream, record=folder, probe=probe, **given) as gateway:
        for call in behaviour.calls:
            with suppress(OSError, http.client.HTTPException):
                _send(gateway, call)
    gateway.ask_again(threading.Event())
    (folder / "stdout").write_bytes(behaviour.stdout)
    (folder / "stderr").write_bytes(behaviour.stderr)
    try:
        report = gateway.report()
        refuse_witnessed(report, behaviour.ended, "none")
        parsed, _ = parse_output(registered(behaviour.kind), folder, behaviour.ended, folder)
        stopped(behaviour.ended, report, parsed)
        delivered(Delivery(), {"files": ("files",)}, report, gateway.receipts())
    except Lost as lost:
        return from_exception(lost, agent_started=True)
    return None


def _send(gateway: Gateway, call: Call) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    try:
        connection.request(call.method, call.path, call.body, {"x-api-key": gateway.token, **call.headers})
        if not call.hang_up:
            connection.getresponse().read()
    finally:
        connection.close()


_ACT = """
import base64, http.client, json, os, sys
from urllib.parse import urlsplit
calls, out, err, code, signal = json.load(open(os.path.join(os.environ["HOME"], "behaviour.json")))
host = urlsplit(os.environ["ANTHROPIC_BASE_URL"]).netloc
for method, path, body, headers, hang_up in calls:
    try:
        connection = http.client.HTTPConnection(host, timeout=30)
        headers["x-api-key"] = os.environ["ANTHROPIC_API_KEY"]
        connection.request(method, path, base64.b64decode(body), headers)
        if not hang_up:
            connection.getresponse().read()
        connection.close()
    except (OSError, http.client.HTTPException):
        pass
os.write(1, base64.b64decode(out))
os.write(2, base64.b64decode(err))
os.kill(os.getpid(), signal) if signal else os._exit(code)
"""


def acting_agent(behaviour: Behaviour, signal: int = 0) -> AgentSpec:
    """A program that behaves so. `signal`: that ends it in place of its exit code; 0: none."""
    calls = [
        (one.method, one.path, b64encode(one.body).decode(), one.headers, one.hang_up) for one in behaviour.calls
    ]
    streams = [b64encode(stream).decode() for stream in (behaviour.stdout, behaviour.stderr)]
    told = json.dumps([calls, *streams, behaviour.ended.code, signal])
    options = {"argv": ["python", "-I", "-c", _ACT], "needs_model": True, "files": {"behaviour.json": told}}
    return AgentSpec(kind="command", model=MODEL, timeout_s=60, options=options)


@contextmanager
def healthy_provider(refusal: tuple[int, str] | None = None) -> Generator[str]:
    """Its address. `refusal`: status and type of the error that it has for everybody, as a control."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._reply(403, _error("permission_error"))

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            status, body = (refusal[0], _error(refusal[1])) if refusal else _answer(self.path, data, self.headers)
            self._reply(status, body)

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            with suppress(OSError):  # the gateway hung up, because the agent did
                self.end_headers()
                self.wfile.write(body)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _error(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "scripted"}}).encode()


def _answer(path: str, data: str, headers: Any) -> tuple[int, bytes]:
    """What a healthy provider of the Messages API says to such a request."""
    if headers.get("anthropic-beta"):
        return 403, _error("permission_error")
    if path != "/v1/messages" or MODEL not in data:
        return 404, _error("not_found_error")
    given = {
        "LIMIT": (429, _error("rate_limit_error")),
        "BROKEN": (500, _error("api_error")),
        "PAGE": (200, b"<html>"),
        "DENIED": (403, _error("permission_error")),
        "REFUSED": (400, _error("invalid_request_error")),
    }
    if len(data) > LARGE:
        return given["LIMIT"]
    said = next((answer for word, answer in given.items() if word in data), None)
    usage = {"input_tokens": 1, "output_tokens": 1}
    content: list[str] = []
    message = {"type": "message", "model": MODEL, "content": content, "usage": usage}
    return said or (200, json.dumps(message).encode())
