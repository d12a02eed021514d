"""The thin edge to a Kubernetes API server: raw JSON in and out, typed errors, a time-out on every read."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from trialfleet_controller.kube.connect import Connection, connect
from trialfleet_controller.kube.errors import Unreachable, error_of
from trialfleet_controller.kube.pods import json_object

Json = dict[str, Any]
Query = Mapping[str, str | int | bool | None]

CONNECT_S = 5.0
READ_S = 30.0
PAGE = 500  # pods a page of a listing
WATCH_SLACK_S = 15.0  # a watch that is silent this long past its own end is a dead connection
_NOT_ONE = "the answer is no JSON object: something else than an API server is at this address"
_LINE_LIMIT = 16 * 2**20  # bytes: no pod is near it


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing. `resource_version` is the whole listing's; `more` is None on the last page."""

    items: list[Json]
    resource_version: str
    more: str | None


class Watch:
    """An open watch. Iterate for lines, each one event as JSON; `shut` ends it from another thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        """Ends when the server ends the watch. Raises `Unreachable` when the connection breaks or falls silent."""
        rest = b""
        try:
            for chunk in self._response.stream(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _LINE_LIMIT:
                    raise Unreachable("an event without an end")
                yield from (line for line in lines if line)
        except (HTTPError, OSError) as error:
            raise Unreachable(_plain(error)) from error

    def shut(self) -> None:
        with suppress(OSError, ValueError, RuntimeError):  # it may be over already
            self._response.shutdown()


class Client:
    """Calls are safe from any thread. Of the network they raise the errors of `kube.errors`, and no others."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def connect(cls, context: str | None = None, *, threads: int = 16) -> Client:
        """Raises `OperatorError`: no kubeconfig, no such context."""
        return cls(connect(context, threads=threads))

    @property
    def host(self) -> str:
        return self._connection.host

    def close(self) -> None:
        self._connection.pool.clear()

    # --- pods ---------------------------------------------------------------------------------------

    def create_pod(self, namespace: str, pod: Json) -> Json:
        return self.call("POST", _in(namespace, "pods"), body=pod)

    def get_pod(self, namespace: str, name: str) -> Json:
        return self.call("GET", _in(namespace, "pods", name))

    def delete_pod(self, namespace: str, name: str, *, uid: str, grace_s: int | None = None) -> None:
        """Only the pod with this uid; a later one of the same name stays (`Conflict`)."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        self.call("DELETE", _in(namespace, "pods", name), body=options)

    def list_pods(self, namespace: str, selector: str, *, more: str | None = None) -> Page:
        """One page, as of now: no resource version is given, so no cache answers with an older state."""
        query: Query = {"labelSelector": selector, "limit": PAGE, "continue": more}
        listed = self.call("GET", _in(namespace, "pods"), query=query)
        head = json_object(listed.get("metadata"))
        return Page(listed.get("items") or [], str(head.get("resourceVersion", "")), head.get("continue") or None)

    @contextmanager
    def watch_pods(
        self, namespace: str, selector: str, *, resource_version: str, timeout_s: int
    ) -> Generator[Watch]:
        """Events after `resource_version`, for at most `timeout_s`, with bookmarks."""
        query: Query = {
            "watch": True,
            "allowWatchBookmarks": True,
            "labelSelector": selector,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_s,
        }
        response = self._open("GET", _in(namespace, "pods"), query=query, read_s=timeout_s + WATCH_SLACK_S)
        try:
            yield Watch(response)
        finally:
            response.close()  # not back into the pool: its stream may have been left in the middle

    def pod_log(self, namespace: str, name: str, *, container: str, lines: int, limit_bytes: int) -> str:
        """The last `lines` of a container's output, cut at `limit_bytes`."""
        query: Query = {"container": container, "tailLines": lines, "limitBytes": limit_bytes}
        raw = self._read("GET", _in(namespace, "pods", name) + "/log", query=query)
        return raw.decode(errors="replace")

    def events(self, namespace: str, *, uid: str) -> list[Json]:
        """What the cluster reported about one object; API servers keep it for an hour."""
        listed = self.call("GET", _in(namespace, "events"), query={"fieldSelector": f"involvedObject.uid={uid}"})
        return listed.get("items") or []

    # --- the rest -----------------------------------------------------------------------------------

    def create_config_map(self, namespace: str, config_map: Json) -> Json:
        return self.call("POST", _in(namespace, "configmaps"), body=config_map)

    def get_config_map(self, namespace: str, name: str) -> Json:
        return self.call("GET", _in(namespace, "configmaps", name))

    def delete_config_map(self, namespace: str, name: str) -> None:
        self.call("DELETE", _in(namespace, "configmaps", name))

    def create_job(self, namespace: str, job: Json) -> Json:
        return self.call("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body=job)

    def get_job(self, namespace: str, name: str) -> Json:
        return self.call("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")

    def may(self, namespace: str, verb: str, resource: str, *, subresource: str = "", group: str = "") -> bool:
        """Whether this connection may do that: a SelfSubjectAccessReview, which everybody may ask for."""
        attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
        if subresource:
            attributes["subresource"] = subresource
        review = self.call(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            },
        )
        return bool(json_object(review.get("status")).get("allowed"))

    def version(self) -> str:
        """As in "v1.36.2"."""
        return str(self.call("GET", "/version").get("gitVersion", ""))

    # --- how ----------------------------------------------------------------------------------------

    def call(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        *,
        query: Query | None = None,
        body: Json | None = None,
    ) -> Json:
        """One request; its answer as JSON. For what has no method of its own here."""
        try:
            answer: object = json.loads(self._read(method, path, query=query, body=body))
        except ValueError as error:
            raise Unreachable(_NOT_ONE) from error
        if not isinstance(answer, dict):
            raise Unreachable(_NOT_ONE)
        return json_object(cast("object", answer))

    def _read(self, method: str, path: str, *, query: Query | None = None, body: Json | None = None) -> bytes:
        response = self._open(method, path, query=query, body=body)
        try:
            return response.read()
        except (HTTPError, OSError) as error:
            raise Unreachable(_plain(error)) from error
        finally:
            response.release_conn()

    def _open(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Json | None = None,
        read_s: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """The answer's head, its body still to be read. Raises for every status but 2xx."""
        headers = {"Accept": "application/json", "User-Agent": "trialfleet", **self._connection.authorise()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._connection.pool.request(
                method,
                f"{self._connection.host}{path}{_encoded(query or {})}",
                body=None if body is None else json.dumps(body, separators=(",", ":")).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S if read_s is None else read_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            if 200 <= response.status < 300:
                return response
            refused = error_of(response.status, response.headers, response.read())
        except (HTTPError, OSError) as error:
            raise Unreachable(_plain(error)) from error
        response.release_conn()
        raise refused


def _in(namespace: str, resource: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/{resource}" + (f"/{name}" if name else "")


def _encoded(query: Query) -> str:
    given = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in query.items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def _plain(error: Exception) -> str:
    """One line; urllib3's messages hold addresses, never headers."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
