"""A value that is not what it must be is read again before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from trialfleet_ledger.store.protocol import Store, StoreError

T = TypeVar("T")
Make = Callable[[bytes | None], T]
BEFORE_A_RECORD_S = 60.0  # over which a value is read again before a record is written, or a controller ends
WHILE_READING_S = 5.0  # the same for commands that only read
SHARES = (0.03, 0.27, 0.7)  # of that time, before each of the three reads
_SHOWN = 48  # bytes of a wrong value that a message quotes


class WrongValue(Exception):
    """A value is not what it must be. If `settle_value` raises it, the store holds `value` (None: nothing): two
    whole reads and the listing agree."""

    value: bytes | None = None


def settle_value(
    store: Store, key: str, first: bytes | None, make: Make[T], *, over_s: float = BEFORE_A_RECORD_S
) -> T:
    """What `make` makes of `first`, which was read from `key` (None: absent). If `make` refuses it with
    `WrongValue`, of the value that other connections read within `over_s`.

    Raises `WrongValue` if the store holds a wrong value, and `StoreError` if its answers do not agree.
    """
    try:
        return make(first)
    except WrongValue:
        again = store.reread(key, over_s)
        return settle_again(
            f"{store.url}/{key}",
            first,
            again,
            make,
            listed_bytes=lambda: _listed_bytes(store, key),
        )


def settle_again(
    where: str,
    first: bytes | None,
    again: Iterator[bytes | None],
    make: Make[T],
    *,
    listed_bytes: Callable[[], int | None] | None = None,
) -> T:
    """As `settle_value`, of a wrong value and the reads that follow it. `listed_bytes`: the value's size by the
    listing, None if it is not listed."""
    values = [first]
    for value in again:
        try:
            return make(value)
        except WrongValue:
            values.append(value)
    agreed = max(values, key=values.count)
    if values.count(agreed) < 2:
        raise StoreError(f"{where}: {len(values)} reads gave {len(values)} different values")
    if listed_bytes is not None and listed_bytes() != (None if agreed is None else len(agreed)):
        raise StoreError(f"{where}: the store lists another value than it returns: {describe_value(agreed)}")
    try:
        return make(agreed)
    except WrongValue as error:
        error.value = agreed
        error.args = (f"{error}; read {values.count(agreed)} times: {describe_value(agreed)}",)
        raise


def require_digest(expected: str, data: bytes | None) -> None:
    """Raises `WrongValue` if the bytes have another SHA-256, or if there are none."""
    import hashlib  # the command line imports this module, and hashes nothing

    if data is None or hashlib.sha256(data).hexdigest() != expected:
        raise WrongValue(f"it is not the value with the SHA-256 {expected}")


def is_listed(store: Store, key: str) -> bool:
    """Whether the listing has the key: a second answer where a read says that it is absent."""
    return _listed_bytes(store, key) is not None


def _listed_bytes(store: Store, key: str) -> int | None:
    return next((entry.size for entry in store.list(key) if entry.key == key), None)


def describe_value(value: bytes | None) -> str:
    """What was read, for a message.

    >>> describe_value(None), describe_value(b"<html>")
    ('nothing', "6 bytes, b'<html>'")
    """
    if value is None:
        return "nothing"
    if len(value) <= _SHOWN:
        return f"{len(value)} bytes, {value!r}"
    return f"{len(value)} bytes that begin with {value[:_SHOWN]!r}"
