"""A small API server on a real socket: pods, config maps and watches, and every way in which one can fail.

It speaks just enough: create, get, list in pages, watch with bookmarks, delete. Faults are queued by verb, and
each takes one request.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.waiting import wait_until

Json = dict[str, Any]
Fault = Callable[["Handler"], None]

PODS = "/api/v1/namespaces/trials/pods"


def refuse(status: int, reason: str = "", message: str = "", *, retry_after: str | None = None) -> Fault:
    """Answer with an error, as API servers word it."""

    def fault(handler: Handler) -> None:
        body = {"kind": "Status", "code": status, "reason": reason, "message": message or reason}
        handler.answer(status, body, {} if retry_after is None else {"Retry-After": retry_after})

    return fault


def hang(seconds: float) -> Fault:
    """Accept the request and say nothing: a half-open connection."""

    def fault(handler: Handler) -> None:
        handler.api.closing.wait(seconds)
        handler.close_connection = True

    return fault


def drop(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def carried_out_and_lost(handler: Handler) -> None:
    """The pod is created, and the answer never comes."""
    handler.api.create(handler.body)
    handler.close_connection = True


def stream(*events: Json, then: Callable[[Handler], None] = lambda _: None) -> Fault:
    """A watch that sends these events and ends."""

    def fault(handler: Handler) -> None:
        handler.open_stream()
        for event in events:
            handler.send_event(event)
        then(handler)
        handler.end_stream()

    return fault


EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


@dataclass
class Seen:
    at: float
    verb: str
    path: str
    query: dict[str, str]


@dataclass
class Api:
    """The server's state. `happen` changes it as a cluster would."""

    pods: dict[str, Json] = field(default_factory=dict)
    config_maps: dict[str, Json] = field(default_factory=dict)
    jobs: dict[str, Json] = field(default_factory=dict)
    root_ca: str | None = None  # of this cluster; None: its controllers publish none
    logs: dict[str, str] = field(default_factory=dict)
    history: list[Json] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    faults: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    always: dict[str, Fault] = field(default_factory=dict)
    page: int = 500
    version: int = 0
    uids: int = 0
    owners: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    changed: threading.Condition = field(default_factory=threading.Condition)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def happen(self, kind: str, pod: Json, *, told: bool = True) -> None:
        """`told`: as an event too; otherwise only listings show it."""
        with self.changed:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            name = pod["metadata"]["name"]
            if kind == "DELETED":
                self.pods.pop(name, None)
            else:
                self.pods[name] = pod
            if told:
                copy = json.loads(json.dumps(pod))
                self.history.append({"type": kind, "object": copy, "version": self.version})
            self.changed.notify_all()

    def create(self, pod: Json) -> Json:
        with self.changed:
            self.uids += 1
            made = {
                **pod,
                "metadata": {**pod["metadata"], "uid": f"uid-{self.uids}"},
                "status": {"phase": "Pending"},
            }
        self.happen("ADDED", made)
        return made

    def report(self, name: str, phase: str, *containers: Json, told: bool = True, **status: Any) -> None:
        """What a kubelet would patch into the pod's status."""
        with self.changed:
            pod = json.loads(json.dumps(self.pods[name]))
        pod["status"] = {"phase": phase, "containerStatuses": list(containers), **status}
        self.happen("MODIFIED", pod, told=told)

    def remove(self, name: str, *, told: bool = True) -> None:
        with self.changed:
            pod = self.pods[name]
        self.happen("DELETED", pod, told=told)

    def count(self, verb: str) -> int:
        return sum(seen.verb == verb for seen in self.requests)

    def wait_for(self, verb: str, count: int, *, within_s: float = 30) -> None:
        wait_until(lambda: self.count(verb) >= count, f"{count} requests: {verb}", within_s=within_s)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    @property
    def api(self) -> Api:
        return self.server.api

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the requests are kept."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        listing = "watch" if query.get("watch") == "true" else "list"
        self._serve(listing if parts.path == PODS else "get", parts.path, query)

    def do_POST(self) -> None:
        self._serve("create" if self.path == PODS else "post", self.path, {})

    def do_PATCH(self) -> None:
        self._serve("patch", self.path, {})

    def do_DELETE(self) -> None:
        self._serve("delete", urlsplit(self.path).path, {})

    def _serve(self, verb: str, path: str, query: dict[str, str]) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.body: Json = json.loads(self.rfile.read(length) or b"{}")
        self.api.requests.append(Seen(time.monotonic(), verb, path, query))
        queued = self.api.faults[verb]
        fault = queued.popleft() if queued else self.api.always.get(verb)
        if fault is not None:
            return fault(self)
        return getattr(self, f"_{verb}")(path, query)

    # --- verbs --------------------------------------------------------------------------------------

    def _list(self, path: str, query: dict[str, str]) -> None:
        with self.api.changed:
            names = sorted(self.api.pods)
            start = int(query.get("continue", 0))
            page = names[start : start + self.api.page]
            more = str(start + self.api.page) if start + self.api.page < len(names) else ""
            items = [self.api.pods[name] for name in page]
            head = {"resourceVersion": str(self.api.version), "continue": more}
            body = {"kind": "PodList", "metadata": head, "items": items}
            self.answer(200, body)

    def _watch(self, path: str, query: dict[str, str]) -> None:
        """Events after the version, until the time is over."""
        sent, until = int(query["resourceVersion"]), time.monotonic() + int(query["timeoutSeconds"])
        self.open_stream()
        while time.monotonic() < until and not self.api.closing.is_set():
            with self.api.changed:
                new = [one for one in self.api.history if one["version"] > sent]
                if not new:
                    self.api.changed.wait(0.05)
            for event in new:
                self.send_event({"type": event["type"], "object": event["object"]})
                sent = event["version"]
        self.end_stream()

    def _get(self, path: str, query: dict[str, str]) -> None:
        name = path.rpartition("/")[2]
        if path.endswith("/log"):
            return self.answer_raw(200, self.api.logs[path.split("/")[-2]].encode())
        for kind, kept in (("pods", self.api.pods), ("configmaps", self.api.config_maps), ("jobs", self.api.jobs)):
            if f"/{kind}/" in path and name in kept:
                return self.answer(200, kept[name])
        if name == "kube-root-ca.crt" and self.api.root_ca is not None:
            return self.answer(200, {"metadata": {"name": name}, "data": {"ca.crt": self.api.root_ca}})
        if path == "/version":
            return self.answer(200, {"gitVersion": "v1"})
        if path.endswith("/events"):
            return self.answer(200, {"items": []})
        return refuse(404, "NotFound", f"{path} not found")(self)

    def _create(self, path: str, query: dict[str, str]) -> None:
        if self.body["metadata"]["name"] in self.api.pods:
            return refuse(409, "AlreadyExists", "pods already exists")(self)
        return self.answer(201, self.api.create(self.body))

    def _post(self, path: str, query: dict[str, str]) -> None:
        name, kept = self.body["metadata"]["name"], self.api.jobs if "/jobs" in path else self.api.config_maps
        if name in kept:
            return refuse(409, "AlreadyExists")(self)
        made = {"uid": f"cm-{next(self.api.owners)}", "creationTimestamp": datetime.now(UTC).isoformat()}
        kept[name] = {**self.body, "metadata": {**self.body["metadata"], **made}}
        return self.answer(201, kept[name])

    def _patch(self, path: str, query: dict[str, str]) -> None:
        job = self.api.jobs.get(path.rpartition("/")[2])
        if job is None:
            return refuse(404, "NotFound")(self)
        job["spec"] |= self.body["spec"]
        return self.answer(200, job)

    def _delete(self, path: str, query: dict[str, str]) -> None:
        name = path.rpartition("/")[2]
        pod = self.api.pods.get(name)
        if pod is None:
            return refuse(404, "NotFound")(self)
        if self.body.get("preconditions", {}).get("uid") != pod["metadata"]["uid"]:
            return refuse(409, "Conflict", "the UID in the precondition does not match")(self)
        self.api.remove(name)
        return self.answer(200, pod)

    # --- answers ------------------------------------------------------------------------------------

    def answer(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        self.answer_raw(status, json.dumps(body).encode(), headers)

    def answer_raw(self, status: int, raw: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(raw)

    def open_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def send_event(self, event: Json) -> None:
        self.send_raw(json.dumps(event).encode() + b"\n")

    def send_raw(self, raw: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self.wfile.flush()

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


def bookmark(version: int) -> Json:
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, api: Api) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news here."""


@contextmanager
def api_server() -> Iterator[Api]:
    api = Api()
    server = Server(api)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
