"""The runner's side of the store: single keys that it was granted, by presigned URL or file:// path.

Needs no S3 client and no credentials. The signature of a grant fixes what it permits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trialfleet_ledger.records.grants import GetGrant, PutGrant
from trialfleet_ledger.store import files
from trialfleet_ledger.store.http import HttpResponse, NoAnswerError, exchange, without_query
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.retry_policy import Patience, is_transient

LARGEST_READ = 2 * 2**30
_PATIENCE = Patience(total_s=300)  # a store that is restarted must not cost a trial
_STORED = {200, 201, 204}


class GrantRefused(StoreError):
    """The store refused the signature: expired, altered, or its credentials were withdrawn. Trying again is
    of no use."""


def read(grant: GetGrant, *, limit: int = LARGEST_READ, patience: Patience = _PATIENCE) -> bytes:
    """The whole value. Raises `StoreError` if it is absent, larger than `limit` bytes or not reachable, and
    `GrantRefused` if the grant is not valid (any more)."""
    path = _path(grant.url)
    if path is not None:
        with files.speaking(str(path)):
            value = files.read(path.parent, (path.name,), limit=limit)
        if value is None:
            raise StoreError(f"{path}: not there")
        return value
    answer, _ = _settled(lambda left: exchange("GET", grant.url, limit=limit, timeout_s=left), patience)
    if answer.status != 200:
        raise _failure(grant.url, answer)
    if not answer.whole:
        raise StoreError(f"{without_query(grant.url)}: larger than the {limit} bytes that are read")
    return answer.body


def create(grant: PutGrant, data: bytes, *, patience: Patience = _PATIENCE) -> bool:
    """Create-if-absent, as `Store.create`. True: the key holds `data`. False: it holds something else.

    Raises `StoreError` if this cannot be determined, `GrantRefused` if the grant is not valid.
    """
    if not grant.conditional:
        raise ValueError("this grant overwrites: use overwrite()")
    path = _path(grant.url)
    if path is not None:
        with files.speaking(str(path)):
            return files.create(path.parent, (path.name,), data)
    answer, ambiguous = _settled(lambda left: _put(grant, data, left), patience)
    if answer.status in _STORED:
        return True
    if answer.status != 412:
        raise _failure(grant.url, answer)
    return _is_ours(grant, data, ambiguous=ambiguous, patience=patience)


def overwrite(grant: PutGrant, data: bytes, *, patience: Patience = _PATIENCE) -> None:
    """Write, replacing. Raises as `create`."""
    if grant.conditional:
        raise ValueError("this grant creates: use create()")
    path = _path(grant.url)
    if path is not None:
        with files.speaking(str(path)):
            files.replace(path.parent, (path.name,), data)
        return
    answer, _ = _settled(lambda left: _put(grant, data, left), patience)
    if answer.status not in _STORED:
        raise _failure(grant.url, answer)


def _is_ours(grant: PutGrant, data: bytes, *, ambiguous: bool, patience: Patience) -> bool:
    """Whether an earlier, unanswered try of this runner wrote the key that a conditional write found taken."""
    if grant.readback is not None:
        url = grant.readback.url
        answer, _ = _settled(lambda left: exchange("GET", url, limit=len(data), timeout_s=left), patience)
        if answer.status != 200:
            raise _failure(url, answer)
        return answer.whole and answer.body == data
    if ambiguous:
        raise StoreError(f"{without_query(grant.url)}: an earlier try of ours may have written what is there")
    return False


def _put(grant: PutGrant, data: bytes, left_s: float) -> HttpResponse:
    return exchange("PUT", grant.url, headers=grant.headers, body=data, timeout_s=left_s)


def _settled(send: Callable[[float], HttpResponse], patience: Patience) -> tuple[HttpResponse, bool]:
    """The first answer that is one, and whether a try before it may have taken effect unseen."""
    ambiguous = False
    trouble: object = "no time to try"
    for left in patience.tries():
        try:
            answer = send(min(left, 60))
        except NoAnswerError as error:
            cut_short = left < 1 and ambiguous  # by our own patience: the try before it tells more
            trouble, ambiguous = trouble if cut_short else error, True
            continue
        if not is_transient(answer.status, answer.code):
            return answer, ambiguous
        trouble, ambiguous = f"HTTP {answer.status} {answer.code}", True
    raise StoreError(f"no answer from the store within {patience.total_s:.0f} s; the last: {trouble}")


def _failure(url: str, answer: HttpResponse) -> StoreError:
    what = f"{without_query(url)}: HTTP {answer.status} {answer.code}".rstrip()
    if answer.status in (400, 401, 403):
        return GrantRefused(f"{what}: the grant has expired, was altered, or its credentials were withdrawn")
    return StoreError(what)


def _path(url: str) -> Path | None:
    """The path of a file:// URL; None for http and https."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if parts.scheme in ("http", "https"):
        return None
    raise StoreError(f"a grant is a file, http or https URL, not {parts.scheme or 'a path'}")
