"""A store that is read through: a subclass remembers what was read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialfleet_ledger.store.protocol import ListedKey, Store


@dataclass(frozen=True)
class ObservedReads(ABC):
    """The reading half of `store`, for one campaign."""

    store: Store
    campaign: str

    @abstractmethod
    def remember(self, key: str, raw: bytes | None) -> None:
        """The store gave this value; None: it holds none."""

    @property
    def url(self) -> str:
        return self.store.url

    def now(self) -> float:
        return self.store.now()

    def get(self, key: str) -> bytes | None:
        raw = self.store.get(key)
        self.remember(key, raw)
        return raw

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        for key, raw in self.store.get_many(keys):
            self.remember(key, raw)
            yield key, raw

    def reread(self, key: str, over_s: float) -> Iterator[bytes | None]:
        for raw in self.store.reread(key, over_s):
            self.remember(key, raw)
            yield raw

    def list(self, prefix: str) -> Iterator[ListedKey]:
        return self.store.list(prefix)
