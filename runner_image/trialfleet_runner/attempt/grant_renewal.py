"""Fresh grants for a patch that the store refuses.

A controller with other credentials writes them to the store, and their address to a file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import GetGrant, Grants
from trialfleet_ledger.store import grants as store
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.rereading import WrongValue
from trialfleet_ledger.store.retry_policy import Patience

LOOK_S = 1.0
_READ = Patience(total_s=30)


@dataclass(frozen=True)
class Renewal:
    """`address`: the file with the address of the newest grants, empty or absent while there are none. `parse`
    raises `OperatorError` for what is no grants record of this version."""

    address: Path
    parse: Callable[[bytes], Grants]

    def of(self, refused: Grants, *, left_s: Callable[[], float], stop: threading.Event) -> Grants | None:
        """Wait for other grants of the same attempt. None: `stop` was set, or `left_s` reached zero."""
        tried = ""
        while left_s() > 0 and not stop.is_set():
            url = self._newest()
            if url not in ("", tried) and (fresh := self._read(url)) is not None and _same(fresh, refused):
                return fresh
            tried = url
            stop.wait(LOOK_S)
        return None

    def _newest(self) -> str:
        try:
            return self.address.read_text().strip()
        except OSError:
            return ""

    def _read(self, url: str) -> Grants | None:
        """None: these do not hold either."""
        try:
            return read_grants(url, self.parse, patience=_READ)
        except StoreError:
            return None


def read_grants(url: str, parse: Callable[[bytes], Grants], *, patience: Patience = store.PATIENCE) -> Grants:
    """The grants at `url`. What `parse` refuses with `OperatorError` is read again. Raises that error if the store
    holds it so, and `StoreError` if the store does not answer."""
    refusals: list[OperatorError] = []

    def make(raw: bytes | None) -> Grants:
        if raw is None:
            raise WrongValue("no grants are there")
        try:
            return parse(raw)
        except OperatorError as error:
            refusals.append(error)
            raise WrongValue(error.message) from error

    try:
        return store.read_settled(GetGrant(url=url), make, patience=patience)
    except WrongValue as error:
        raise (refusals[-1] if refusals else StoreError(str(error))) from error


def _same(fresh: Grants, refused: Grants) -> bool:
    def named(grants: Grants) -> tuple[str, int, str]:
        return grants.trial.id, grants.attempt, grants.intent_nonce

    return named(fresh) == named(refused) and fresh.patch != refused.patch
