"""A listing is no moment: another controller may write while its pages come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import records
from trialfleet_ledger import keys
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.fold import Intend, StoredAttempt, progress
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.lifecycle import TrialPhase
from trialfleet_ledger.records.verdicts import Loss, LossClass
from trialfleet_ledger.stage_reached import Stage
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import ListedKey

TRIAL = "a" * 26
LOST = Loss(loss=LossClass.EVICTED, message="evicted", agent_started=False)


@dataclass(frozen=True)
class Paged(DirectoryStore):
    """Its next listing shows the first page before, and the rest after what `ledger` does meanwhile."""

    first: list[StoredAttempt] = field(default_factory=list[StoredAttempt])

    def list(self, prefix: str) -> Iterator[ListedKey]:
        page = [*super().list(prefix)]
        yield from page
        while self.first:
            ended = another(self.root).attempts.lose(self.first.pop(), LOST)
            another(self.root).attempts.intend(TRIAL, Intend(2, ended.end_sha256, None), epoch=2)
            yield from (entry for entry in super().list(prefix) if "/2/" in entry.key)


def another(root: Path) -> Ledger:
    return Ledger(DirectoryStore(root), "campaign")


def test_an_attempt_that_another_follows_has_its_end(tmp_path: Path) -> None:
    store = Paged(tmp_path)
    begun = Ledger(store, "campaign").attempts.intend(TRIAL, Intend(1, None, None), epoch=1)
    assert begun is not None
    store.first.append(begun)
    chain = Ledger(store, "campaign").attempts.chain(TRIAL)
    assert [attempt.end is None for attempt in chain] == [False, True]
    assert progress(chain, RetrySpec()).phase is TrialPhase.RUNNING


def test_a_patch_that_arrives_after_the_next_intent_is_too_late(tmp_path: Path) -> None:
    """Its runner had given up the store, and said so; then the store carried out what it had been asked."""
    ledger = another(tmp_path)
    first = ledger.attempts.intend(TRIAL, Intend(1, None, None), epoch=1)
    assert first is not None
    loss = Loss(loss=LossClass.STORE, message="no answer", agent_started=True)
    end = records.end(loss, trial=TRIAL, nonce=first.intent.nonce)
    ledger.store.create(keys.attempt_file("campaign", TRIAL, 1, "end.json"), canonical_json(end))
    (lost,) = ledger.attempts.chain(TRIAL)
    assert ledger.attempts.intend(TRIAL, Intend(2, lost.end_sha256, None), epoch=1) is not None
    ledger.store.create(keys.attempt_file("campaign", TRIAL, 1, "patch.json"), b"{}")
    now = progress(ledger.attempts.chain(TRIAL), RetrySpec())
    assert now.phase is TrialPhase.RUNNING
    assert [one.stage for one in now.losses] == [Stage.MID_RUN]
