"""Tables from every store: made once, used from then on, and the same as a directory's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import ledgers as made
from tests.support.real_campaign import ran
from tests.support.stores import BUCKETS, SIGNING, Place
from trialfleet_analysis.commands.power import power as power_command
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_controller.commands.pull import pull as pull_command
from trialfleet_ledger.store import bulk
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.s3 import S3Store

PLAN = made.lifelike_plan(reps=2, name="demo")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    return made.write(tmp_path_factory.mktemp("source"), PLAN, made.lifelike(7))


@pytest.fixture(scope="module")
def held(place: Place, source: DirectoryStore) -> Store:
    """The campaign in the store, for several tests: to copy it costs more than they do."""
    return copied(source, place.fresh())


def copied(source: DirectoryStore, store: Store) -> Store:
    for entry in source.list("demo/"):
        if "/tables/" not in entry.key:
            raw = source.get(entry.key)
            assert raw is not None
            store.put(entry.key, raw)
    return store


def test_made_once_and_used_from_then_on(source: DirectoryStore, held: Store) -> None:
    for entry in list(held.list("demo/tables/")):
        held.delete(entry.key)
    first, second = (open_campaign(held, "demo") for _ in range(2))
    there = open_campaign(source, "demo", tables=False)
    assert (first.source, second.source) == ("records", "tables")
    for campaign in (first, second):
        assert campaign.trials.equals(there.trials)
        assert campaign.attempts.equals(there.attempts)


def test_an_outcome_that_was_written_anew_is_noticed(held: Store) -> None:
    open_campaign(held, "demo")
    key = next(entry.key for entry in held.list("demo/outcomes/"))
    raw = held.get(key)
    assert raw is not None
    other = raw.replace(b'"attempts":1', b'"attempts":3', 1) if b'"attempts":1' in raw else raw + b" "
    assert other != raw
    held.put(key, other)
    assert open_campaign(held, "demo").source == "records"
    held.put(key, raw)


def test_a_tag_follows_the_value(store: Store) -> None:
    def tag() -> str:
        [entry] = store.list("a/")
        return entry.tag

    store.put("a/b", b"one")
    first = tag()
    assert first
    assert first == tag()
    store.put("a/b", b"two")
    assert tag() != first


HUNDRED = [f"a/{number:03}" for number in range(100)]


@pytest.fixture(scope="module")
def hundred(place: Place) -> S3Store:
    """A store with these keys, for several tests."""
    store = bucket(place)
    for key in HUNDRED:
        store.put(key, key.encode())
    return store


@BUCKETS
class TestTheFasterReader:
    """Whatever it brings is what boto3 brings."""

    def test_it_brings_the_same(self, hundred: S3Store) -> None:
        odd = "b/ö 1~%20.json"  # a key whose characters obstore would write in its own way
        hundred.put(odd, b"odd")
        hundred.put("b/empty", b"")
        keys = [*HUNDRED, odd, "b/empty", "a/none", "b/none"]
        assert list(hundred.get_many(keys)) == [(key, hundred.get(key)) for key in keys]

    def test_it_is_used(self, place: Place) -> None:
        store = bucket(place)
        store.put("a", b"1")
        quick = bulk.quick_reader(store.client, store.here, store.checksums)
        if (place.endpoint or "").startswith("https"):
            assert quick is None, "an authority of our own is boto3's to keep to"
            return
        assert quick is not None
        assert quick(f"{store.prefix}/a") == b"1"
        assert quick(f"{store.prefix}/none") is None
        assert quick(f"{store.prefix}/a") == b"1", "absence is no trouble"

    def test_trouble_ends_its_use(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        store = bucket(place)
        store.put("a", b"1")
        quick = bulk.quick_reader(store.client, store.here, store.checksums)
        if quick is None:  # with an authority of one's own boto3 reads
            assert (place.endpoint or "").startswith("https:")
            return
        tried: list[str] = []

        def get(bucket: object, key: str) -> object:
            tried.append(key)
            raise OSError("cut")

        monkeypatch.setattr("obstore.get", get)
        assert [quick("a"), quick("b")] == [None, None]
        assert tried == ["a"]

    def test_it_lists_the_same(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever other tools left between the keys: folders' markers, characters that it writes its own way."""
        store = bucket(place)
        for number in range(80):
            store.put(f"a/k{number:02}/b.json", b"x" * (number + 1))
        quick = bulk.quick_listing(store.client, store.here)
        if quick is not None:
            after = [entry for entry in store.list("a/") if entry.key > "a/k10/b.json"]
            brought = list(quick(f"{store.prefix}/a/", f"{store.prefix}/a/k10/b.json"))
            assert brought == [entry._replace(key=f"{store.prefix}/{entry.key}") for entry in after]
            assert len(brought) == 69
        for foreign in ("a/l/", "a/ö 1~%20.json", "b"):
            store.client.put_object(Bucket=store.bucket, Key=f"{store.prefix}/{foreign}", Body=b"")
        listed = {prefix: list(store.list(prefix)) for prefix in ("", "a/", "a/k", "a/k60/", "none/")}
        assert len(listed["a/"]) == 81
        monkeypatch.setitem(sys.modules, "obstore", None)
        assert {prefix: list(store.list(prefix)) for prefix in listed} == listed
        store.client.delete_object(
            Bucket=store.bucket, Key=f"{store.prefix}/a/l/"
        )  # no key: else the bucket stays

    def test_a_listing_that_is_cut_off_goes_on(self, hundred: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
        import obstore

        whole: Any = obstore
        begin, asked = whole.list, list[object]()

        def cut(*words: object, **options: object) -> Iterator[object]:
            asked.append(options["offset"])
            yield next(iter(begin(*words, **{**options, "chunk_size": 20})))
            raise OSError("cut")

        monkeypatch.setattr("obstore.list", cut)
        assert [entry.key for entry in hundred.list("a/")] == HUNDRED
        usable = bulk.quick_listing(hundred.client, hundred.here) is not None
        assert asked == ([f"{hundred.prefix}/a/063"] if usable else [])

    def test_never_after_a_fork(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        store = bucket(place)
        monkeypatch.setattr(bulk, "_begun", [1])
        assert bulk.quick_reader(store.client, store.here, store.checksums) is None
        assert bulk.quick_listing(store.client, store.here) is None

    def test_without_obstore_boto3_reads(self, hundred: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "obstore", None)
        assert bulk.quick_reader(hundred.client, hundred.here, hundred.checksums) is None
        assert list(hundred.get_many(HUNDRED)) == [(key, key.encode()) for key in HUNDRED]


@SIGNING
def test_wrong_credentials_are_explained_by_boto3(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.store.open import open_store

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = open_store(place.fresh().url, endpoint=place.endpoint)
    with pytest.raises(OperatorError, match="may not"):
        list(store.get_many([f"a/{number}" for number in range(70)]))


@BUCKETS
def test_a_pilot_in_a_bucket_plans_as_its_copy_does(
    place: Place, source: DirectoryStore, held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(held, S3Store)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", place.endpoint or "")
    said: list[str] = []
    for pilot in (str(source.root / "demo"), f"{held.url}/demo"):
        argv = ["--pilot", pilot, "--budget", "400", "--cost-task", "20", "--json"]
        planned = CliRunner().invoke(power_command, argv, catch_exceptions=False)
        said.append(planned.stdout)
    assert said[0] == said[1]
    assert json.loads(said[0])["pilot"]["tasks"]


def bucket(place: Place) -> S3Store:
    store = place.fresh()
    assert isinstance(store, S3Store)
    return store


def command(*words: str) -> str:
    return ran(*words, cwd=Path.cwd()).stdout


PULLS: dict[str, Callable[[Path], list[str]]] = {
    "whole": lambda folder: ["pull", "demo", str(folder)],
    "records alone": lambda folder: ["pull", "demo", str(folder), "--no-bundles"],
}


@pytest.mark.parametrize("pull", PULLS.values(), ids=PULLS.keys())
def test_pulled_tables_serve_offline(
    source: DirectoryStore, tmp_path: Path, pull: Callable[[Path], list[str]]
) -> None:
    """From the command line, as its users do."""
    store = DirectoryStore(tmp_path / "store")
    copied(source, store)
    assert "from the campaign's records" in command(
        "tables", str(store.root / "demo"), "--out", str(tmp_path / "a")
    )
    command(*pull(tmp_path / "pulled"), "--store", str(store.root))
    said = command("tables", str(tmp_path / "pulled" / "demo"), "--out", str(tmp_path / "b"))
    assert "from the campaign's tables" in said
    for name in ("trials.parquet", "attempts.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_records_without_tables_are_said_to_be_too_little(source: DirectoryStore, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    copied(source, store)
    argv = ["demo", str(tmp_path / "pulled"), "--no-bundles", "--store", str(store.root)]
    bare = CliRunner().invoke(pull_command, argv)
    assert bare.exit_code == 0
    assert "run `trialfleet tables demo` first" in bare.stderr
    command("tables", str(store.root / "demo"), "--out", str(tmp_path / "a"))
    assert "tables" not in CliRunner().invoke(pull_command, argv).stderr
