"""Campaigns over a store that answers wrongly now and then end as those over a store that does not.

`make bench` drives two hundred (`tests/bench/bench_wrong_answers.py`).
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import records
from tests.support.audit import audit
from tests.support.wrong_answers import (
    FATES,
    HTML,
    KINDS,
    Answer,
    Site,
    drawn_plan,
    drive,
    opaque_tag_of,
    refusal,
    wrong_site,
)
from trialfleet_ledger import keys, waiting
from trialfleet_ledger.attempts import Attempts
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.fold import StoredAttempt
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.objects import compress, object_key
from trialfleet_ledger.records.attempt import Intent
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Verdict
from trialfleet_ledger.store.probe import probe
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_repository.cache import Cache
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.attempt.prepared_inputs import Inputs

SEEDS = range(10)
BUNDLE = f"demo/attempts/{records.TRIAL_ID}/1/bundle.tar.zst"
PATH = f"/bucket/root/{BUNDLE}"


REPS = 4  # 24 trials; the bench has 42


@cache
def right_outcomes(seed: int) -> list[Outcome]:
    """Of a store that answers rightly."""
    with wrong_site(0.0, seed) as site:
        return drive(site, drawn_plan(random.Random(seed), reps=REPS), FATES[seed % len(FATES)], resumed=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_outcomes_are_those_of_a_store_that_answers_rightly(seed: int) -> None:
    draw = random.Random(seed)
    plan, fates = drawn_plan(draw, reps=REPS), FATES[seed % len(FATES)]
    with wrong_site(draw.uniform(0.15, 0.4), seed) as site:
        assert drive(site, plan, fates, resumed=seed % 2 == 1) == right_outcomes(seed)
        assert set(site.proxy.drawn) == set(KINDS), "the proxy did not draw each fault"
        audit(site.store, plan)


@pytest.mark.parametrize("seed", range(3))
def test_outcomes_are_right_where_tags_prove_nothing(seed: int) -> None:
    """Over a bucket whose ETags are no MD5 sums, only a missing ETag tells a proxy's page from an answer."""
    plan, fates = drawn_plan(random.Random(seed), reps=REPS), FATES[seed]
    with wrong_site(0.3, seed, ("html", "lost", "reset", "4xx")) as site:
        site.proxy.bucket.tag = opaque_tag_of
        assert drive(site, plan, fates, resumed=seed % 2 == 1) == right_outcomes(seed)
        audit(site.store, plan)


def ended() -> StoredAttempt:
    return StoredAttempt(records.intent(), end=records.end(records.scored(Verdict.PASSED)))


def read(attempts: Attempts) -> StoredAttempt:
    return attempts.verify(ended())


@pytest.mark.parametrize("kind", ["flip", "cut", "empty", "html", "4xx", "3xx", "reset"])
def test_a_bundle_that_is_right_is_never_quarantined(kind: str) -> None:
    with wrong_site(0.4, 1, (kind,)) as site:
        site.proxy.bucket.values[PATH] = b"bundle"
        attempts = Ledger(site.store, "demo").attempts
        assert not any(read(attempts).quarantined for _ in range(50))
        assert not [path for path in site.proxy.bucket.values if "quarantine" in path]


@pytest.mark.parametrize("stored", [b"another", None])
def test_a_bundle_that_is_wrong_is_quarantined_after_a_minute(stored: bytes | None) -> None:
    with wrong_site(0.0, 1) as site:
        if stored is not None:
            site.proxy.bucket.values[PATH] = stored
        began = site.patience.clock()
        assert read(Ledger(site.store, "demo").attempts).quarantined
        assert site.patience.clock() - began >= 60
        assert f"/bucket/root/{keys.quarantine('demo', records.TRIAL_ID, 1)}" in site.proxy.bucket.values


def test_a_store_that_lists_another_value_than_it_returns_is_no_verdict() -> None:
    """A proxy that answers every read with one and the same page."""
    with wrong_site(0.0, 1) as site:
        site.proxy.bucket.values[PATH] = b"bundle"
        right = site.proxy.bucket._get
        site.proxy.bucket._get = lambda path: right(path)._replace(body=b"page", headers={})  # type: ignore[method-assign]
        with pytest.raises(StoreError, match="lists another value than it returns: 4 bytes, b'page'"):
            read(Ledger(site.store, "demo").attempts)
        assert list(site.proxy.bucket.values) == [PATH]


def test_a_record_that_is_wrong_is_named_with_what_was_read() -> None:
    key = "demo/attempts/x/1/intent.json"
    with wrong_site(0.0, 1) as site:
        site.proxy.bucket.values[f"/bucket/root/{key}"] = b"<html>"
        with pytest.raises(OperatorError, match=r"demo/attempts/x/1/intent.json.*6 bytes, b'<html>'"):
            Ledger(site.store, "demo").read(key, Intent)


def inputs(site: Site, folder: Path, digest: str) -> Inputs:
    grant = site.store.grant_get(object_key(digest), expires_s=3600)
    granted: Any = SimpleNamespace(objects={digest: grant})
    return Inputs(granted, Cache(folder), site.patience)


@pytest.mark.parametrize("kind", ["flip", "cut", "empty", "html", "4xx", "5xx", "reset"])
def test_an_input_that_is_right_is_read_though_some_answers_are_wrong(kind: str, tmp_path: Path) -> None:
    digest = sha256(b"a tree")
    with wrong_site(0.4, 1, (kind,)) as site:
        site.proxy.bucket.values[f"/bucket/root/{object_key(digest)}"] = compress(b"a tree")
        for n in range(20):
            assert inputs(site, tmp_path / str(n), digest).get(digest) == b"a tree"


@pytest.mark.parametrize("stored", [b"junk", None])
def test_an_input_that_is_wrong_loses_its_attempt_alone(stored: bytes | None, tmp_path: Path) -> None:
    digest = sha256(b"a tree")
    with wrong_site(0.0, 1) as site:
        if stored is not None:
            site.proxy.bucket.values[f"/bucket/root/{object_key(digest)}"] = stored
        began = site.patience.clock()
        with pytest.raises(Lost, match=digest) as lost:
            inputs(site, tmp_path, digest).get(digest)
        assert (lost.value.loss, lost.value.halt) == (LossClass.SETUP, HaltScope.NONE)
        assert site.patience.clock() - began >= 60


def test_a_start_over_a_store_that_is_throttled_now_and_then() -> None:
    with wrong_site(0.1, 1, ("5xx",)) as site:
        assert not probe(site.store, signatures=False).broken


def test_a_page_of_a_proxy_is_no_signature_that_was_not_checked() -> None:
    with wrong_site(0.0, 1) as site:
        right, pages = site.proxy.bucket.answer, [True, True]

        def checked(method: str, url: str, headers: Any, body: bytes) -> Answer:
            if body != b"third":
                return right(method, url, headers, body)
            return Answer(200, HTML) if pages and pages.pop() else refusal(403, "SignatureDoesNotMatch")

        site.proxy.bucket.answer = checked  # type: ignore[method-assign]
        assert not probe(site.store).broken
        assert not pages
        pages[:] = [True] * 3
        with pytest.raises(OperatorError, match="HTTP 200: the server does not check what was signed"):
            probe(site.store)


def test_a_pause_between_reads_is_announced() -> None:
    announced: list[str] = []

    def sleep(seconds: float) -> None:
        announced.extend(wait.what for wait in waiting._waits.values())

    with wrong_site(0.0, 1) as site:
        store = replace(site.store, patience=replace(site.patience, sleep=sleep))
        assert list(store.reread("demo/absent", 60)) == [None] * 3
    assert announced == ["another reading of s3://bucket/root/demo/absent"] * 3


def test_a_right_value_is_read_once() -> None:
    """What the checks cost while the store answers rightly: no request."""
    with wrong_site(0.0, 1) as site:
        site.proxy.bucket.values[PATH] = b"bundle"
        seen: list[str] = []
        answer = site.proxy.bucket.answer
        site.proxy.bucket.answer = lambda *args: (seen.append(args[0]), answer(*args))[1]  # type: ignore[assignment, method-assign]
        read(Ledger(site.store, "demo").attempts)
        site.store.create("demo/a", b"1")
        assert site.store.get("demo/absent") is None
        assert seen == ["GET", "PUT", "GET"]


def test_a_listing_that_does_not_say_where_it_continues_is_read_again_then_named() -> None:
    with wrong_site(0.0, 1) as site:
        for n in range(100):
            site.proxy.bucket.values[f"/bucket/root/demo/{n:03}"] = b""
        right, faults = site.proxy.bucket._list, [True]

        def truncated(bucket: str, query: dict[str, list[str]]):  # type: ignore[no-untyped-def]
            answer = right(bucket, query)
            if not (faults and faults.pop()):
                return answer
            return answer._replace(body=answer.body.replace(b"NextContinuationToken", b"Other"))

        site.proxy.bucket._list = truncated  # type: ignore[assignment, method-assign]
        assert len(list(site.store.list("demo/"))) == 100
        faults[:] = [True] * 10_000
        with pytest.raises(StoreError, match="truncated and does not say where it continues"):
            list(site.store.list("demo/"))


@pytest.mark.parametrize(("right", "wrong"), [(b"<Size>0<", b"<Size> <"), (b"2026-01", b"2026-91")])
def test_a_listing_with_a_flipped_number_or_date_is_read_again(right: bytes, wrong: bytes) -> None:
    with wrong_site(0.0, 1) as site:
        site.proxy.bucket.values["/bucket/root/demo/a"] = b""
        listing, faults = site.proxy.bucket._list, [True]

        def flipped(bucket: str, query: dict[str, list[str]]):  # type: ignore[no-untyped-def]
            answer = listing(bucket, query)
            return answer._replace(body=answer.body.replace(right, wrong)) if faults and faults.pop() else answer

        site.proxy.bucket._list = flipped  # type: ignore[assignment, method-assign]
        assert [entry.key for entry in site.store.list("demo/")] == ["demo/a"]


def test_a_page_that_comes_twice_lists_no_key_twice() -> None:
    with wrong_site(0.0, 1) as site:
        for n in range(100):
            site.proxy.bucket.values[f"/bucket/root/demo/{n:03}"] = b""
        right, last = site.proxy.bucket._list, []

        def doubled(bucket: str, query: dict[str, list[str]]):  # type: ignore[no-untyped-def]
            last.append(right(bucket, query))
            return last[-2] if len(last) == 2 else last[-1]

        site.proxy.bucket._list = doubled  # type: ignore[assignment, method-assign]
        listed = [entry.key for entry in site.store.list("demo/")]
        assert listed == [f"demo/{n:03}" for n in range(100)]
