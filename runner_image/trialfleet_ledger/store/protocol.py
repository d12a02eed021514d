"""What a store promises. One contract suite holds every implementation to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trialfleet_ledger.errors import OperatorError

if TYPE_CHECKING:  # the records' models take a third of a second, and reading a listing needs none
    from pathlib import Path

    from trialfleet_ledger.records.grants import GetGrant, PutGrant


class ListedKey(NamedTuple):
    """One listed key; `size` in bytes. `tag` changes whenever the value is written again: an equal tag means an
    equal value without reading it. Tags of different stores are not comparable. `at`: when it was written, by the
    store's clock, seconds since the epoch; None: not known."""

    key: str
    size: int
    tag: str = ""
    at: float | None = None


class CredentialsRefused(OperatorError):
    """The store no longer accepts these credentials, or does not permit the request."""


class Store(Protocol):
    """Keys are relative to the store's root: `<campaign>/outcomes/<trial>.json`, `objects/<sha256>`.

    Reads see every write that was acknowledged before. A write is whole or absent, also after `kill -9`.
    Raises `StoreError` when the store cannot answer, `OperatorError` when credentials or paths are wrong.
    """

    @property
    def url(self) -> str: ...

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that holds the values; None: the store is on a server."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """Create-if-absent. True: the key now holds `data` (written by this or an identical earlier call, so
        records that are contended carry a nonce). False: it holds something else. Ambiguous answers are
        retried and read back."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write, replacing: for `.beat`, `live.log.zst` and tables only."""
        ...

    def get(self, key: str) -> bytes | None:
        """The whole value; None when absent."""
        ...

    def reread(self, key: str, over_s: float) -> Iterator[bytes | None]:
        """The value as other connections read it, with pauses, within `over_s`: three times, or once where reading
        again cannot tell more. For `rereading.settle_value`."""
        ...

    def list(self, prefix: str) -> Iterator[ListedKey]:
        """Every key that starts with `prefix`, in lexicographic order; temporaries never appear."""
        ...

    def delete(self, key: str) -> None:
        """Remove; absent is fine. Only `gc` calls it."""
        ...

    def now(self) -> float:
        """The store's time, seconds since the epoch: the clock of every `ListedKey.at`, as far as it is known."""
        ...

    def sweep(self, *, older_than_s: float = 3600) -> int:
        """Removes what writers that died left unfinished; how many. Only `gc` calls it."""
        ...

    def grant_put(self, key: str, *, conditional: bool = True, expires_s: float) -> PutGrant:
        """What a runner needs to write this one key, for so long; conditional: to create it."""
        ...

    def grant_get(self, key: str, *, expires_s: float) -> GetGrant:
        """What a runner needs to read this one key."""
        ...

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Many values, in any order; faster than one by one where latency counts."""
        ...


START_STORE = (
    "start the store or correct its address (an S3 server's: $AWS_ENDPOINT_URL_S3), then repeat the command: what "
    "is stored stays"
)


class StoreError(Exception):
    """The store could not answer: never taken for absence or success. `hint`: the way out, where the answers say
    one."""

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)
