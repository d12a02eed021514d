"""A listing is no moment: another controller may write while its pages come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_controller.fold import Attempt, Intend, progress
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.lifecycle import Budgets, Phase
from trialfleet_runner.contract import Loss, LossClass
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
