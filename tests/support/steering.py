"""`python -m tests.support.steering STEP ROOT CAMPAIGN`: writes one record that steers a campaign from outside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from trialfleet_controller.planning.amending import amend
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore

WRITERS: Mapping[str, Callable[[Ledger], object]] = {
    "amendment": lambda ledger: amend(ledger, reps=3),
    "cancel": lambda ledger: ledger.directives.cancel(now=True, by="test"),
    "look": lambda ledger: ledger.directives.look(planned=12, terminal=3, complete_blocks=0, by="test"),
}

if __name__ == "__main__":
    step, root, campaign = sys.argv[1:]
    WRITERS[step](Ledger(DirectoryStore(Path(root)), campaign))
