"""A listing is no moment: another controller may write while its pages come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_controller import keys
from trialfleet_controller.fold import Attempt, Intend, progress
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.lifecycle import Budgets, Phase
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import End, Loss, LossClass
from trialfleet_runner.stages import Stage
from trialfleet_runner.store.directory import DirectoryStore
from trialfleet_runner.store.protocol import Entry

TRIAL = "a" * 26
LOST = Loss(loss=LossClass.EVICTED, message="evicted", agent_started=False)


@dataclass(frozen=True)
class Paged(DirectoryStore):
    """Its next listing shows the first page before, and the rest after what `ledger` does meanwhile."""

    first: list[Attempt] = field(default_factory=list[Attempt])

    def list(self, prefix: str) -> Iterator[Entry]:
        page = [*super().list(prefix)]
        yield from page
        while self.first:
            ended = another(self.root).lose(self.first.pop(), LOST)
            another(self.root).intend(TRIAL, Intend(2, ended.end_sha256, None), epoch=2)
            yield from (entry for entry in super().list(prefix) if "/2/" in entry.key)


def another(root: Path) -> Ledger:
    return Ledger(DirectoryStore(root), "campaign")


def test_an_attempt_that_another_follows_has_its_end(tmp_path: Path) -> None:
    store = Paged(tmp_path)
    begun = Ledger(store, "campaign").intend(TRIAL, Intend(1, None, None), epoch=1)
    assert begun is not None
    store.first.append(begun)
    chain = Ledger(store, "campaign").chain(TRIAL)
    assert [attempt.end is None for attempt in chain] == [False, True]
    assert progress(chain, Budgets()).phase is Phase.RUNNING


def test_a_patch_that_arrives_after_the_next_intent_is_too_late(tmp_path: Path) -> None:
    """Its runner had given up the store, and said so; then the store carried out what it had been asked."""
    ledger = another(tmp_path)
    first = ledger.intend(TRIAL, Intend(1, None, None), epoch=1)
    assert first is not None
    loss = Loss(loss=LossClass.STORE, message="no answer", agent_started=True)
    end = End(trial=TRIAL, attempt=1, nonce=first.intent.nonce, at=1, by="runner", loss=loss)
    ledger.store.create(keys.attempt_file("campaign", TRIAL, 1, "end.json"), canonical_json(end))
    (lost,) = ledger.chain(TRIAL)
    assert ledger.intend(TRIAL, Intend(2, lost.end_sha256, None), epoch=1) is not None
    ledger.store.create(keys.attempt_file("campaign", TRIAL, 1, "patch.json"), b"{}")
    now = progress(ledger.chain(TRIAL), Budgets())
    assert now.phase is Phase.RUNNING
    assert [one.stage for one in now.losses] == [Stage.MID_RUN]
