"""Following pods over a real socket: a server that forgets, throttles, refuses, hangs, and says things twice."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.integration.kube_http.pods import QUICK
from tests.support import scripted_api as s
from tests.support.raw_pods import raw_pod
from tests.support.scripted_api import Api
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import Forbidden
from trialfleet_controller.backends.kube.pod_cache import ChangeKind, PodChange
from trialfleet_controller.backends.kube.reflector import Reflector, WatchIntervals


class Following:
    """A reflector with all that it said."""

    def __init__(self, client: Client, intervals: WatchIntervals = QUICK) -> None:
        self.changes: list[PodChange] = []
        self.told: list[str] = []
        self.reflector = Reflector(
            client, "trials", "a=b", on_changes=self.changes.extend, tell=self.told.append, intervals=intervals
        )

    def kinds(self, name: str) -> list[tuple[ChangeKind, str]]:
        return [(change.kind, change.pod.uid) for change in self.changes if change.pod.name == name]

    def __enter__(self) -> Following:
        self.reflector.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.reflector.stop()


def test_a_listing_comes_in_pages_and_events_follow(api: Api, client: Client) -> None:
    api.page = 2
    for n in range(5):
        api.happen("ADDED", raw_pod(f"p{n}", uid=f"u{n}"))
    with Following(client) as following:
        assert following.reflector.wait_synced(20)
        assert [change.pod.name for change in following.changes] == [f"p{n}" for n in range(5)]
        assert api.count("list") == 3
        api.happen("ADDED", raw_pod("late", uid="u9"))
        api.remove("p0")
        wait_until(lambda: len(following.changes) == 7)
    assert following.kinds("late") == [(ChangeKind.ADDED, "u9")]
    assert following.kinds("p0")[-1] == (ChangeKind.DELETED, "u0")
    assert following.told == []


def test_what_vanished_and_what_was_made_again_unseen_comes_with_the_next_listing(
    api: Api, client: Client
) -> None:
    for name in "abc":
        api.happen("ADDED", raw_pod(name, uid=f"{name}1"))

    def unseen(_: s.Handler) -> None:
        api.remove("a", told=False)
        api.happen("ADDED", raw_pod("b", uid="b2"), told=False)

    api.faults["watch"].append(s.stream(then=unseen))
    intervals = WatchIntervals(watch_s=(1, 2), pause_s=(0.01, 0.02), reconcile_s=(0.0, 0.01), too_short_s=0)
    with Following(client, intervals) as following:
        wait_until(lambda: (ChangeKind.DELETED, "a1") in following.kinds("a"))
        wait_until(lambda: len(following.kinds("b")) == 3)
    assert following.kinds("b") == [(ChangeKind.ADDED, "b1"), (ChangeKind.DELETED, "b1"), (ChangeKind.ADDED, "b2")]
    assert following.kinds("c") == [(ChangeKind.ADDED, "c1")]


@pytest.mark.parametrize("how", [s.refuse(410, "Expired"), s.stream(s.EXPIRED)], ids=["status", "in-stream"])
def test_an_expired_version_is_never_used_again(api: Api, client: Client, how: s.Fault) -> None:
    api.happen("ADDED", raw_pod("a", uid="a1"))

    def unseen_and_expired(handler: s.Handler) -> None:
        api.happen("ADDED", raw_pod("b", uid="b1"), told=False)
        how(handler)

    api.faults["watch"].append(unseen_and_expired)
    with Following(client) as following:
        wait_until(lambda: bool(following.kinds("b")), what="a listing after 410")
        api.wait_for("watch", 2)
    first, second, *_ = (seen.query["resourceVersion"] for seen in api.requests if seen.verb == "watch")
    assert int(second) > int(first)
    assert following.told == [], "an old version is no outage"


def test_a_server_that_always_says_expired_is_not_hammered(api: Api, client: Client) -> None:
    api.always["watch"] = s.refuse(410, "Expired")
    with Following(client):
        time.sleep(4)
        api.wait_for("list", 2)
    assert api.count("list") <= 25
    assert api.count("watch") <= 25


def test_a_server_that_closes_every_watch_is_not_hammered(api: Api, client: Client) -> None:
    api.always["watch"] = s.stream()
    with Following(client):
        time.sleep(4)
        api.wait_for("watch", 2)
    assert api.count("watch") <= 25
    assert api.count("list") == 1, "an ended watch is no reason to list again"


@pytest.mark.parametrize("how", [s.refuse(500, "InternalError"), s.drop], ids=["500", "dropped"])
def test_errors_back_off_and_are_told_once(api: Api, client: Client, how: s.Fault) -> None:
    api.always["watch"] = how
    with Following(client) as following:
        time.sleep(4)
        api.wait_for("watch", 2)
        wait_until(lambda: bool(following.told))
        assert api.count("watch") <= 25
        assert len(following.told) == 1
        del api.always["watch"]
        api.happen("ADDED", raw_pod("a", uid="a1"))
        wait_until(lambda: bool(following.kinds("a")), within_s=60)
        wait_until(lambda: following.told[-1] == "the API server answers again")
    assert len(following.told) == 2


def test_a_throttled_listing_waits_as_it_is_told(api: Api, client: Client) -> None:
    api.faults["list"].append(s.refuse(429, "TooManyRequests", retry_after="2"))
    with Following(client) as following:
        assert following.reflector.wait_synced(30)
    first, second = (seen.at for seen in api.requests if seen.verb == "list")
    assert second - first >= 2


def test_a_half_open_watch_ends_by_the_clients_own_clock(
    api: Api, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trialfleet_controller.backends.kube.client.WATCH_SLACK_S", 1.0)
    api.faults["watch"].append(s.stream(then=s.hang(120)))
    intervals = WatchIntervals(watch_s=(1, 1), pause_s=(0.01, 0.02))
    with Following(client, intervals) as following:
        assert following.reflector.wait_synced(20)
        api.happen("ADDED", raw_pod("a", uid="a1"))
        wait_until(lambda: bool(following.kinds("a")), within_s=60)
        silent = next(seen.at for seen in api.requests if seen.verb == "watch")
        assert 1.5 < time.monotonic() - silent < 60
    assert api.count("list") == 1, "the version is as good as before"


def test_bookmarks_move_the_version_on(api: Api, client: Client) -> None:
    api.faults["watch"].append(s.stream(s.bookmark(4711)))
    api.faults["watch"].append(s.stream(s.bookmark(4712)))
    with Following(client):
        api.wait_for("watch", 3)
    versions = [seen.query["resourceVersion"] for seen in api.requests if seen.verb == "watch"]
    assert versions[1:3] == ["4711", "4712"]
    assert all(seen.query["allowWatchBookmarks"] == "true" for seen in api.requests if seen.verb == "watch")


def test_repeated_and_unfinished_events(api: Api, client: Client) -> None:
    pod = raw_pod("a", uid="a1", version="7")
    event = {"type": "ADDED", "object": pod}

    def half(handler: s.Handler) -> None:
        handler.send_raw(b'{"type":"MODIFIED","object":{"meta')

    api.faults["watch"].append(s.stream(event, event, {**event, "type": "MODIFIED"}, then=half))
    with Following(client) as following:
        api.wait_for("watch", 2)
    assert following.kinds("a") == [(ChangeKind.ADDED, "a1")]


def test_a_reflector_that_may_not_list_says_so_to_who_polls(api: Api, client: Client) -> None:
    api.always["list"] = s.refuse(403, "Forbidden", 'pods is forbidden: User "x" cannot list resource "pods"')
    with Following(client) as following:
        wait_until(lambda: following.reflector.failure is not None)
        assert isinstance(following.reflector.failure, Forbidden)


def test_a_refusal_while_the_server_starts_is_waited_out(api: Api, client: Client) -> None:
    api.faults["list"].extend([s.refuse(403, "Forbidden", "not yet")] * 2)
    with Following(client, replace(QUICK, refused_s=60)) as following:
        assert following.reflector.wait_synced(30)
        assert following.reflector.failure is None


def test_a_watch_is_left_at_once_when_asked_to_stop(api: Api, client: Client) -> None:
    following = Following(client, WatchIntervals(watch_s=(200, 200)))
    with following:
        api.wait_for("watch", 1)
        time.sleep(0.2)
        started = time.monotonic()
    assert time.monotonic() - started < 60, "it would have lasted 200 s"
    assert following.told == []
