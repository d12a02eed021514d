"""The records of attempts and outcomes: each step a conditional create, with one winner whom the others obey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialfleet_controller import keys
from trialfleet_controller.fold import Attempt, Intend
from trialfleet_controller.records import Records, parse
from trialfleet_runner.campaign import Quarantine
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import End, Grants, Intent, Loss, Outcome, Start
from trialfleet_runner.errors import OperatorError


class Attempts(Records):
    """Every step may be repeated after a crash at any point."""

    # --- reading ------------------------------------------------------------------------------------

    def outcome_ids(self) -> Iterator[str]:
        for entry in self.store.list(keys.outcomes(self.campaign)):
            yield entry.key.rpartition("/")[2].removesuffix(".json")

    def outcomes(self, trials: Sequence[str]) -> Iterator[Outcome]:
        for key, raw in self.store.get_many([keys.outcome(self.campaign, trial) for trial in trials]):
            if raw is not None:
                yield parse(key, raw, Outcome)

    def outcome(self, trial: str) -> Outcome | None:
        return self._read(keys.outcome(self.campaign, trial), Outcome)

    def chain(self, trial: str) -> tuple[Attempt, ...]:
        """All attempts of a trial, in order. One listing says which records there are to read. It is no moment: an
        attempt that another follows has its end, listed or not."""
        listed = (entry.key for entry in self.store.list(keys.attempts(self.campaign, trial)))
        there = {(key.attempt, key.name) for key in map(self._parsed, listed) if key is not None}
        chain: list[Attempt] = []
        while (n := len(chain) + 1, "intent.json") in there:
            intent = self._read(self._key(trial, n, "intent.json"), Intent)
            if intent is None:
                break
            if chain and not intent.score_only:
                chain[-1] = replace(chain[-1], patched=False)  # what has come since then is too late to be scored
            names = {name for number, name in there if number == n}
            followed = (n + 1, "intent.json") in there
            chain.append(self._listed(Attempt(intent), names, ended=followed or "end.json" in names))
        return tuple(chain)

    def _parsed(self, key: str) -> keys.AttemptKey | None:
        return keys.parse_attempt(self.campaign, key)

    def _listed(self, attempt: Attempt, names: set[str], *, ended: bool) -> Attempt:
        if not ended:
            start = self._start(attempt) if "start.json" in names else None
            return replace(attempt, start=start, patched="patch.json" in names)
        found = self.refresh(attempt)
        verdict = found.end is not None and found.end.scored is not None
        return replace(found, quarantined=verdict and self._quarantined(attempt.intent))

    def attempt(self, trial: str, n: int) -> Attempt | None:
        intent = self._read(self._key(trial, n, "intent.json"), Intent)
        return None if intent is None else self.refresh(Attempt(intent))

    def refresh(self, attempt: Attempt) -> Attempt:
        """The attempt as the store has it now. Reads the end first: what it says is final. Whether a verdict's
        bundle matches, `verify` tells."""
        intent = attempt.intent
        raw = self.store.get(self._key(intent.trial, intent.attempt, "end.json"))
        if raw is None:
            return replace(attempt, start=self._start(attempt), patched=self._patched(intent))
        end = parse(self._key(intent.trial, intent.attempt, "end.json"), raw, End)
        return self._ended(attempt, end, raw)

    def _ended(self, attempt: Attempt, end: End, raw: bytes) -> Attempt:
        """A patch that is there counts beside the runner's own loss alone, which comes after it."""
        intent, bundle = attempt.intent, end.bundle is not None
        by_runner = end.loss is not None and end.by == "runner"
        return replace(
            attempt,
            end=end,
            end_sha256=sha256(raw),
            patched=by_runner and self._patched(intent),
            bundle=keys.below(intent.trial, intent.attempt, "bundle.tar.zst") if bundle else None,
        )

    def _start(self, attempt: Attempt) -> Start | None:
        return self._read(self._key(attempt.intent.trial, attempt.intent.attempt, "start.json"), Start)

    def _patched(self, intent: Intent) -> bool:
        """A listing: the patch itself may be long."""
        key = self._key(intent.trial, intent.attempt, "patch.json")
        return any(entry.key == key for entry in self.store.list(key))

    def _quarantined(self, intent: Intent) -> bool:
        return self.store.get(keys.quarantine(self.campaign, intent.trial, intent.attempt)) is not None

    # --- the steps ----------------------------------------------------------------------------------

    def intend(self, trial: str, step: Intend, *, epoch: int) -> Attempt | None:
        """Commit the intent. None: another controller committed one; read the chain again."""
        intent = Intent(
            trial=trial,
            attempt=step.n,
            nonce=self._nonce(),
            epoch=epoch,
            at=self._clock(),
            previous_end=step.previous_end,
            score_only=step.score_from is not None,
        )
        return Attempt(intent) if self._create("intent", self._key(trial, step.n, "intent.json"), intent) else None

    def grant(self, grants: Grants) -> str:
        """Keep what the runner may do; its key. At a relaunch the first launch's are there and may have expired:
        the new ones lie beside them."""
        key = keys.grants(self.campaign, grants.trial.id, grants.attempt)
        while not self._create("grants", key, grants):
            key = keys.grants(self.campaign, grants.trial.id, grants.attempt, self._nonce()[:8])
        return key

    def lose(self, attempt: Attempt, loss: Loss) -> Attempt:
        """Offer the controller's loss as the attempt's end. An end that is there already stands and is read."""
        intent = attempt.intent
        end = End(
            trial=intent.trial,
            attempt=intent.attempt,
            nonce=intent.nonce,
            at=self._clock(),
            by="controller",
            loss=loss,
        )
        return self._offer(attempt, end)

    def adopt(self, attempt: Attempt, end: End) -> Attempt:
        """Offer the end that its runner could not write. Raises `ValueError` when it is not this attempt's."""
        intent = attempt.intent
        if (end.trial, end.attempt, end.nonce) != (intent.trial, intent.attempt, intent.nonce):
            raise ValueError(f"this end belongs to another intent than {intent.trial}-{intent.attempt}")
        return self._offer(attempt, end)

    def _offer(self, attempt: Attempt, end: End) -> Attempt:
        if self._create("end", self._key(end.trial, end.attempt, "end.json"), end):
            return self._ended(attempt, end, canonical_json(end))
        return self.refresh(attempt)

    def verify(self, attempt: Attempt) -> Attempt:
        """Compare a verdict's bundle with what its end says; quarantine it when they differ."""
        end = attempt.end
        if end is None or end.bundle is None or end.scored is None or attempt.quarantined:
            return attempt
        raw = self.store.get(self._key(end.trial, end.attempt, "bundle.tar.zst"))
        found = None if raw is None else sha256(raw)
        if found == end.bundle:
            return attempt
        reason = "the bundle is missing" if found is None else "the bundle is not what its end names"
        return self._quarantine(attempt, end.bundle, found, reason)

    def distrust(self, attempt: Attempt, reason: str) -> Attempt:
        """Quarantine a verdict, though its bundle is what its end says."""
        end = attempt.end
        if end is None or end.bundle is None or end.scored is None or attempt.quarantined:
            return attempt
        return self._quarantine(attempt, end.bundle, end.bundle, reason)

    def _quarantine(self, attempt: Attempt, expected: str, found: str | None, reason: str) -> Attempt:
        trial, n = attempt.intent.trial, attempt.intent.attempt
        record = Quarantine(
            trial=trial, attempt=n, at=self._clock(), expected=expected, found=found, reason=reason
        )
        self._create("quarantine", keys.quarantine(self.campaign, trial, n), record)
        return replace(attempt, quarantined=True)

    def conclude(self, outcome: Outcome) -> Outcome:
        """Keep the fold; what another controller kept first stands."""
        key = keys.outcome(self.campaign, outcome.trial.id)
        if self._create("outcome", key, outcome):
            return outcome
        kept = self._read(key, Outcome)
        if kept is None:
            raise OperatorError("an outcome vanished: somebody deletes from the ledger", where=key)
        return kept

    def _key(self, trial: str, n: int, name: keys.AttemptFile) -> str:
        return keys.attempt_file(self.campaign, trial, n, name)
