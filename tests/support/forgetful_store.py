"""A store one of whose answers is wrong: the first read of each listed key that a test names finds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trialfleet_ledger.store.directory import DirectoryStore


@dataclass(frozen=True)
class ForgetfulStore(DirectoryStore):
    """`ending`: of the keys that are forgotten."""

    ending: str = ""
    forgotten: set[str] = field(default_factory=set[str], compare=False)

    def get(self, key: str) -> bytes | None:
        if key.endswith(self.ending) and key not in self.forgotten:
            self.forgotten.add(key)
            return None
        return super().get(key)

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        yield from ((key, self.get(key)) for key in keys)
