"""Everything recorded about one trial, read from its campaign's store. What cannot be read is named, and never
ends the reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from trialfleet_analysis.ledger import parsed
from trialfleet_analysis.viewer.bundle_parts import BundleParts, parts_of
from trialfleet_ledger import keys
from trialfleet_ledger.bundle import ABSENT, Bundle, BundleError, unpack
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.fold import StoredAttempt
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.live_output import inflated, last_lines
from trialfleet_ledger.objects import TEXT_BYTES, ObjectError, decompress, object_key
from trialfleet_ledger.records.attempt import Quarantine, Start
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.store.protocol import Store, StoreError
from trialfleet_ledger.store.rereading import WHILE_READING_S, settle_value
from trialfleet_ledger.trial_order import Planned

T = TypeVar("T")
NO_BUNDLE = "no bundle: this attempt was lost before one was written"
OUTPUT_LINES = 400


@dataclass(frozen=True)
class TrialRecord:
    """`shown`: the attempt whose bundle `parts` are of; 0: there is no attempt. `parts` None: `bundle_fault` says
    why, or the attempt runs. `quarantine`: why the ledger refuses the shown attempt's bundle. `task_text`: the
    task's part of the prompt; None: not in the store. `output`: what the shown attempt has printed; None: it does
    not run. `faults`: records that cannot be read."""

    id: str
    trial: Trial | None
    outcome: Outcome | None
    chain: tuple[StoredAttempt, ...]
    shown: int
    parts: BundleParts | None
    bundle_fault: str | None
    quarantine: str | None
    task_text: str | None
    output: str | None
    faults: tuple[str, ...]


@dataclass(frozen=True)
class TrialReader:
    """Reads trials of one campaign. `prompts`: digest of each task's text, by the task's id."""

    store: Store
    campaign: str
    prompts: dict[str, str]
    planned: Callable[[], Mapping[str, Planned]]

    def read(self, trial: str, attempt: int | None = None) -> TrialRecord | None:
        """`attempt` None: the one that the outcome rests on, else the last with a bundle. None: the store has
        nothing of this trial, or of this attempt."""
        faults: list[str] = []
        attempts = Ledger(self.store, self.campaign).attempts
        chain = tuple(self._with_start(one, faults) for one in _tried(lambda: attempts.chain(trial), faults) or ())
        outcome = _tried(lambda: attempts.outcome(trial), faults)
        if not chain and outcome is None and not faults:
            return None
        shown = attempt or _shown(chain, outcome)
        if attempt is not None and attempt > len(chain):
            return None
        bundle, fault = self._bundle(trial, chain, shown)
        known = outcome.trial if outcome else bundle.manifest.trial if bundle else self._planned(trial)
        return TrialRecord(
            id=trial,
            trial=known,
            outcome=outcome,
            chain=chain,
            shown=shown,
            parts=parts_of(bundle) if bundle else None,
            bundle_fault=fault,
            quarantine=_tried(lambda: self._quarantine(trial, shown), faults),
            task_text=self._task_text(known.task) if known else None,
            output=_tried(lambda: self._output(trial, shown), faults) if _runs(chain, shown) else None,
            faults=tuple(faults),
        )

    def file(self, trial: str, attempt: int, path: str) -> bytes | None:
        """One file of a bundle; None: there is none, or the bundle cannot be opened."""
        chain = _tried(lambda: Ledger(self.store, self.campaign).attempts.chain(trial), []) or ()
        bundle, _ = self._bundle(trial, chain, attempt)
        return bundle.files.get(path) if bundle else None

    def _with_start(self, one: StoredAttempt, faults: list[str]) -> StoredAttempt:
        """A chain leaves out who ran an attempt that has ended."""
        key = keys.attempt_file(self.campaign, one.intent.trial, one.intent.attempt, "start.json")
        raw = _tried(lambda: self.store.get(key), faults) if one.start is None else None
        if raw is None:
            return one
        return replace(one, start=_tried(lambda: parsed(self.store, Start, key, raw), faults))

    def _bundle(self, trial: str, chain: tuple[StoredAttempt, ...], n: int) -> tuple[Bundle | None, str | None]:
        if _runs(chain, n):
            return None, None
        end = chain[n - 1].end if 0 < n <= len(chain) else None
        if end is None or end.bundle is None:
            return None, NO_BUNDLE
        key, digest = keys.attempt_file(self.campaign, trial, n, "bundle.tar.zst"), end.bundle
        try:
            raw = self.store.get(key)
            bundle = settle_value(self.store, key, raw, lambda data: unpack(data, digest), over_s=WHILE_READING_S)
        except BundleError as error:
            if str(error).startswith(ABSENT):
                return None, "the bundle is missing from the store"
            return None, f"the bundle is damaged, and is not counted: {error}"
        except (StoreError, OperatorError) as error:
            return None, f"the bundle cannot be read: {error}"
        if (bundle.manifest.trial.id, bundle.manifest.attempt) != (trial, n):
            return None, f"the bundle belongs to attempt {bundle.manifest.attempt} of {bundle.manifest.trial.id}"
        return bundle, None

    def _output(self, trial: str, n: int) -> str:
        raw = self.store.get(keys.attempt_file(self.campaign, trial, n, "live.log.zst"))
        return last_lines(inflated(raw), OUTPUT_LINES) if raw else ""

    def _planned(self, trial: str) -> Trial | None:
        try:
            found = self.planned().get(trial)
        except (OperatorError, StoreError):
            return None
        return found.record() if found else None

    def _quarantine(self, trial: str, n: int) -> str | None:
        key = keys.quarantine(self.campaign, trial, n)
        raw = self.store.get(key) if n else None
        record = parsed(self.store, Quarantine, key, raw)
        return None if record is None else record.reason

    def _task_text(self, task: str) -> str | None:
        digest = self.prompts.get(task)
        if not digest:
            return None
        key = object_key(digest)
        try:
            raw = self.store.get(key)
            if raw is None:
                return None
            expand = partial(decompress, digest, most=TEXT_BYTES)
            text = settle_value(self.store, key, raw, expand, over_s=WHILE_READING_S)
            return text.decode(errors="replace")
        except (ObjectError, StoreError, OperatorError):
            return None


def _runs(chain: tuple[StoredAttempt, ...], n: int) -> bool:
    return 0 < n <= len(chain) and chain[n - 1].end is None


def _shown(chain: tuple[StoredAttempt, ...], outcome: Outcome | None) -> int:
    if outcome is None and _runs(chain, len(chain)):
        return len(chain)
    if outcome is not None and outcome.scored is not None and outcome.attempts <= len(chain):
        return outcome.attempts
    with_bundle = [n for n, one in enumerate(chain, start=1) if one.end is not None and one.end.bundle is not None]
    return with_bundle[-1] if with_bundle else len(chain)


def _tried(read: Callable[[], T], faults: list[str]) -> T | None:
    """What `read` gives; None, and the reason among `faults`, where a record is of another version or the store
    does not answer."""
    try:
        return read()
    except (OperatorError, StoreError) as error:
        faults.append(str(error))
        return None
