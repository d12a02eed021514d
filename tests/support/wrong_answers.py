"""A bucket in memory behind a proxy that answers wrongly now and then, and campaigns that are driven over it.

Requests of boto3 and of grants reach it without a socket, and the pauses between tries pass on a simulated clock.
"""

from __future__ import annotations

import hashlib
import io
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from tests.support.plans import CAMPAIGN, make_plan
from tests.support.simulated_cluster import Cluster, ClusterBackend, Fate
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_ledger import keys
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store import bulk, grants
from trialfleet_ledger.store.checksums import Checksums
from trialfleet_ledger.store.http import HttpResponse, NoAnswerError
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.retry_policy import Patience
from trialfleet_ledger.store.s3 import S3Store, open_s3
from trialfleet_ledger.trial_order import trials

KINDS = ("flip", "cut", "empty", "html", "delay", "reset", "lost", "3xx", "4xx", "5xx")
HTML = b"<html><body><p>Please log in</p></body></html>"
PAGE = 30  # keys of a listing
FAST = PollIntervals(poll_s=0.01, steer_s=0.05, watch_s=0.02, back_off_s=0.001, wind_down_s=5)
_REFUSALS = (
    (400, ""),
    (403, "AccessDenied"),
    (404, ""),
    (404, "NoSuchKey"),
    (405, "MethodNotAllowed"),
    (412, "PreconditionFailed"),
    (429, ""),
)
_BROKEN = ((500, "InternalError"), (501, ""), (502, ""), (503, "SlowDown"), (504, ""))


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


@dataclass
class Bucket:
    """What an S3 server holds and answers. Keys are paths with the bucket's name. `tag`: the ETag of a value."""

    values: dict[str, bytes] = field(default_factory=dict[str, bytes])
    tag: Callable[[bytes], str] = field(default=lambda value: tag_of(value))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        parts = urlsplit(url)
        path, query = unquote(parts.path), parse_qs(parts.query)
        with self.lock:
            if method == "PUT":
                return self._put(path, headers, body)
            if method == "DELETE":
                self.values.pop(path, None)
                return Answer(204)
            if method == "HEAD":
                return Answer(200, headers={"x-amz-bucket-region": "us-east-1"})
            return self._list(path.strip("/"), query) if "list-type" in query else self._get(path)

    def _put(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if path in self.values and headers.get("If-None-Match") == "*":
            return refusal(412, "PreconditionFailed")
        self.values[path] = body
        return Answer(200, headers={"ETag": self.tag(body)})

    def _get(self, path: str) -> Answer:
        value = self.values.get(path)
        return refusal(404, "NoSuchKey") if value is None else Answer(200, value, {"ETag": self.tag(value)})

    def _list(self, bucket: str, query: Mapping[str, list[str]]) -> Answer:
        def one(name: str) -> str:
            return query.get(name, [""])[0]

        prefix, after = one("prefix"), one("continuation-token") or one("start-after")
        names = sorted(path.removeprefix(f"/{bucket}/") for path in self.values)
        left = [name for name in names if name.startswith(prefix) and name > after]
        page = left[: min(PAGE, int(one("max-keys") or PAGE))]
        more = len(left) > len(page)
        items = "".join(self._item(bucket, name) for name in page)
        token = f"<NextContinuationToken>{quote(page[-1])}</NextContinuationToken>" if more else ""
        text = (
            f"<?xml version='1.0'?><ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}"
            "</ListBucketResult>"
        )
        return Answer(200, text.encode())

    def _item(self, bucket: str, name: str) -> str:
        value = self.values[f"/{bucket}/{name}"]
        return (
            f"<Contents><Key>{escape(name)}</Key><Size>{len(value)}</Size><ETag>{escape(self.tag(value))}</ETag>"
            "<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
        )


def tag_of(value: bytes) -> str:
    return f'"{hashlib.md5(value, usedforsecurity=False).hexdigest()}"'


def opaque_tag_of(value: bytes) -> str:
    """As of a bucket with keys of a key service."""
    return f'"{hashlib.md5(b"key" + value, usedforsecurity=False).hexdigest()}"'


def refusal(status: int, code: str) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code></Error>".encode() if code else HTML)


class _ResetError(Exception):
    """No answer."""


@dataclass
class Proxy:
    """Draws for each request whether, and how, it is answered wrongly. `rate`: the share of those that are."""

    bucket: Bucket
    rate: float
    draw: random.Random
    sleep: Callable[[float], None]
    kinds: tuple[str, ...] = KINDS
    drawn: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        with self.lock:
            kind = self.draw.choice(self.kinds) if self.draw.random() < self.rate else ""
            chance = random.Random(self.draw.random())
        if kind:
            self.drawn.append(kind)
        if kind in ("html", "3xx", "4xx", "5xx", "reset"):
            return self._instead(kind, chance)
        right = self.bucket.answer(method, url, headers, body)
        return self._spoilt(kind, chance, right) if kind else right

    def _instead(self, kind: str, chance: random.Random) -> Answer:
        match kind:
            case "html":
                return Answer(200, HTML, {"Content-Type": "text/html"})
            case "3xx":
                return Answer(chance.choice((301, 302, 307)), headers={"Location": "http://elsewhere.example/"})
            case "4xx":
                return refusal(*chance.choice(_REFUSALS))
            case "5xx":
                return refusal(*chance.choice(_BROKEN))
            case _:
                raise _ResetError

    def _spoilt(self, kind: str, chance: random.Random, right: Answer) -> Answer:
        match kind:
            case "delay":
                seconds = chance.uniform(0, 45)
                self.sleep(seconds)
                if seconds > 30:
                    raise _ResetError
                return right
            case "lost":
                raise _ResetError
            case "flip" if right.body:
                at = chance.randrange(len(right.body))
                flipped = right.body[at] ^ (1 << chance.randrange(8))
                return right._replace(body=right.body[:at] + bytes([flipped]) + right.body[at + 1 :])
            case "cut" if right.body:
                short = right.body[: chance.randrange(len(right.body))]
                whole = {"Content-Length": str(len(right.body))} if chance.random() < 0.5 else {}
                return right._replace(body=short, headers={**right.headers, **whole})
            case "empty":
                return right._replace(body=b"")
            case _:
                return right


class Raw(io.BytesIO):
    """What botocore reads an answer from."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


@dataclass
class Site:
    """One campaign's store behind a proxy, as its controller and its runners reach it."""

    proxy: Proxy
    patience: Patience
    store: S3Store

    def send(self, request: Any, **_: object) -> AWSResponse:
        """botocore's hook in place of the network."""
        body = request.body or b""
        body = body if isinstance(body, bytes) else body.read()
        headers = {name: _text(value) for name, value in request.headers.items()}
        try:
            answer = self.proxy.answer(request.method, request.url, headers, body)
        except _ResetError:
            raise random.choice((ConnectionClosedError, ReadTimeoutError))(endpoint_url=request.url) from None
        told = {"Content-Length": str(len(answer.body)), **answer.headers}
        return AWSResponse(request.url, answer.status, told, Raw(answer.body))

    def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limit: int = 0,
        timeout_s: float = 60,
    ) -> HttpResponse:
        """`http.exchange` in place of the network."""
        del limit, timeout_s
        try:
            answer = self.proxy.answer(method, url, headers or {}, body or b"")
        except _ResetError:
            raise NoAnswerError("reset") from None
        if int(answer.headers.get("Content-Length", len(answer.body))) != len(answer.body):
            raise NoAnswerError("cut")
        told = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(answer.status, answer.body, headers=told)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass(frozen=True)
class ByGrants:
    """A runner's way to the store."""

    store: Store
    patience: Patience

    def create(self, key: str, data: bytes) -> bool:
        return grants.create(self.store.grant_put(key, expires_s=3600), data, patience=self.patience)


class SimulatedClock:
    """Seconds, one clock for each thread: none waits for the pauses of another."""

    def __init__(self) -> None:
        self._here = threading.local()

    def now(self) -> float:
        return float(getattr(self._here, "now", 0.0))

    def sleep(self, seconds: float) -> None:
        self._here.now = self.now() + seconds


@contextmanager
def wrong_site(rate: float, seed: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Site]:
    """A store whose requests are answered wrongly at this rate."""
    clock = SimulatedClock()
    proxy = Proxy(Bucket(), rate, random.Random(seed), clock.sleep, kinds)
    patience = Patience(total_s=300, clock=clock.now, sleep=clock.sleep)
    environment = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_EC2_METADATA_DISABLED": "true"}
    with mock.patch.dict("os.environ", environment):
        opened = open_s3("bucket", "root", endpoint="http://s3.example", patience=patience)
        site = Site(proxy, patience, replace(opened, checksums=Checksums()))
        site.store.client.meta.events.register_first("before-send.s3", site.send)  # type: ignore[attr-defined]
        with (
            mock.patch.object(grants, "exchange", site.exchange),
            mock.patch.object(grants, "checksums_of", return_value=site.store.checksums),
            mock.patch.object(bulk, "_usable", return_value=None),
        ):
            yield site


def drawn_plan(draw: random.Random, *, reps: int = 7) -> Plan:
    """Six trials a rep."""
    return make_plan(tasks=3, reps=reps, parallel=draw.choice((4, 12)), seed=draw.randrange(1000))


FATES = (
    {},
    {1: Fate(loss=LossClass.EVICTED)},
    {1: Fate(loss=LossClass.TERMINATED, patched=True)},
    {1: Fate(silent=True)},
    {1: Fate(refused=True)},
)


def drive(site: Site, plan: Plan, fates: dict[int, Fate], *, resumed: bool) -> list[Outcome]:
    """The campaign's outcomes in plan order. `resumed`: a second controller takes over halfway."""
    cluster = Cluster(ByGrants(site.store, site.patience), fates=dict(fates))  # type: ignore[arg-type]
    half = len(trials(plan)) // 2
    ledger = Ledger(site.store, CAMPAIGN)
    ledger.freeze(plan)
    try:
        for epoch in (1, 2) if resumed else (2,):
            interrupt = Interrupt()
            asked = [epoch == 2]

            def watch(tally: Any, asked: list[bool] = asked, interrupt: Interrupt = interrupt) -> None:
                if not asked[0] and tally.total().measured >= half:
                    asked[0] = True
                    interrupt.ask()

            driver = epochs.Driver(site.store, CAMPAIGN, epoch, epochs.HeartbeatConfig(enabled=False))
            live = Dispatcher(
                plan,
                trials(plan),
                ledger,
                ClusterBackend(cluster),
                driver,
                interrupt=interrupt,
                on_change=watch,
                intervals=FAST,
            )
            ending = live.run()
        assert ending is Ending.COMPLETE, ending
    finally:
        cluster.close()
    assert set(cluster.launches.values()) <= {1, 2}
    assert all(count <= 2 for count in cluster.launches.values())
    site.proxy.rate = 0.0
    assert not list(site.store.list(keys.quarantines(CAMPAIGN))), "a false quarantine"
    return sorted(ledger.attempts.outcomes([trial.id for trial in trials(plan)]), key=lambda one: one.trial.id)
