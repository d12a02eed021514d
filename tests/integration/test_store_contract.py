"""One suite for every store: a directory, an emulator, and the real servers that the environment names."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

from trialfleet_runner import grants
from trialfleet_runner.contract import GetGrant, PutGrant
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.http import exchange
from trialfleet_runner.store.open import open_store
from trialfleet_runner.store.patience import Patience
from trialfleet_runner.store.probe import examine, probe
from trialfleet_runner.store.protocol import Store, StoreError
from trialfleet_runner.store.s3 import S3Store

QUICK = Patience(total_s=3)
REAL = {"radosgw": "S3_ENDPOINT", "radosgw-tls": "S3_ENDPOINT_TLS", "versitygw": "S3_ENDPOINT_FILES"}
STORES = ["directory", "moto", *(pytest.param(name, marks=pytest.mark.needs("testbed")) for name in REAL)]


MADE: list[tuple[str, str]] = []  # (endpoint, bucket)
BUCKETS = pytest.mark.parametrize("place", STORES[1:], indirect=True, scope="module")
SIGNING = pytest.mark.parametrize("place", STORES[2:], indirect=True, scope="module")  # they check signatures


@dataclass(frozen=True)
class Place:
    """Where one kind of store is; tests get a prefix of their own in it."""

    kind: str
    root: str  # URL
    endpoint: str | None
    first: Store

    @property
    def signs(self) -> bool:
        """Whether signatures are checked (a directory has none, the emulator does not look)."""
        return self.kind in REAL

    def fresh(self) -> Store:
        name = secrets.token_hex(6)
        if isinstance(self.first, S3Store):
            return dataclasses.replace(self.first, prefix=name)
        return open_store(f"{self.root}/{name}")


def admin(endpoint: str, **credentials: str) -> object:
    config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config, **credentials)


def bucket_at(endpoint: str, **credentials: str) -> str:
    name = f"contract-{secrets.token_hex(6)}"
    admin(endpoint, **credentials).create_bucket(Bucket=name)  # type: ignore[attr-defined]
    MADE.append((endpoint, name))
    return name


@pytest.fixture(scope="module", autouse=True)
def _real_servers_are_left_as_found() -> Iterator[None]:
    """The emulator's and rclone's buckets go with them."""
    yield
    for endpoint, bucket in MADE:
        if endpoint not in {os.environ.get(name) for name in REAL.values()}:
            continue
        store = open_store(f"s3://{bucket}", endpoint=endpoint)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(store.delete, [entry.key for entry in store.list("")]))
        admin(endpoint).delete_bucket(Bucket=bucket)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        if "AWS_ACCESS_KEY_ID" not in os.environ:
            patch.setenv("AWS_ACCESS_KEY_ID", "emulated")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "emulated")
        yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module", params=STORES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    kind: str = request.param
    if kind == "directory":
        root = str(tmp_path_factory.mktemp("store") / "root")
        return Place(kind, root, None, open_store(root))
    endpoint = request.getfixturevalue("moto") if kind == "moto" else os.environ[REAL[kind]]
    root = f"s3://{bucket_at(endpoint)}"
    return Place(kind, root, endpoint, open_store(root, endpoint=endpoint))


@pytest.fixture
def store(place: Place) -> Store:
    return place.fresh()


# --- values -----------------------------------------------------------------------------------------


def test_a_created_value_is_read_and_listed(store: Store) -> None:
    assert store.get("c/outcomes/a.json") is None
    assert store.create("c/outcomes/a.json", b"one")
    assert store.get("c/outcomes/a.json") == b"one"
    assert [tuple(entry) for entry in store.list("c/")] == [("c/outcomes/a.json", 3)]


def test_a_value_is_created_once(store: Store) -> None:
    assert store.create("c/end.json", b"mine")
    assert store.create("c/end.json", b"mine"), "an identical create is the same create, retried"
    assert not store.create("c/end.json", b"theirs")
    assert not store.create("c/end.json", b"")
    assert store.get("c/end.json") == b"mine"


@pytest.mark.parametrize("size", [0, 1, 100_000, 9 * 2**20])
def test_values_of_every_size(store: Store, size: int) -> None:
    data = os.urandom(size)
    assert store.create("big", data)
    assert not store.create("big", data + b"1")
    assert store.get("big") == data
    assert [entry.size for entry in store.list("big")] == [size]


def test_put_replaces(store: Store) -> None:
    for data in (b"1", b"22", b""):
        store.put("c/epochs/1.beat", data)
        assert store.get("c/epochs/1.beat") == data


def test_deleted_is_absent(store: Store) -> None:
    store.create("c/a/b", b"1")
    store.create("c/d", b"1")
    store.delete("c/a/b")
    store.delete("c/a/b")
    store.delete("never/there")
    assert store.get("c/a/b") is None
    assert [entry.key for entry in store.list("")] == ["c/d"]
    assert store.create("c/a/b", b"2")


def test_get_many_answers_for_every_key(store: Store) -> None:
    keys = [f"c/{n % 3}/{n:03}" for n in range(60)]
    for key in keys[::2]:
        store.create(key, key.encode())
    found = dict(store.get_many(keys))
    assert found == {key: key.encode() if n % 2 == 0 else None for n, key in enumerate(keys)}
    assert list(store.get_many([])) == []


# --- keys and listings ------------------------------------------------------------------------------

NAMES = [
    "a",
    "a-b",
    "a.b",
    "a!",
    "a~",
    "b/a",
    "b-/a",
    "b.a",
    "b/a-",
    "b/-a",
    "b0",
    "B",
    "é",
    "z/é/1",
    "z/e/1",
    "z/😀",
]


@pytest.mark.parametrize("prefix", ["", "b", "b/", "b-", "z/", "z/é", "absent/", "a"])
def test_listings_are_in_the_order_of_keys(place: Place, prefix: str, listed: Store) -> None:
    expected = sorted((name for name in NAMES if name.startswith(prefix)), key=str.encode)
    assert [entry.key for entry in listed.list(prefix)] == expected


@pytest.fixture(scope="module")
def listed(place: Place) -> Store:
    store = place.fresh()
    for name in NAMES:
        assert store.create(name, b"1")
    return store


def test_listings_of_more_than_a_page(store: Store) -> None:
    keys = [f"c/{n % 7}/{n:04}" for n in range(1050)]
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda key: store.create(key, b""), keys))
    assert [entry.key for entry in store.list("c/")] == sorted(keys)


ODD = [
    "a b/c d",
    "per%cent/%2F",
    "plus+and&amp;=?#",
    "quote'\"<>`",
    "ünï/日本語",
    ".dot/..two/...",
    "trailing./dot.",
    "n" * 255,
    "/".join(["deep"] * 40),
    "back\\slash",
    "a:b@c,d;e*f|g",
]


@pytest.mark.parametrize("key", ODD)
def test_odd_keys(store: Store, key: str) -> None:
    assert store.create(key, b"1")
    assert not store.create(key, b"2")
    assert store.get(key) == b"1"
    assert [entry.key for entry in store.list("")] == [key]
    assert grants.read(store.grant_get(key, expires_s=60)) == b"1"
    store.delete(key)
    assert grants.create(store.grant_put(key, expires_s=60), b"3")
    assert store.get(key) == b"3"


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\0b", "a\nb", "n" * 256, "a/.tmp-1-2", "\ud800"]
)
def test_what_is_no_key_is_refused_by_every_store(store: Store, key: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.create(key, b""),
        lambda: store.put(key, b""),
        lambda: store.get(key),
        lambda: store.delete(key),
        lambda: store.grant_put(key, expires_s=60),
        lambda: store.grant_get(key, expires_s=60),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not a key"):
            call()


@pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/../b", "./"])
def test_what_is_no_prefix_is_refused_by_every_store(store: Store, prefix: str) -> None:
    with pytest.raises(ValueError):
        list(store.list(prefix))


# --- races ------------------------------------------------------------------------------------------


def test_threads_that_race_have_one_winner(store: Store) -> None:
    for game in range(5):
        start = threading.Barrier(12)

        def run(racer: int, game: int = game, start: threading.Barrier = start) -> bool:
            start.wait()
            return store.create(f"race/{game}", b"%d" % racer)

        with ThreadPoolExecutor(12) as pool:
            won = list(pool.map(run, range(12)))
        assert won.count(True) == 1
        assert store.get(f"race/{game}") == b"%d" % won.index(True)


RACE = """
import json, multiprocessing, sys
from trialfleet_runner.store.open import open_store
url, endpoint, racers, games = sys.argv[1], sys.argv[2] or None, int(sys.argv[3]), int(sys.argv[4])
open_store(url, endpoint=endpoint)  # imports, before the fork

def run(racer, start, won):
    store = open_store(url, endpoint=endpoint)
    store.get("warm")
    for game in range(games):
        start.wait()
        if store.create(f"race/{game}", b"%d" % racer):
            won.put((game, racer))

fork = multiprocessing.get_context("fork")
start, won = fork.Barrier(racers), fork.SimpleQueue()
children = [fork.Process(target=run, args=(n, start, won)) for n in range(racers)]
for child in children: child.start()
for child in children: child.join()
found = []
while not won.empty(): found.append(won.get())
assert all(child.exitcode == 0 for child in children)
print(json.dumps(found))
"""


def test_processes_that_race_have_one_winner(place: Place) -> None:
    """Not asked of the emulator: its check and its write are two steps (twelve racers, two winners, seen once in
    some dozen runs), which is why the probe's own race refuses a store like that."""
    if place.kind == "moto":
        pytest.skip("the emulator checks and writes in two steps: it promises nothing here")
    store, games = place.fresh(), 40 if place.kind == "directory" else 5
    argv = [sys.executable, "-c", RACE, store.url, place.endpoint or "", "12", str(games)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    winners: list[tuple[int, int]] = json.loads(done.stdout)
    assert sorted(game for game, _ in winners) == list(range(games))
    for game, racer in winners:
        assert store.get(f"race/{game}") == b"%d" % racer


def test_readers_never_see_half_a_value(store: Store) -> None:
    values = [bytes([letter]) * 200_000 for letter in b"ab"]
    store.put("live", values[0])
    done = threading.Event()

    def overwrite() -> None:
        for turn in range(40):
            store.put("live", values[turn % 2])
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(overwrite)
        reads = 0
        while not done.is_set() and not writer.done():
            assert store.get("live") in values
            reads += 1
        writer.result()
    assert reads > 3


# --- grants -----------------------------------------------------------------------------------------


def without_readback(grant: PutGrant) -> PutGrant:
    return grant.model_copy(update={"readback": None})


def test_a_grant_creates_its_key_once(store: Store) -> None:
    grant = store.grant_put("c/end.json", expires_s=60)
    assert grants.create(grant, b"mine")
    assert grants.create(grant, b"mine")
    assert not grants.create(grant, b"theirs")
    assert not grants.create(grant, b"mine and more")
    assert store.get("c/end.json") == b"mine"
    assert not grants.create(without_readback(grant), b"theirs")
    assert not store.create("c/end.json", b"theirs")


def test_a_grant_loses_to_the_controller(store: Store) -> None:
    grant = store.grant_put("c/end.json", expires_s=60)
    store.create("c/end.json", b"lost")
    assert not grants.create(grant, b"verdict")
    assert grants.read(store.grant_get("c/end.json", expires_s=60)) == b"lost"


def test_a_live_grant_overwrites(store: Store) -> None:
    grant = store.grant_put("c/live.log.zst", conditional=False, expires_s=60)
    for data in (b"1", b"22"):
        grants.overwrite(grant, data)
        assert store.get("c/live.log.zst") == data
    with pytest.raises(ValueError, match="overwrite"):
        grants.create(grant, b"")
    with pytest.raises(ValueError, match="create"):
        grants.overwrite(store.grant_put("c/x", expires_s=60), b"")


def test_a_granted_bundle_of_many_megabytes(store: Store) -> None:
    data = os.urandom(12 * 2**20)
    grant = store.grant_put("c/bundle.tar.zst", expires_s=60)
    assert grants.create(grant, data)
    assert not grants.create(grant, data + b"1"), "a refusal of a large body must be heard"
    assert grants.create(grant, data)
    read = store.grant_get("c/bundle.tar.zst", expires_s=60)
    assert grants.read(read) == data
    with pytest.raises(StoreError):
        grants.read(read, limit=len(data) - 1)
    assert grants.read(read, limit=len(data)) == data


def test_reading_what_is_absent_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError):
        grants.read(store.grant_get("absent", expires_s=60), patience=QUICK)


def put_with(grant: PutGrant, *, url: str | None = None, headers: dict[str, str] | None = None) -> int:
    return exchange(
        "PUT", url or grant.url, headers=grant.headers if headers is None else headers, body=b"x"
    ).status


@SIGNING
def test_a_grant_cannot_be_bent(place: Place, store: Store) -> None:
    """Each alteration is refused; unaltered, the same request is accepted (the control)."""
    grant = store.grant_put("c/1/end.json", expires_s=60)
    bare = {name: value for name, value in grant.headers.items() if name != "If-None-Match"}
    assert put_with(grant, headers=bare) in (400, 403)
    assert put_with(grant, headers={**bare, "If-None-Match": '"other"'}) in (400, 403)
    assert put_with(grant, headers={**grant.headers, "Content-Type": "text/html"}) in (400, 403)
    assert put_with(grant, url=grant.url.replace("c/1/end", "c/2/end")) == 403
    assert put_with(grant, url=grant.url.replace("X-Amz-Expires=60", "X-Amz-Expires=6000")) == 403
    assert grant.readback is not None
    assert put_with(grant, url=grant.readback.url, headers={}) == 403
    assert exchange("DELETE", grant.url, headers=grant.headers).status == 403
    assert exchange("GET", grant.url, headers=grant.headers).status == 403
    assert [entry.key for entry in store.list("")] == []
    assert put_with(grant) == 200
    assert put_with(grant) == 412


@SIGNING
def test_an_expired_grant_is_refused(place: Place, store: Store) -> None:
    grant, read = store.grant_put("c/a", expires_s=1), store.grant_get("c/b", expires_s=1)
    store.create("c/b", b"1")
    time.sleep(2.2)
    with pytest.raises(grants.GrantRefused, match="expired"):
        grants.create(grant, b"late", patience=QUICK)
    with pytest.raises(grants.GrantRefused, match="expired"):
        grants.read(read, patience=QUICK)
    assert store.get("c/a") is None


@SIGNING
def test_no_message_holds_a_signature(place: Place, store: Store) -> None:
    bent = store.grant_put("c/a", expires_s=60)
    bent = bent.model_copy(update={"url": bent.url.replace("c/a", "c/b")})
    with pytest.raises(grants.GrantRefused) as refusal:
        grants.create(bent, b"1", patience=QUICK)
    assert "Signature=" not in str(refusal.value)
    assert "c/b" in str(refusal.value)


# --- the probe --------------------------------------------------------------------------------------


def test_the_probe_passes_and_leaves_nothing(place: Place, store: Store) -> None:
    report = probe(store, signatures=place.signs or place.kind == "directory")
    assert not report.broken
    assert len(report.checks) >= 11
    assert list(store.list("")) == []


def test_the_probe_refuses_a_server_that_checks_no_signatures(moto: str) -> None:
    store = open_store(f"s3://{bucket_at(moto)}/root", endpoint=moto)
    with pytest.raises(OperatorError, match="without its condition is refused: HTTP 200"):
        probe(store)
    assert [check.name for check in examine(store).broken] == ["a grant without its condition is refused"]


LIFECYCLE = {
    "Rules": [{"ID": "old-runs", "Status": "Enabled", "Filter": {"Prefix": "root/"}, "Expiration": {"Days": 30}}]
}


@pytest.mark.parametrize("server", ["moto", pytest.param("radosgw", marks=pytest.mark.needs("testbed"))])
def test_the_probe_refuses_a_bucket_whose_objects_expire(server: str, request: pytest.FixtureRequest) -> None:
    endpoint = request.getfixturevalue("moto") if server == "moto" else os.environ[REAL[server]]
    bucket = bucket_at(endpoint)
    admin(endpoint).put_bucket_lifecycle_configuration(  # type: ignore[attr-defined]
        Bucket=bucket, LifecycleConfiguration=LIFECYCLE
    )
    signatures = server != "moto"
    with pytest.raises(OperatorError, match="nothing expires: lifecycle rule old-runs"):
        probe(open_store(f"s3://{bucket}/root", endpoint=endpoint), signatures=signatures)
    assert not probe(open_store(f"s3://{bucket}/other", endpoint=endpoint), signatures=signatures).broken


@pytest.fixture(scope="module")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server that accepts conditional writes and ignores them."""
    folder = tmp_path_factory.mktemp("rclone")
    program = Path(sys.executable).with_name("rclone")
    argv = [program, "serve", "s3", "--addr", "127.0.0.1:0", "--auth-key", "testkey,testsecret", folder]
    server = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={"HOME": str(folder)})
    try:
        yield _address(server)
    finally:
        server.kill()
        server.wait()


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    for line in server.stderr:
        if "http://127.0.0.1:" in line:
            port = line.rsplit("http://127.0.0.1:", 1)[1].split("/", 1)[0].strip('\n]" ')
            threading.Thread(target=server.stderr.read, daemon=True).start()  # its pipe must not fill
            return f"http://127.0.0.1:{port}"
    raise AssertionError("rclone did not start")


def test_the_probe_refuses_a_store_that_ignores_conditions(rclone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testkey")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
    store = open_store(f"s3://{bucket_at(rclone)}/root", endpoint=rclone, patience=Patience(total_s=20))
    broken = {check.name: check.detail for check in examine(store).broken}
    assert "creates once" in broken
    assert "a grant creates once" in broken
    assert "a create has one winner" in broken
    with pytest.raises(OperatorError, match="is refused as a store"):
        probe(store)


# --- what the operator can fix ----------------------------------------------------------------------


@BUCKETS
def test_a_missing_bucket_is_named(place: Place) -> None:
    store = open_store("s3://no-such-bucket-here/root", endpoint=place.endpoint)
    for call in (lambda: store.create("a", b""), lambda: store.get("a"), lambda: list(store.list(""))):
        with pytest.raises(OperatorError, match="no bucket no-such-bucket-here") as error:
            call()
        assert "s3 mb" in (error.value.hint or "")


@SIGNING
def test_wrong_credentials_are_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-and-not-shown")
    store = open_store(f"{place.root}/x", endpoint=place.endpoint)
    for call in (lambda: store.create("a", b""), lambda: store.get("a"), lambda: list(store.list(""))):
        with pytest.raises(OperatorError, match=os.environ["AWS_ACCESS_KEY_ID"]) as error:
            call()
        assert store.bucket in str(error.value)  # type: ignore[attr-defined]
        assert "wrong-and-not-shown" not in str(error.value)
    with pytest.raises(grants.GrantRefused):
        grants.create(store.grant_put("a", expires_s=60), b"", patience=QUICK)


def test_no_credentials(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    store = open_store("s3://any-bucket/root", endpoint=moto)
    with pytest.raises(OperatorError, match="AWS_ACCESS_KEY_ID"):
        store.get("a")
    with pytest.raises(OperatorError, match="AWS_ACCESS_KEY_ID"):
        store.grant_get("a", expires_s=60)


@pytest.mark.needs("testbed")
def test_an_untrusted_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE")
    store = open_store("s3://any-bucket/root", endpoint=os.environ["S3_ENDPOINT_TLS"])
    with pytest.raises(OperatorError, match="is not trusted"):
        store.get("a")
    url = os.environ["S3_ENDPOINT_TLS"] + "/any-bucket/a"
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        grants.read(GetGrant(url=url), patience=Patience(total_s=0.5))


def test_a_server_that_is_not_there() -> None:
    store = open_store("s3://bucket/root", endpoint="http://127.0.0.1:9", patience=Patience(total_s=0.5))
    with pytest.raises(StoreError, match="no answer within"):
        store.get("a")
    with pytest.raises(OperatorError, match="AWS_ENDPOINT_URL_S3"):
        probe(store)


def test_grants_are_signed_for_the_address_that_runners_see(moto: str) -> None:
    bucket = bucket_at(moto)
    store = open_store(f"s3://{bucket}/root", endpoint=moto, grant_endpoint="http://s3.pods:7480")
    assert store.grant_get("a", expires_s=60).url.startswith(f"http://s3.pods:7480/{bucket}/root/a?")
    assert store.create("a", b"1")
    assert not probe(store, signatures=False).broken, "the probe asks through the address that it can reach"


@BUCKETS
def test_a_grant_longer_than_signatures_live_is_refused(place: Place, store: Store) -> None:
    with pytest.raises(OperatorError, match="7 days"):
        store.grant_put("a", expires_s=8 * 24 * 3600)


# --- servers killed while they are written to -------------------------------------------------------


@pytest.mark.needs("testbed")
@pytest.mark.slow
@pytest.mark.parametrize("server", ["radosgw", "versitygw"])
def test_a_server_killed_under_writers_loses_and_doubles_nothing(server: str) -> None:
    """`$TRIALFLEET_FAULT <server>` kills it with SIGKILL and starts it again."""
    fault = os.environ.get("TRIALFLEET_FAULT")
    if fault is None:
        if os.environ.get("TRIALFLEET_CI") == "1":
            pytest.fail("needs $TRIALFLEET_FAULT under TRIALFLEET_CI=1", pytrace=False)
        pytest.skip("needs $TRIALFLEET_FAULT: a command that kills and restarts the server it is given")
    endpoint = os.environ[REAL[server]]
    store = open_store(f"s3://{bucket_at(endpoint)}/root", endpoint=endpoint)
    stop = threading.Event()

    def write(writer: int) -> dict[str, bytes]:
        won: dict[str, bytes] = {}
        while not stop.is_set():
            key, data = f"k/{len(won):05}-{writer % 2}", b"%d" % writer * 5000
            if store.create(key, data):
                won[key] = data
            else:
                won[key] = b""  # its rival's
        return won

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, n) for n in range(4)]
        time.sleep(1)
        subprocess.run([*fault.split(), server], check=True, timeout=120, capture_output=True)
        time.sleep(1)
        stop.set()
        claims = [writer.result() for writer in writers]
    for key, data in store.get_many(sorted({key for claim in claims for key in claim})):
        holders = [claim[key] for claim in claims if claim.get(key)]
        assert data is not None, f"{key} was acknowledged and is gone"
        assert holders == [data], f"{key}: {len(holders)} were told that they had won"
