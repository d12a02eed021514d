"""Records of one campaign in a store: creating, reading and numbering them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from trialfleet_controller import keys
from trialfleet_controller.fault import checkpoint
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import Record
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store

R = TypeVar("R", bound=Record)


class Records:
    """Holds no state, so threads may share it. Raises `StoreError` when the store cannot answer."""

    def __init__(
        self,
        store: Store,
        campaign: str,
        *,
        clock: Callable[[], float] = time.time,
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.store = store
        self.campaign = campaign
        self._clock = clock
        self._nonce = nonce

    def _create(self, step: str, key: str, record: Record) -> bool:
        checkpoint(f"{step}.before")
        created = self.store.create(key, canonical_json(record))
        checkpoint(f"{step}.after")
        return created

    def _read(self, key: str, model: type[R]) -> R | None:
        raw = self.store.get(key)
        return None if raw is None else parse(key, raw, model)

    def _all(self, kind: keys.Kind, model: type[R]) -> tuple[R, ...]:
        found = self._numbers(kind)
        values = dict(self.store.get_many(found))
        return tuple(parse(key, raw, model) for key in found if (raw := values.get(key)) is not None)

    def _numbers(self, kind: keys.Kind) -> list[str]:
        """Keys of the numbered records, in the order of their numbers."""
        found = (entry.key for entry in self.store.list(keys.folder(self.campaign, kind)))
        return sorted((key for key in found if keys.number_of(key)), key=keys.number_of)

    def _append(self, kind: keys.Kind, step: str, record: Callable[[int], R]) -> R:
        number = max((keys.number_of(key) for key in self._numbers(kind)), default=0) + 1
        while not self._create(step, keys.numbered(self.campaign, kind, number), made := record(number)):
            number += 1
        return made


def parse(key: str, raw: bytes, model: type[R]) -> R:
    """Raises `OperatorError`: a record that cannot be read was not written by this program's version."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise OperatorError(
            f"is not a {model.__name__} record: {first['msg']} at {'.'.join(map(str, first['loc']))}",
            where=key,
            hint="the ledger was edited, or another version of trialfleet wrote it",
        ) from None
