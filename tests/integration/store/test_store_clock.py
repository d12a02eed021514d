"""Grants are signed for the store's time: a machine with a wrong clock would sign what has ended or not begun."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from trialfleet_ledger.store.clock import NEAR_S, StoreClock
from trialfleet_ledger.store.open import open_store


@pytest.fixture
def ahead(request: pytest.FixtureRequest) -> Iterator[tuple[str, float]]:
    """A server that has nothing, and whose clock is so many seconds ahead of ours."""
    seconds = float(request.param)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + seconds)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seconds
        server.shutdown()


def signed_at(url: str) -> datetime:
    return datetime.strptime(parse_qs(urlsplit(url).query)["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def off_s(url: str) -> float:
    return (signed_at(url) - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize("ahead", [1200, -1200, 300, -300], indirect=True)
def test_grants_are_dated_as_the_store_dates_its_answers(
    ahead: tuple[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    address, seconds = ahead
    store = open_store("s3://bucket/root", endpoint=address, grant_endpoint="http://seen-by-pods:9000")
    assert abs(off_s(store.grant_get("before", expires_s=60).url)) < NEAR_S, "nothing has been heard yet"
    assert store.get("absent") is None
    grant = store.grant_put("end.json", expires_s=60)
    assert grant.url.startswith("http://seen-by-pods:9000/")
    assert off_s(grant.url) == pytest.approx(seconds, abs=NEAR_S / 2)
    assert grant.readback is not None
    assert off_s(grant.readback.url) == pytest.approx(seconds, abs=NEAR_S / 2)


def test_seconds_are_no_difference_and_a_clock_that_was_set_is_believed_again() -> None:
    clock = StoreClock()
    for ahead_s, taken in ((30, False), (600, True), (-20, False), (-600, True)):
        clock.told(format_datetime(datetime.now(UTC) + timedelta(seconds=ahead_s), usegmt=True))
        assert (abs((clock.now() - datetime.now(UTC)).total_seconds()) > NEAR_S) is taken


@pytest.mark.parametrize("date", [None, "", "yesterday", "Sun, 22 Nov 99999 18:00:00 GMT", "0"])
def test_what_is_no_date_says_nothing(date: str | None) -> None:
    clock = StoreClock()
    clock.told(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))
    clock.told(date)
    assert (clock.now() - datetime.now(UTC)).total_seconds() == pytest.approx(3600, abs=NEAR_S / 2)
