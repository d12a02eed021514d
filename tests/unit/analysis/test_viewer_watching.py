"""Which records the viewer watches: a page is offered anew when one of them appears."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_analysis.viewer.campaign_state import live_counts
from trialfleet_ledger import keys
from trialfleet_ledger.store.directory import DirectoryStore


@pytest.mark.parametrize(
    "record",
    [
        keys.plan("demo").removeprefix("demo/"),
        "amendments/1.json",
        "decisions/1.json",  # the last record of a campaign that a look has ended
        "halts/1.json",
        "quarantine/a.none.0-1.json",
        "outcomes/a.none.0.json",
        "cancel.json",
    ],
)
def test_every_record_that_changes_what_is_shown_changes_the_stamp(tmp_path: Path, record: str) -> None:
    store = DirectoryStore(tmp_path)
    before = live_counts(store, "demo").stamp
    store.put(f"demo/{record}", b"{}")
    assert live_counts(store, "demo").stamp != before
