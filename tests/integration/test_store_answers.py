"""What a store's writers make of lost, late and ambiguous answers: a server that misbehaves on demand.

Both ways to write are held to it: the API with credentials, and a runner's grants.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol
from urllib.parse import urlsplit

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import GetGrant, PutGrant
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.http import NoAnswerError, exchange
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.retry_policy import ANSWERS, MORE_ROOM, Patience
from trialfleet_ledger.store.s3 import S3Store, open_s3


def nap(seconds: float) -> None:
    """For the pauses between refusals, which take seconds."""
    time.sleep(min(seconds, 0.05))


QUICK = Patience(total_s=60, first_s=0.01, longest_s=0.05, sleep=nap)
BRIEF = Patience(total_s=0.3, first_s=0.01, longest_s=0.05, sleep=nap)
KEY = "/bucket/root/k"


@dataclass
class Scripted:
    """An S3 server of one bucket; each request takes the next fault, and none when they are used up."""

    values: dict[str, bytes] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    always: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_fault(self) -> str:
        with self.lock:
            return self.faults.pop(0) if self.faults else self.always


def tag_of(value: bytes) -> str:
    return f'"{hashlib.md5(value, usedforsecurity=False).hexdigest()}"'


WRONG_BODIES: dict[str, Callable[[bytes], bytes]] = {
    "flip": lambda right: bytes([right[0] ^ 1]) + right[1:] if right else b"x",
    "short": lambda right: right[:-1],
    "empty": lambda right: b"",
    "html": lambda right: b"<html><body>Log in</body></html>",
}


class Handler(BaseHTTPRequestHandler):
    """Faults: `<status>[ <code>]` instead of, and `stored …` after doing what was asked; `cut` no answer;
    `half` half of one; a wrong body of `WRONG_BODIES` with status 200."""

    protocol_version = "HTTP/1.1"
    scripted: Scripted

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = self._begin()
        if fault and not fault.startswith("stored"):
            return self._misbehave(fault)
        key = urlsplit(self.path).path
        with self.scripted.lock:
            taken = key in self.scripted.values and self.headers["If-None-Match"] == "*"
            if not taken:
                self.scripted.values[key] = body
        if fault:
            return self._misbehave(fault.removeprefix("stored "))
        return self._answer(412, "PreconditionFailed") if taken else self._answer(200, tag=tag_of(body))

    def do_GET(self) -> None:
        fault = self._begin()
        if fault:
            return self._misbehave(fault)
        value = self.scripted.values.get(urlsplit(self.path).path)
        return (
            self._answer(404, "NoSuchKey") if value is None else self._answer(200, body=value, tag=tag_of(value))
        )

    def _begin(self) -> str:
        self.scripted.seen.append((self.command, self.path))
        return self.scripted.next_fault()

    def _misbehave(self, fault: str) -> None:
        if fault in WRONG_BODIES:
            right = self.scripted.values.get(urlsplit(self.path).path, b"")
            self._answer(200, body=WRONG_BODIES[fault](right), tag="" if fault == "html" else tag_of(right))
        elif fault == "cut":
            self.close_connection = True
        elif fault == "half":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            self.close_connection = True
        elif fault == "redirect":
            self.send_response(307)
            self.send_header("Location", f"http://{self.headers['Host']}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            status, _, code = fault.partition(" ")
            self._answer(int(status), code)

    def _answer(self, status: int, code: str = "", body: bytes = b"", tag: str = "") -> None:
        if code:
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
        self.send_response(status)
        if tag:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Quiet(ThreadingHTTPServer):
    """Clients that hang up are what these tests are about."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[Scripted, str]]:
    scripted = Scripted()
    handler = type("Bound", (Handler,), {"scripted": scripted})
    http = Quiet(("127.0.0.1", 0), handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield scripted, f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


class Writer(Protocol):
    def create(self, data: bytes, patience: Patience = QUICK) -> bool: ...

    def read(self, patience: Patience = QUICK) -> bytes: ...


@dataclass
class ByGrant:
    endpoint: str

    def grant(self, *, readback: bool = True) -> PutGrant:
        back = GetGrant(url=self.endpoint + KEY) if readback else None
        return PutGrant(url=self.endpoint + KEY, headers={"If-None-Match": "*"}, readback=back)

    def create(self, data: bytes, patience: Patience = QUICK) -> bool:
        return grants.create(self.grant(), data, patience=patience)

    def read(self, patience: Patience = QUICK) -> bytes:
        return grants.read(GetGrant(url=self.endpoint + KEY), patience=patience)


class ByApi:
    def __init__(self, endpoint: str) -> None:
        self.opened = open_s3("bucket", "root", endpoint=endpoint)  # takes seconds where much else runs

    def store(self, patience: Patience) -> S3Store:
        return replace(self.opened, patience=patience)

    def create(self, data: bytes, patience: Patience = QUICK) -> bool:
        return self.store(patience).create("k", data)

    def read(self, patience: Patience = QUICK) -> bytes:
        value = self.store(patience).get("k")
        assert value is not None
        return value


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.fixture(params=[ByGrant, ByApi])
def writer(request: pytest.FixtureRequest, server: tuple[Scripted, str], credentials: None) -> Writer:
    make: Callable[[str], Writer] = request.param
    return make(server[1])


LOST = ["stored 500 InternalError", "stored 503 SlowDown", "stored cut", "stored half", "stored 409"]


@pytest.mark.parametrize("fault", LOST)
def test_a_write_whose_answer_was_lost_is_recognised(
    fault: str, writer: Writer, server: tuple[Scripted, str]
) -> None:
    server[0].faults = [fault]
    assert writer.create(b"mine")
    assert server[0].values[KEY] == b"mine"


@pytest.mark.parametrize("fault", LOST)
def test_anothers_value_is_never_taken_for_ours(fault: str, writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].values[KEY] = b"theirs"
    server[0].faults = [fault]
    assert not writer.create(b"mine")
    assert server[0].values[KEY] == b"theirs"


TRANSIENT = ["500", "502", "503 SlowDown", "429", "408", "409 ConditionalRequestConflict", "400 RequestTimeout"]


@pytest.mark.parametrize("fault", [*TRANSIENT, "cut", "half"])
def test_not_now_is_tried_again(fault: str, writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].faults = [fault, fault, fault]
    assert writer.create(b"mine")
    server[0].faults = [fault, fault]
    assert writer.read() == b"mine"


@pytest.mark.parametrize("fault", ["500", "409", "cut", "half"])
def test_patience_ends(fault: str, writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].always = fault
    began = time.monotonic()
    with pytest.raises(StoreError, match="no answer"):
        writer.create(b"mine", BRIEF)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "fault", ["409 ExistingObjectIsDirectory", "404 NoSuchUpload", "501", "400 KeyTooLongError"]
)
def test_what_will_not_change_is_an_error(fault: str, writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].always = fault
    with pytest.raises(StoreError):
        writer.create(b"mine", BRIEF)
    assert KEY not in server[0].values


def test_a_redirect_is_not_followed(server: tuple[Scripted, str]) -> None:
    server[0].always = "redirect"
    with pytest.raises(StoreError, match=r"HTTP 307.*redirects to http://127.*/elsewhere"):
        ByGrant(server[1]).create(b"mine")
    assert {path for _, path in server[0].seen} == {KEY}


@pytest.mark.parametrize("status", ["400 AuthorizationQueryParametersError", "401", "403 AccessDenied"])
def test_a_grant_is_refused_by_equal_answers(status: str, server: tuple[Scripted, str]) -> None:
    server[0].faults = [status, status]
    assert ByGrant(server[1]).create(b"mine"), "one wrong answer is no refusal"
    server[0].values.clear()
    server[0].always = status
    with pytest.raises(grants.GrantRefused):
        ByGrant(server[1]).create(b"mine")
    assert len(server[0].seen) == 3 + ANSWERS


@pytest.mark.parametrize("fault", [*WRONG_BODIES, "404", "404 NoSuchBucket", "301", "501", "403"])
def test_one_wrong_answer_is_no_value(fault: str, writer: Writer, server: tuple[Scripted, str]) -> None:
    assert writer.create(b"mine")
    server[0].faults = [fault]
    assert writer.read() == b"mine"
    server[0].faults = ["412 PreconditionFailed", fault]
    assert writer.create(b"mine"), "its own write, though the answer to the read-back was wrong"


def test_a_write_that_only_a_proxy_answered_is_written(writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].faults = ["html"]
    assert writer.create(b"mine")
    assert server[0].values[KEY] == b"mine"


def test_tags_that_are_no_md5_sums_cost_one_read(
    writer: Writer, server: tuple[Scripted, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "tag_of", lambda value: '"opaque-1"')
    server[0].values[KEY] = b"mine"
    for _ in range(3):
        assert writer.read() == b"mine"
    assert len(server[0].seen) == 4


@pytest.fixture
def opaque(server: tuple[Scripted, str], writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's ETags are no MD5 sums, and the writer has learned it."""
    monkeypatch.setitem(globals(), "tag_of", lambda value: '"opaque-1"')
    server[0].values[KEY] = b"other"
    assert writer.read() == b"other"
    server[0].values.clear()
    server[0].seen.clear()


def test_a_page_without_a_tag_is_no_write(opaque: None, writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].faults = ["html", "html", "html"]
    assert writer.create(b"mine")
    assert server[0].values[KEY] == b"mine"
    server[0].faults = ["html"] * 5
    assert writer.read() == b"mine"


@pytest.mark.parametrize("fault", WRONG_BODIES)
def test_a_wrong_body_is_not_taken_for_anothers_value(
    fault: str, opaque: None, writer: Writer, server: tuple[Scripted, str]
) -> None:
    server[0].faults = ["stored 500", "", fault]
    assert writer.create(b"mine"), "the only copy of a measured trial's end"
    server[0].values[KEY] = b"theirs"
    assert not writer.create(b"mine")


def test_a_page_teaches_nothing_about_tags(writer: Writer, server: tuple[Scripted, str]) -> None:
    server[0].values[KEY] = b"mine"
    server[0].faults = ["html", "html"]
    assert writer.read() == b"mine"
    server[0].faults = ["html"] * 3
    writer.read()
    server[0].faults = ["flip"]
    assert writer.read() == b"mine"


def test_a_store_may_have_tags_of_two_kinds(
    writer: Writer, server: tuple[Scripted, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert writer.create(b"mine")
    server[0].seen.clear()
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "tag_of", lambda value: '"opaque-1"')
        assert writer.read() == b"mine"
        assert len(server[0].seen) == 3
    server[0].faults = ["flip"]
    assert writer.read() == b"mine", "the others are still checked"


def test_a_weak_tag_is_compared(
    writer: Writer, server: tuple[Scripted, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = tag_of
    monkeypatch.setitem(globals(), "tag_of", lambda value: f"W/{right(value)}")
    assert writer.create(b"mine")
    assert writer.read() == b"mine"
    assert len(server[0].seen) == 2


def test_a_page_that_is_too_large_is_no_value(server: tuple[Scripted, str]) -> None:
    server[0].values[KEY], server[0].faults = b"mine", ["html"]
    assert grants.read(GetGrant(url=server[1] + KEY), limit=8, patience=QUICK) == b"mine"
    server[0].values[KEY] = b"larger than that"
    server[0].seen.clear()
    with pytest.raises(StoreError, match="larger than the 8 bytes that are read"):
        grants.read(GetGrant(url=server[1] + KEY), limit=8, patience=QUICK)
    assert len(server[0].seen) == 2, "two answers agree: time changes nothing"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("503 SlowDown", "throttled"),
        ("501 NotImplemented", "not implement"),
        ("403 QuotaExceeded", "full.*QuotaExceeded|QuotaExceeded.*full"),
        ("507", "full"),
    ],
)
def test_a_refusal_is_named_by_what_the_store_says(
    fault: str, words: str, writer: Writer, server: tuple[Scripted, str]
) -> None:
    server[0].always = fault
    with pytest.raises(StoreError, match=words) as error:
        writer.create(b"mine", BRIEF)
    assert "AWS_ACCESS_KEY" not in f"{error.value} {error.value.hint}"
    if "full" in words:
        assert error.value.hint == MORE_ROOM
    assert not isinstance(error.value, grants.GrantRefused)


def test_a_redirect_names_where_it_points(server: tuple[Scripted, str], credentials: None) -> None:
    server[0].always = "redirect"
    with pytest.raises(OperatorError, match=r"redirects to http://127.*/elsewhere \(HTTP 307\)"):
        ByApi(server[1]).read(BRIEF)


def test_without_readback_an_ambiguous_loss_is_an_error(server: tuple[Scripted, str]) -> None:
    grant = ByGrant(server[1]).grant(readback=False)
    server[0].faults = ["stored 500"]
    with pytest.raises(StoreError, match="an earlier try of ours"):
        grants.create(grant, b"mine", patience=QUICK)
    assert not grants.create(grant, b"mine", patience=QUICK), "a 412 to the first try is another's"


def test_a_value_that_vanishes_when_read_back_is_created_again(
    server: tuple[Scripted, str], credentials: None
) -> None:
    server[0].faults = ["412 PreconditionFailed", "404 NoSuchKey"]
    assert ByApi(server[1]).create(b"mine")
    server[0].values.clear()
    server[0].faults = ["412 PreconditionFailed", "404 NoSuchKey"]
    assert ByGrant(server[1]).create(b"mine"), "nobody deletes a runner's key: the answers were wrong"


def test_a_slow_answer_is_given_up() -> None:
    class Drip(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b".")
                time.sleep(0.05)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = Quiet(("127.0.0.1", 0), Drip)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match="too long"):
        exchange("GET", f"http://127.0.0.1:{http.server_port}/", timeout_s=2)
    assert time.monotonic() - began < 20, "a byte now and then must not keep it waiting"
    http.shutdown()
    http.server_close()


def test_a_proxy_of_the_environment_is_used(server: tuple[Scripted, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server[1])
    monkeypatch.setenv("no_proxy", "")
    server[0].values["/bucket/k"] = b"through the proxy"
    assert (
        grants.read(GetGrant(url="http://s3.nowhere.invalid/bucket/k?X=1"), patience=QUICK) == b"through the proxy"
    )
    assert server[0].seen == [("GET", "http://s3.nowhere.invalid/bucket/k?X=1")]
