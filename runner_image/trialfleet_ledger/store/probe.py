"""Whether a store keeps its promises: asked of the store itself, through the API and through grants.

A server that accepts `If-None-Match: *` and ignores it would let every racing writer "win"; one that does not
check the signed header would let a runner overwrite its verdict. Both answer 200 to everything, so only
trying tells.
"""

from __future__ import annotations

import dataclasses
import secrets
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.grants import GetGrant, PutGrant
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store, StoreError
from trialfleet_ledger.store.retry_policy import Patience

FOLDER = ".probe"  # below the store's root; no campaign can have that name
RACERS = 12
LEAST_FREE_BYTES = 2**30
_PATIENCE = Patience(total_s=15, throttled_s=60)
_GLANCE_S = 5.0
_REFUSED = (400, 401, 403)
_AGREEING = 3  # equal answers that are no refusal
_LIVES_S = 300  # of the probe's grants
_OTHERS_READ = stat.S_IROTH | stat.S_IXOTH
_LIFECYCLE, _ROOM = "nothing expires", "has room"
_GOOD_STORES = "use a store that honours If-None-Match: * (AWS S3, Ceph radosgw, versitygw, MinIO), or a directory"


class StoreCheck(Frozen):
    """One promise. `holds` is None where it could not be checked or does not count against the store."""

    name: str
    holds: bool | None
    detail: str = ""


class StoreProbeReport(Frozen):
    """What the probe found, in the order of its checks."""

    url: str
    checks: tuple[StoreCheck, ...]
    seconds: float

    @property
    def broken(self) -> tuple[StoreCheck, ...]:
        """The promises that the store does not keep."""
        return tuple(check for check in self.checks if check.holds is False)


class ProbeGrants(Frozen):
    """Grants of unused keys: what a probe needs that runs where runners run, without credentials."""

    once: PutGrant
    race: PutGrant
    live: PutGrant
    live_read: GetGrant


def probe(store: Store, *, signatures: bool = True) -> StoreProbeReport:
    """Raises OperatorError if the store breaks a promise, is out of reach, or its credentials do not do.

    `signatures=False` lets a server pass that does not check signatures: an emulator, in tests. Nothing
    else is relaxed.
    """
    report = examine(store, signatures=signatures)
    if report.broken:
        reasons = "; ".join(f"{check.name}: {check.detail}" for check in report.broken)
        raise OperatorError(f"{report.url} is refused as a store: {reasons}", hint=_way_out(report))
    return report


def _way_out(report: StoreProbeReport) -> str:
    """How to fix the failed checks. Another store is necessary only if the server itself, not its setup, is at
    fault."""
    match {check.name for check in report.broken}:
        case names if names == {_LIFECYCLE}:
            bucket = report.url.removeprefix("s3://").partition("/")[0]
            return (
                f"aws s3api get-bucket-lifecycle-configuration --bucket {bucket} shows it: remove the rule, give "
                "it a Filter.Prefix that excludes the store, or name another bucket"
            )
        case names if names == {_ROOM}:
            return "free disk space there, or name another directory"
        case _:
            return _GOOD_STORES


def examine(store: Store, *, signatures: bool = True) -> StoreProbeReport:
    """Every check's result. Raises OperatorError only when the store cannot be used at all.

    Writes some thirty small keys below `.probe/` and removes them.
    """
    began = time.monotonic()
    here = _as_probed(store)
    folder = f"{FOLDER}/{secrets.token_hex(8)}"
    try:
        checks = [*_promises(here, folder), *check_grants(probe_grants(here, folder), signatures=signatures)]
        checks += [*_surroundings(here), _clean(here, folder)]
    except StoreError as error:
        raise _unanswered(error) from error
    return StoreProbeReport(url=store.url, checks=tuple(checks), seconds=time.monotonic() - began)


def answers(store: Store) -> None:
    """Whether it can be read, after at most some seconds; nothing is written. Raises `OperatorError`."""
    try:
        _as_probed(store, longest_s=_GLANCE_S).get(f"{FOLDER}/absent")
    except StoreError as error:
        raise _unanswered(error) from error


def _unanswered(error: StoreError) -> OperatorError:
    return OperatorError(
        str(error),
        where="store",
        hint=error.hint or "start the store, or correct its address (an S3 server's: $AWS_ENDPOINT_URL_S3)",
    )


def check_grants(given: ProbeGrants, *, signatures: bool = True) -> Iterator[StoreCheck]:
    """The promises that runners rely on, through the path that they use."""
    grant = given.once
    won = [grants.create(grant, data, patience=_PATIENCE) for data in (b"first", b"second")]
    yield _check("a grant creates once", won == [True, False], "the second PUT was accepted, too")
    if grant.url.startswith("http"):
        yield _unsigned(grant, signatures)
    yield _race("a grant has one winner", lambda data: grants.create(given.race, data, patience=_PATIENCE))
    for data in (b"old", b"new"):
        grants.overwrite(given.live, data, patience=_PATIENCE)
    read = grants.read(given.live_read, limit=1024, patience=_PATIENCE)
    yield _check("a live grant overwrites", read == b"new", f"it reads {read!r} after b'new' was written")


def _promises(store: Store, folder: str) -> Iterator[StoreCheck]:
    first = f"{folder}/first"
    created = store.create(first, b"1")
    yield _check("creates", created, "the store answered that a new key exists")
    yield _check("reads what was written", store.get(first) == b"1", "something else was read")
    yield _check("reads absence", store.get(f"{folder}/absent") is None, "a key that nobody wrote was read")
    listed = [entry.key for entry in store.list(f"{folder}/")]
    yield _check("lists what was written", listed == [first], f"{listed} was listed")
    yield _check("creates once", not store.create(first, b"2"), "the second create was accepted, too")
    raced = f"{folder}/race"
    yield _race("a create has one winner", lambda data: store.create(raced, data))


def _race(name: str, create: Callable[[bytes], bool]) -> StoreCheck:
    """Twelve concurrent writers with different bytes."""
    start = Barrier(RACERS)

    def run(racer: int) -> bool:
        start.wait()
        return create(b"racer %d" % racer)

    with ThreadPoolExecutor(RACERS) as pool:
        winners = sum(pool.map(run, range(RACERS)))
    return _check(name, winners == 1, f"{winners} of {RACERS} writers at once were told that they had won")


def _unsigned(grant: PutGrant, signatures: bool) -> StoreCheck:
    """The condition must be part of what is signed: a runner that leaves it out is refused."""
    name = "a grant without its condition is refused"
    bare = {field: value for field, value in grant.headers.items() if field.lower() != "if-none-match"}
    status = _believed_status(grant.url, bare)
    refused = status in _REFUSED
    if not refused and not signatures:
        return StoreCheck(name=name, holds=None, detail="this server checks no signatures: for tests only")
    return _check(name, refused, f"HTTP {status}: the server does not check what was signed")


def _believed_status(url: str, headers: Mapping[str, str]) -> int:
    """Of a PUT: a refusal, or what three answers say, for a proxy may have given one."""
    statuses: Counter[int] = Counter()
    while True:
        status = grants.status_of_put(url, headers, b"third", patience=_PATIENCE)
        statuses[status] += 1
        if status in _REFUSED or statuses[status] == _AGREEING:
            return status


def _surroundings(store: Store) -> Iterator[StoreCheck]:
    if isinstance(store, DirectoryStore):
        yield from _directory(store)
    elif store.url.startswith("s3://"):
        yield _lifecycle(store)


def _directory(store: DirectoryStore) -> Iterator[StoreCheck]:
    free = shutil.disk_usage(store.root).free
    yield _check(_ROOM, free >= LEAST_FREE_BYTES, f"{free / 2**30:.1f} GiB free, 1 GiB is the least")
    closed = not store.root.stat().st_mode & _OTHERS_READ
    yield StoreCheck(
        name="closed to other users",
        holds=closed or None,
        detail="" if closed else f"agents that run as another user could read it: chmod o-rx {store.root}",
    )


def _lifecycle(store: Store) -> StoreCheck:
    from trialfleet_ledger.store.s3 import S3Store

    name = _LIFECYCLE
    rules = store.expiry_rules() if isinstance(store, S3Store) else None
    if rules is None:
        return StoreCheck(name=name, holds=None, detail="the bucket's lifecycle rules cannot be read")
    return _check(
        name, not rules, f"lifecycle rule {', '.join(rules)} deletes results, and their trials would run again"
    )


def _as_probed(store: Store, *, longest_s: float = _PATIENCE.total_s) -> Store:
    """Grants may be signed for an address that only runners reach: here the API's own is asked. And a store
    that does not answer is waited for less long than in mid-campaign."""
    if not store.url.startswith("s3://"):
        return store
    from trialfleet_ledger.store.s3 import S3Store

    if not isinstance(store, S3Store):
        return store
    throttled_s = _PATIENCE.throttled_s if longest_s == _PATIENCE.total_s else longest_s
    patience = dataclasses.replace(
        store.patience, total_s=min(store.patience.total_s, longest_s), throttled_s=throttled_s
    )
    return dataclasses.replace(store, signer=store.here, patience=patience)


def probe_grants(store: Store, folder: str, *, expires_s: float = _LIVES_S) -> ProbeGrants:
    """Grants of four keys below `folder`, which must be unused."""
    return ProbeGrants(
        once=store.grant_put(f"{folder}/granted", expires_s=expires_s),
        race=store.grant_put(f"{folder}/granted-race", expires_s=expires_s),
        live=store.grant_put(f"{folder}/live", conditional=False, expires_s=expires_s),
        live_read=store.grant_get(f"{folder}/live", expires_s=expires_s),
    )


def _clean(store: Store, folder: str) -> StoreCheck:
    name = "deletes"
    try:
        for entry in list(store.list(f"{folder}/")):
            store.delete(entry.key)
    except (OperatorError, StoreError) as error:
        return StoreCheck(name=name, holds=None, detail=f"`gc` will not work, and {folder} stays: {error}")
    return StoreCheck(name=name, holds=True)


def _check(name: str, holds: bool, otherwise: str) -> StoreCheck:
    return StoreCheck(name=name, holds=holds, detail="" if holds else otherwise)
