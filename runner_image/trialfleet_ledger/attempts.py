"""Records of attempts and outcomes. Each step is a conditional create: one controller wins, others read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import ValidationError

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.fold import Intend, StoredAttempt
from trialfleet_ledger.parsed_records import parse_record, parse_with_bytes
from trialfleet_ledger.records.attempt import End, Intent, Patch, Quarantine, Start
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Loss
from trialfleet_ledger.store.rereading import WrongValue, is_listed, require_digest, settle_value
from trialfleet_ledger.stored_records import RecordStore


class Attempts:
    """Every step may be repeated after a crash at any point."""

    def __init__(self, records: RecordStore) -> None:
        self._records, self._store, self._campaign = records, records.store, records.campaign

    # --- reading ------------------------------------------------------------------------------------

    def outcome_ids(self) -> Iterator[str]:
        for entry in self._store.list(keys.outcomes(self._campaign)):
            yield entry.key.rpartition("/")[2].removesuffix(".json")

    def outcomes(self, trials: Sequence[str]) -> Iterator[Outcome]:
        for key, raw in self._store.get_many([keys.outcome(self._campaign, trial) for trial in trials]):
            outcome = parse_record(self._store, key, raw, Outcome, listed=True)
            if outcome is not None:
                yield outcome

    def outcome(self, trial: str) -> Outcome | None:
        return self._records.read(keys.outcome(self._campaign, trial), Outcome)

    def chain(self, trial: str) -> tuple[StoredAttempt, ...]:
        """All attempts of a trial, in order. One listing says which records there are to read. It is no moment: an
        attempt that another follows has its end, listed or not."""
        listed = (entry.key for entry in self._store.list(keys.attempts(self._campaign, trial)))
        there = {(key.attempt, key.name) for key in map(self._parsed, listed) if key is not None}
        chain: list[StoredAttempt] = []
        while (n := len(chain) + 1, "intent.json") in there:
            intent = self._records.read(self._key(trial, n, "intent.json"), Intent, listed=True)
            if intent is None:
                break
            if chain and not intent.score_only:
                chain[-1] = replace(chain[-1], patched=False)  # what has come since then is too late to be scored
            names = {name for number, name in there if number == n}
            followed = (n + 1, "intent.json") in there
            chain.append(self._listed(StoredAttempt(intent), names, ended=followed or "end.json" in names))
        return tuple(chain)

    def ended_before(self, at: float) -> set[tuple[str, int]]:
        """Trial and attempt of each end that the store has held since `at`, by its own clock. One listing."""
        listed = ((self._parsed(entry.key), entry.at) for entry in self._store.list(keys.attempts(self._campaign)))
        return {
            (key.trial, key.attempt)
            for key, written_at in listed
            if key is not None and key.name == "end.json" and written_at is not None and written_at <= at
        }

    def _parsed(self, key: str) -> keys.AttemptKey | None:
        return keys.parse_attempt(self._campaign, key)

    def _listed(self, attempt: StoredAttempt, names: set[str], *, ended: bool) -> StoredAttempt:
        if not ended:
            started = self._with_start(attempt) if "start.json" in names else attempt
            return replace(started, patched="patch.json" in names)
        found = self.refresh(attempt, ended=True)
        verdict = found.end is not None and found.end.scored is not None
        return replace(found, quarantined=verdict and self._quarantined(attempt.intent))

    def attempt(self, trial: str, n: int) -> StoredAttempt | None:
        intent = self._records.read(self._key(trial, n, "intent.json"), Intent)
        return None if intent is None else self.refresh(StoredAttempt(intent))

    def refresh(self, attempt: StoredAttempt, *, ended: bool = False) -> StoredAttempt:
        """The attempt as the store has it now. Reads the end first: what it says is final. `ended`: it is known
        that there is one. Whether a verdict's bundle matches, `verify` tells."""
        intent = attempt.intent
        key = self._key(intent.trial, intent.attempt, "end.json")
        end = parse_with_bytes(self._store, key, self._store.get(key), End, listed=ended)
        if end is None:
            return replace(self._with_start(attempt), patched=self._patched(intent))
        return self._ended(attempt, *end)

    def _ended(self, attempt: StoredAttempt, end: End, raw: bytes) -> StoredAttempt:
        """A patch counts only if the runner wrote the loss itself: that loss comes after the patch."""
        intent, bundle = attempt.intent, end.bundle is not None
        if (end.trial, end.attempt, end.nonce) == (intent.trial, intent.attempt, intent.nonce):
            self._records.journal.note(self._key(intent.trial, intent.attempt, "end.json"), raw)
        by_runner = end.loss is not None and end.by == "runner"
        return replace(
            attempt,
            end=end,
            end_sha256=sha256(raw),
            patched=by_runner and self._patched(intent),
            bundle=keys.below(intent.trial, intent.attempt, "bundle.tar.zst") if bundle else None,
        )

    def _with_start(self, attempt: StoredAttempt) -> StoredAttempt:
        key = self._key(attempt.intent.trial, attempt.intent.attempt, "start.json")
        found = parse_with_bytes(self._store, key, self._store.get(key), Start)
        start, raw = (None, None) if found is None else found
        return replace(attempt, start=start, start_sha256=None if raw is None else sha256(raw))

    def _patched(self, intent: Intent) -> bool:
        """A listing: the patch itself may be long."""
        return is_listed(self._store, self._key(intent.trial, intent.attempt, "patch.json"))

    def confirm_patch(self, attempt: StoredAttempt) -> StoredAttempt:
        """Look once more for a patch that was not listed: without it, the agent runs again."""
        intent = attempt.intent
        key = self._key(intent.trial, intent.attempt, "patch.json")
        return attempt if attempt.patched else replace(attempt, patched=self._store.get(key) is not None)

    def _quarantined(self, intent: Intent) -> bool:
        return is_listed(self._store, keys.quarantine(self._campaign, intent.trial, intent.attempt))

    # --- the steps ----------------------------------------------------------------------------------

    def intend(
        self, trial: str, step: Intend, *, epoch: int, cluster_id: str | None = None
    ) -> StoredAttempt | None:
        """Commit the intent. None: another controller committed one; read the chain again."""
        intent = Intent(
            plan=self._records.journal.plan_sha256(),
            trial=trial,
            attempt=step.n,
            nonce=self._records.nonce(),
            epoch=epoch,
            cluster_id=cluster_id,
            at=self._records.clock(),
            previous_end=step.previous_end,
            score_only=step.score_from is not None,
        )
        created = self._records.create("intent", self._key(trial, step.n, "intent.json"), intent)
        return StoredAttempt(intent) if created else None

    def grant(self, grants: Grants) -> str:
        """Store the runner's grants and return their key. The grants of an earlier launch may have expired and
        stay; the new ones get another key."""
        key = keys.grants(self._campaign, grants.trial.id, grants.attempt)
        while not self._records.create("grants", key, grants):
            key = keys.grants(self._campaign, grants.trial.id, grants.attempt, self._records.nonce()[:8])
        return key

    def store_patch(self, attempt: StoredAttempt, raw: bytes) -> StoredAttempt:
        """In place of its runner, which was refused. What is not this attempt's patch is left."""
        intent, key = attempt.intent, self._key(attempt.intent.trial, attempt.intent.attempt, "patch.json")
        try:
            patch = Patch.model_validate_json(raw)
        except ValidationError:
            return attempt
        if (patch.trial, patch.attempt, patch.nonce) != (intent.trial, intent.attempt, intent.nonce):
            return attempt
        return replace(attempt, patched=self._store.create(key, canonical_json(patch)))

    def lose(self, attempt: StoredAttempt, loss: Loss) -> StoredAttempt:
        """Offer the controller's loss as the attempt's end. An end that is there already stands and is read."""
        intent = attempt.intent
        end = End(
            plan=intent.plan,
            trial=intent.trial,
            attempt=intent.attempt,
            nonce=intent.nonce,
            at=self._records.clock(),
            by="controller",
            start=attempt.start_sha256,
            loss=loss,
        )
        return self._offer(attempt, end)

    def adopt(self, attempt: StoredAttempt, end: End) -> StoredAttempt:
        """Offer the end that its runner could not write. Raises `ValueError` when it is not this attempt's."""
        intent = attempt.intent
        if (end.trial, end.attempt, end.nonce) != (intent.trial, intent.attempt, intent.nonce):
            raise ValueError(f"this end belongs to another intent than {intent.trial}-{intent.attempt}")
        return self._offer(attempt, end)

    def _offer(self, attempt: StoredAttempt, end: End) -> StoredAttempt:
        if self._records.create("end", self._key(end.trial, end.attempt, "end.json"), end):
            return self._ended(attempt, end, canonical_json(end))
        return self.refresh(attempt, ended=True)

    def verify(self, attempt: StoredAttempt) -> StoredAttempt:
        """Compare a verdict's bundle with what its end says; quarantine it when the store holds another or none.
        Raises `StoreError` when the store's answers do not agree: nothing is concluded from them."""
        end = attempt.end
        if end is None or end.bundle is None or end.scored is None or attempt.quarantined:
            return attempt
        key = self._key(end.trial, end.attempt, "bundle.tar.zst")
        try:
            settle_value(self._store, key, self._store.get(key), partial(require_digest, end.bundle))
        except WrongValue as error:
            found = None if error.value is None else sha256(error.value)
            reason = "the bundle is missing" if found is None else "the bundle is not what its end names"
            return self._quarantine(attempt, end.bundle, found, reason)
        return attempt

    def distrust(self, attempt: StoredAttempt, reason: str) -> StoredAttempt:
        """Quarantine a verdict, though its bundle is what its end says."""
        end = attempt.end
        if end is None or end.bundle is None or end.scored is None or attempt.quarantined:
            return attempt
        return self._quarantine(attempt, end.bundle, end.bundle, reason)

    def _quarantine(self, attempt: StoredAttempt, expected: str, found: str | None, reason: str) -> StoredAttempt:
        trial, n = attempt.intent.trial, attempt.intent.attempt
        record = Quarantine(
            plan=attempt.intent.plan,
            trial=trial,
            attempt=n,
            at=self._records.clock(),
            expected=expected,
            found=found,
            reason=reason,
        )
        self._records.create("quarantine", keys.quarantine(self._campaign, trial, n), record)
        return replace(attempt, quarantined=True)

    def conclude(self, outcome: Outcome) -> Outcome:
        """Keep the fold; what another controller kept first stands."""
        key = keys.outcome(self._campaign, outcome.trial.id)
        if self._records.create("outcome", key, outcome):
            return outcome
        kept = parse_with_bytes(self._store, key, self._store.get(key), Outcome, listed=True)
        if kept is None:
            raise OperatorError("an outcome vanished: somebody deletes from the ledger", where=key)
        if kept[0].trial.id == outcome.trial.id:
            self._records.journal.note(key, kept[1])
        return kept[0]

    def _key(self, trial: str, n: int, name: keys.AttemptFile) -> str:
        return keys.attempt_file(self._campaign, trial, n, name)
