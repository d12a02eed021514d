"""Which trials have a text among the steps of their agents. Bundles are read for as long as one page may take; the
next request continues there, and a page says how far the search is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from trialfleet_analysis.tables.columns import texts
from trialfleet_analysis.tables.table import Table
from trialfleet_analysis.viewer.bundle_parts import steps_of
from trialfleet_ledger.bundle import BundleError, read_member
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, settle_value
from trialfleet_ledger.trajectory import Step

AT_ONCE = 8  # bundles that are asked for together, and are in memory together
PATH = "trajectory.jsonl"
MOST_SEARCHES = 8  # that are remembered


@dataclass(frozen=True)
class SearchProgress:
    """`turns`: of the first step that has the text, by trial. `searched`: of `total` trials. `unread`: of those
    searched, without the text and without a whole trajectory."""

    turns: Mapping[str, int]
    searched: int
    total: int
    unread: int

    @property
    def complete(self) -> bool:
        return self.searched == self.total


@dataclass
class TextSearch:
    """Of one text, in any case. The bundle of an outcome never changes: none is read twice."""

    text: str
    _turns: dict[str, int] = field(default_factory=dict[str, int])
    _searched: set[str] = field(default_factory=set[str])
    _unread: set[str] = field(default_factory=set[str])
    _lock: Lock = field(default_factory=Lock)

    def among(self, store: Store, campaign: str, trials: Table, seconds: float | None) -> SearchProgress:
        """Of these rows, as far as it comes within so many seconds; None: all. Raises `StoreError`."""
        ends = None if seconds is None else time.monotonic() + seconds
        columns = (texts(trials, name) for name in ("trial", "bundle", "bundle_sha256"))
        rows = {
            trial or "": (f"{campaign}/{key}", digest or "") for trial, key, digest in zip(*columns, strict=True)
        }
        with self._lock:
            left = [trial for trial in rows if trial not in self._searched]
            for first in range(0, len(left), AT_ONCE):
                self._read(store, {trial: rows[trial] for trial in left[first : first + AT_ONCE]})
                if ends is not None and time.monotonic() >= ends:
                    break
            return self._progress(rows)

    def _read(self, store: Store, wanted: Mapping[str, tuple[str, str]]) -> None:
        """`wanted`: key and digest of each trial's bundle; without a digest, there is none."""
        found = dict(store.get_many([key for key, digest in wanted.values() if digest]))
        for trial, (key, digest) in wanted.items():
            steps, unread = _steps(store, key, found.get(key), digest)
            turn = next((step.turn for step in steps if self._is_in(step)), None)
            if turn is not None:
                self._turns[trial] = turn
            elif unread:
                self._unread.add(trial)
            self._searched.add(trial)

    def _is_in(self, step: Step) -> bool:
        wanted = self.text.lower()
        return any(wanted in words.lower() for words in (step.detail, step.path, step.tool) if words)

    def _progress(self, rows: Iterable[str]) -> SearchProgress:
        trials = set(rows)
        turns = {trial: turn for trial, turn in self._turns.items() if trial in trials}
        return SearchProgress(turns, len(trials & self._searched), len(trials), unread=len(trials & self._unread))


@dataclass
class TextSearches:
    """The last `MOST_SEARCHES` texts that were searched for."""

    _by_text: dict[str, TextSearch] = field(default_factory=dict[str, TextSearch])
    _lock: Lock = field(default_factory=Lock)

    def of(self, text: str) -> TextSearch:
        with self._lock:
            found = self._by_text.pop(text, None) or TextSearch(text)
            self._by_text[text] = found
            for oldest in list(self._by_text)[:-MOST_SEARCHES]:
                del self._by_text[oldest]
            return found


def _steps(store: Store, key: str, raw: bytes | None, digest: str) -> tuple[tuple[Step, ...], bool]:
    """The steps, and whether some or all cannot be read."""
    if not digest:
        return (), True
    try:
        found = settle_value(store, key, raw, lambda data: read_member(data, digest, PATH), over_s=WHILE_READING_S)
    except BundleError:
        found = None
    if found is None:
        return (), True
    steps, unread = steps_of(found.decode(errors="replace"))
    return steps, unread > 0
