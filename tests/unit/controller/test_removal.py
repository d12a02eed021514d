"""Whole campaigns out of a store: only those asked for, the plan last, and never under a controller that lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.controller.test_plan import make_plan
from trialfleet_controller import epochs, keys
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.removal import campaigns, remove
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.directory import DirectoryStore


def made(root: Path, *names: str) -> DirectoryStore:
    root.mkdir()
    store = DirectoryStore(root)
    for name in names:
        Ledger(store, name).freeze(make_plan().model_copy(update={"campaign": name, "created": 100.0}))
        store.create(keys.attempt_file(name, "a" * 26, 1, "intent.json"), b"{}")
    store.create("objects/" + "0" * 64, b"an input")
    return store


def test_campaigns_are_sized_and_dated(tmp_path: Path) -> None:
    store = made(tmp_path / "s", "one", "two")
    epochs.claim(store, "two", epochs.Pulse()).end()
    one, two = campaigns(store)
    assert (one.name, one.last_at, one.files) == ("one", 100.0, 2)
    assert two.last_at > 1e9


def test_one_goes_and_the_rest_stays(tmp_path: Path) -> None:
    store = made(tmp_path / "s", "one", "two")
    before = {entry.key for entry in store.list("two/")}
    assert remove(store, "one", by="a test", tell=print) == 5  # with the claim, its beat and the cancel
    assert [entry.key for entry in store.list("one/")] == []
    assert {entry.key for entry in store.list("two/")} == before
    assert store.get("objects/" + "0" * 64) is not None


class Dying(DirectoryStore):
    """Deletes so many keys, and then no more."""

    left = 2

    def delete(self, key: str) -> None:
        if self.left == 0:
            raise KeyboardInterrupt
        object.__setattr__(self, "left", self.left - 1)
        super().delete(key)


def test_after_a_kill_the_plan_is_still_there_and_cancelled(tmp_path: Path) -> None:
    made(tmp_path / "s", "one")
    with pytest.raises(KeyboardInterrupt):
        remove(Dying(tmp_path / "s"), "one", by="a test", tell=print)
    store = DirectoryStore(tmp_path / "s")
    assert Ledger(store, "one").cancelled() is not None
    remove(store, "one", by="a test", tell=print)
    assert [entry.key for entry in store.list("one/")] == []


def test_a_driven_campaign_is_left_alone(tmp_path: Path) -> None:
    store = made(tmp_path / "s", "one")
    epochs.claim(store, "one", epochs.Pulse())  # this very process drives it
    with pytest.raises(OperatorError, match="another controller drives"):
        remove(store, "one", by="a test", tell=print)
    assert Ledger(store, "one").cancelled() is None
