"""The runner's side of the store: single keys that it was granted, by presigned URL or file:// path.

Needs no S3 client and no credentials. The signature of a grant fixes what it permits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from trialfleet_ledger.records.grants import GetGrant, PutGrant
from trialfleet_ledger.store import files
from trialfleet_ledger.store.checksums import AgreedAnswer, Checksums, checksums_of
from trialfleet_ledger.store.http import HttpResponse, NoAnswerError, exchange, without_query
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.rereading import BEFORE_A_RECORD_S, SHARES, Make, WrongValue, settle_again
from trialfleet_ledger.store.retry_policy import MORE_ROOM, Patience, Tries, is_full, is_transient

LARGEST_READ = 2 * 2**30
PATIENCE = Patience(total_s=300)  # a store that is restarted must not cost a trial
_STORED = {200, 201, 204}
T = TypeVar("T")


class GrantRefused(StoreError):
    """The store refused the signature, each time: it has expired, was altered, or its credentials were
    withdrawn."""


def read(grant: GetGrant, *, limit: int = LARGEST_READ, patience: Patience = PATIENCE) -> bytes:
    """The whole value. Raises `StoreError` if it is absent, larger than `limit` bytes or not reachable, and
    `GrantRefused` if the grant is not valid (any more)."""
    value = _value(grant.url, patience, limit=limit)
    if value is None:
        raise StoreError(f"{without_query(grant.url)}: not there")
    return value


def read_settled(grant: GetGrant, make: Make[T], *, patience: Patience = PATIENCE) -> T:
    """What `make` makes of the value (None: absent), which is read again if `make` refuses it. Raises as
    `rereading.settle_value` and `read`."""
    first = _value(grant.url, patience)
    try:
        return make(first)
    except WrongValue:
        return settle_again(without_query(grant.url), first, _reread(grant, patience), make)


def _reread(grant: GetGrant, patience: Patience) -> Iterator[bytes | None]:
    """Each request opens a connection. A file is read once more: it answers what it answered."""
    for share in SHARES if _path(grant.url) is None else SHARES[:1]:
        if _path(grant.url) is None:
            patience.sleep(share * BEFORE_A_RECORD_S)
        yield _value(grant.url, patience)


def _value(
    url: str, patience: Patience, *, limit: int = LARGEST_READ, expected: bytes | None = None
) -> bytes | None:
    """None: there is none. `expected`: any other value must be proven by a checksum, or read twice. Raises as
    `read`."""
    path = _path(url)
    if path is not None:
        with files.speaking(str(path)):
            return files.read(path.parent, (path.name,), limit=limit)
    agreed, oversized = AgreedAnswer(_checksums(url)), AgreedAnswer(_checksums(url))

    def once(left_s: float) -> bytes | None:
        answer = exchange("GET", url, limit=limit, timeout_s=left_s)
        if answer.status not in (200, 404):
            raise _RefusedError(url, answer)
        if not answer.whole:
            larger = f"{without_query(url)}: larger than the {limit} bytes that are read"
            raise (StoreError if oversized.accept(None, larger) else NoAnswerError)(larger)
        value, doubt = _examine(url, answer, expected)
        if not agreed.accept(value, doubt):
            raise NoAnswerError(f"{without_query(url)}: {doubt}")
        return value

    return _persist(once, patience.tries())


def _examine(url: str, answer: HttpResponse, expected: bytes | None) -> tuple[bytes | None, str | None]:
    """The value of an answer 200 or 404 to a GET, and why it may not be what the store holds."""
    if answer.status == 404:
        return None, None if answer.code == "NoSuchKey" else "HTTP 404 without S3's NoSuchKey"
    proof = expected is not None and answer.body != expected
    return answer.body, _checksums(url).doubt(answer.headers, answer.body, proof=proof)


def create(grant: PutGrant, data: bytes, *, patience: Patience = PATIENCE) -> bool:
    """Create-if-absent, as `Store.create`. True: the key holds `data`. False: it holds something else.

    Raises `StoreError` if this cannot be determined, `GrantRefused` if the grant is not valid.
    """
    if not grant.conditional:
        raise ValueError("this grant overwrites: use overwrite()")
    path = _path(grant.url)
    if path is not None:
        with files.speaking(str(path)):
            return files.create(path.parent, (path.name,), data)
    tries = patience.tries()

    def once(left_s: float) -> bool:
        ambiguous = tries.tried > 0
        answer = exchange("PUT", grant.url, headers=grant.headers, body=data, timeout_s=left_s)
        if answer.status == 412:
            return _is_ours(grant, data, ambiguous=ambiguous, patience=patience)
        if answer.status not in _STORED:
            raise _RefusedError(grant.url, answer)
        if doubt := _checksums(grant.url).doubt(answer.headers, data):
            raise NoAnswerError(f"{without_query(grant.url)}: {doubt}")
        return True

    return _persist(once, tries)


def overwrite(grant: PutGrant, data: bytes, *, patience: Patience = PATIENCE) -> None:
    """Write, replacing. Raises as `create`."""
    if grant.conditional:
        raise ValueError("this grant creates: use create()")
    path = _path(grant.url)
    if path is not None:
        with files.speaking(str(path)):
            files.replace(path.parent, (path.name,), data)
        return
    agreed = AgreedAnswer(_checksums(grant.url))

    def once(left_s: float) -> None:
        answer = exchange("PUT", grant.url, headers=grant.headers, body=data, timeout_s=left_s)
        if answer.status not in _STORED:
            raise _RefusedError(grant.url, answer)
        tag, doubt = answer.headers.get("etag", ""), _checksums(grant.url).doubt(answer.headers, data)
        if not agreed.accept(tag.encode(), doubt):
            raise NoAnswerError(f"{without_query(grant.url)}: {doubt}")

    _persist(once, patience.tries())


def status_of_put(url: str, headers: Mapping[str, str], data: bytes, *, patience: Patience = PATIENCE) -> int:
    """The HTTP status that a PUT with these headers gets, whatever it is. For the probe."""

    def once(left_s: float) -> int:
        answer = exchange("PUT", url, headers=headers, body=data, timeout_s=left_s)
        if is_transient(answer.status, answer.code):
            raise _RefusedError(url, answer)
        return answer.status

    return _persist(once, patience.tries())


def _is_ours(grant: PutGrant, data: bytes, *, ambiguous: bool, patience: Patience) -> bool:
    """Whether an earlier, unanswered try of this runner wrote the key that a conditional write found taken."""
    if grant.readback is not None:
        present = _value(grant.readback.url, patience, expected=data)
        if present is None:
            raise NoAnswerError(f"{without_query(grant.url)}: taken, and gone when read")
        return present == data
    if ambiguous:
        raise StoreError(f"{without_query(grant.url)}: an earlier try of ours may have written what is there")
    return False


class _RefusedError(Exception):
    """An answer that is no success."""

    def __init__(self, url: str, answer: HttpResponse) -> None:
        self.url, self.answer = url, answer
        super().__init__(f"HTTP {answer.status} {answer.code}".rstrip())


def _persist(once: Callable[[float], T], tries: Tries) -> T:
    """Calls `once` with the seconds that it may take, until it has an answer that is believed or the patience is
    spent."""
    for left in tries:
        try:
            return once(min(left, 60))
        except NoAnswerError as error:
            if left >= 1 or tries.tried == 0:  # else cut short by our own patience: the try before it tells more
                tries.note_failure(error)
        except _RefusedError as error:
            if tries.believes(error.answer.status, error.answer.code, error):
                raise _failure(error) from error
    last = tries.trouble
    if isinstance(last, _RefusedError) and not is_transient(last.answer.status, last.answer.code):
        raise _failure(last)
    raise StoreError(tries.summary)


def _failure(refused: _RefusedError) -> StoreError:
    """The error for a refusal that is final."""
    answer, what = refused.answer, f"{without_query(refused.url)}: {refused}"
    if is_full(answer.status, answer.code):
        return StoreError(f"{what}: the store is full; nothing was written", hint=MORE_ROOM)
    if answer.status in (400, 401, 403):
        return GrantRefused(f"{what}: the grant has expired, was altered, or its credentials were withdrawn")
    if 300 <= answer.status < 400:
        return StoreError(f"{what}: it redirects to {without_query(answer.headers.get('location', ''))}")
    if answer.status == 501:
        return StoreError(f"{what}: the store does not implement this")
    return StoreError(what)


def _checksums(url: str) -> Checksums:
    return checksums_of(urlsplit(url).netloc)


def _path(url: str) -> Path | None:
    """The path of a file:// URL; None for http and https."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if parts.scheme in ("http", "https"):
        return None
    raise StoreError(f"a grant is a file, http or https URL, not {parts.scheme or 'a path'}")
