"""Which halts hold, by records: clocks of machines do not agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger import keys
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore


@pytest.mark.parametrize("clock", [0.0, 2e11], ids=["behind", "ahead"])
def test_a_lifted_halt_stays_lifted_whatever_the_clocks_say(tmp_path: Path, clock: float) -> None:
    ledger = Ledger(DirectoryStore(tmp_path), "campaign", clock=lambda: clock)
    ledger.store.put(keys.numbered("campaign", "epochs", 1), b"{}")
    assert not ledger.directives.halt_known("task", epoch=1)
    halt = ledger.directives.halt("task", "lost in a row")
    assert ledger.directives.halt_known("task", epoch=1)
    assert not ledger.directives.halt_known("another", epoch=1)
    ledger.store.put(keys.numbered("campaign", "epochs", 2), b"{}")
    ledger.directives.amend(reps=None, after_look=False, lifts=(halt.number,))
    assert ledger.directives.halt_known("task", epoch=1), (
        "what the first controller began was lost before the lift"
    )
    assert not ledger.directives.halt_known("task", epoch=2), "what was begun since may halt again"


def test_the_same_numbers_seen_twice_are_one_look(tmp_path: Path) -> None:
    """A task that is halted leaves the blocks: then the same trials make other numbers."""
    ledger = Ledger(DirectoryStore(tmp_path), "campaign")
    for terminal, blocks in ((3, 1), (3, 1), (3, 2), (4, 2), (4, 2)):
        ledger.directives.look(planned=9, terminal=terminal, complete_blocks=blocks, by="test")
    assert len(ledger.directives.looks()) == 3
