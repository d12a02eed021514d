"""What tables were made from, as digests: so that a cache of them is known to be fresh, or is not believed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from trialfleet_runner.contract import Frozen, Sha256
from trialfleet_runner.store.protocol import Entry, Store

_FEW = re.compile(r"campaign\.json|(amendments|halts|quarantine)/.*")
_OUTCOMES = "outcomes/"


class Sources(Frozen):
    """Digests of the records that tables rest on. `few`: of the contents of plan, amendments, halts and
    quarantine; `outcomes`: of the contents of all outcomes; `listed`: of their listing with its tags, which stands
    for their contents in the one store that it was made in. None: the store gives no tags."""

    few: Sha256
    outcomes: Sha256
    listed: Sha256 | None


@dataclass(frozen=True)
class Witness:
    """A campaign's store, read through: remembers the digests of what it gave. It only reads."""

    store: Store
    campaign: str
    few: dict[str, str] = field(default_factory=dict[str, str])
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    listed: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    @property
    def url(self) -> str:
        return self.store.url

    def get(self, key: str) -> bytes | None:
        raw = self.store.get(key)
        self._saw(key, raw)
        return raw

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        for key, raw in self.store.get_many(keys):
            self._saw(key, raw)
            yield key, raw

    def list(self, prefix: str) -> Iterator[Entry]:
        for entry in self.store.list(prefix):
            name = entry.key.removeprefix(f"{self.campaign}/")
            if name.startswith(_OUTCOMES):
                self.listed[name] = f"{entry.size} {entry.tag}" if entry.tag else None
            yield entry

    def sources(self) -> Sources:
        """Of everything that was read and listed until now."""
        return Sources(
            few=_digest(self.few.items()),
            outcomes=_digest(self.outcomes.items()),
            listed=self.listing(),
        )

    def listing(self) -> str | None:
        """The listing's digest alone."""
        tags = [(name, tag) for name, tag in self.listed.items() if tag is not None]
        return _digest(tags) if len(tags) == len(self.listed) else None

    def _saw(self, key: str, raw: bytes | None) -> None:
        name = key.removeprefix(f"{self.campaign}/")
        seen = self.outcomes if name.startswith(_OUTCOMES) else self.few if _FEW.fullmatch(name) else None
        if seen is not None and raw is not None:
            seen[name] = hashlib.sha256(raw).hexdigest()


def _digest(facts: Iterable[tuple[str, str]]) -> str:
    """Keys hold no control characters, so the lines cannot be read in two ways."""
    return hashlib.sha256("".join(f"{name}\n{fact}\n" for name, fact in sorted(facts)).encode()).hexdigest()
