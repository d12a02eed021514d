"""What `gc` deletes and what it leaves; whole campaigns: only those asked for, the plan last, and never under a
controller that lives."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.forgetful_store import ForgetfulStore
from tests.support.plans import make_plan
from trialfleet_controller import garbage
from trialfleet_controller.commands import gc as gc_command
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.garbage import (
    campaigns,
    old_campaigns,
    remove_campaign,
    remove_spent_grants,
    remove_unfinished_writes,
)
from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials

PLAN = make_plan()


def test_grants_of_finished_trials_go_and_those_of_open_ones_stay(tmp_path: Path) -> None:
    ledger = Ledger(DirectoryStore(tmp_path), PLAN.campaign)
    ledger.freeze(PLAN)
    done, going = (trial.id for trial in trials(PLAN)[:2])
    for trial in (done, going):
        ledger.store.put(keys.grants(PLAN.campaign, trial, 1), b"{}")
    ledger.store.put(f"{keys.outcomes(PLAN.campaign)}{done}.json", b"{}")
    assert remove_spent_grants(ledger) == 1
    assert [entry.key for entry in ledger.store.list(keys.all_grants(PLAN.campaign))] == [
        keys.grants(PLAN.campaign, going, 1)
    ]
    assert remove_spent_grants(ledger) == 0
    assert remove_unfinished_writes(ledger.store) == 0


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
    epochs.claim(store, "two", epochs.HeartbeatConfig()).end()
    one, two = campaigns(store)
    assert (one.name, one.last_at, one.files) == ("one", 100.0, 2)
    assert two.last_at > 1e9
    assert [found.name for found in old_campaigns(store, 1, name=None)] == ["one"]
    assert old_campaigns(store, 1, name="two") == []
    assert old_campaigns(store, 1e6, name=None) == []


def test_one_wrong_answer_does_not_make_a_driven_campaign_old(tmp_path: Path) -> None:
    store = made(tmp_path / "s", "one")
    epochs.claim(store, "one", epochs.HeartbeatConfig()).end()
    assert old_campaigns(ForgetfulStore(store.root, "epochs/1.json"), 1, name=None) == []


def test_a_campaign_whose_epoch_vanishes_while_it_is_read_is_kept(tmp_path: Path) -> None:
    class Vanishing(DirectoryStore):
        def get(self, key: str) -> bytes | None:
            self.delete(key) if key.endswith("epochs/1.json") else None
            return super().get(key)

    store = made(tmp_path / "s", "one")
    epochs.claim(store, "one", epochs.HeartbeatConfig()).end()
    assert old_campaigns(Vanishing(store.root), 1, name=None) == []


def test_one_goes_and_the_rest_stays(tmp_path: Path) -> None:
    store = made(tmp_path / "s", "one", "two")
    before = {entry.key for entry in store.list("two/")}
    assert remove_campaign(store, "one", tell=print) == (8, None)  # claim, beat, cancel, three of the journal
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
        remove_campaign(Dying(tmp_path / "s"), "one", tell=print)
    store = DirectoryStore(tmp_path / "s")
    assert Ledger(store, "one").directives.cancelled() is not None
    remove_campaign(store, "one", tell=print)
    assert [entry.key for entry in store.list("one/")] == []


def test_a_driven_campaign_is_left_alone(tmp_path: Path) -> None:
    store = made(tmp_path / "s", "one")
    epochs.claim(store, "one", epochs.HeartbeatConfig())  # this very process drives it
    with pytest.raises(OperatorError, match="another controller drives"):
        remove_campaign(store, "one", tell=print)
    assert Ledger(store, "one").directives.cancelled() is None


def test_gc_names_what_it_waits_for_while_it_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    @contextmanager
    def record(what: str) -> Generator[None]:
        events.append(what)
        yield
        events.append("over")

    def remove_slowly() -> str:
        events.append("removing")
        return "0 folders"

    monkeypatch.setattr(gc_command, "waiting_for", record)
    monkeypatch.setattr(garbage, "remove_dead_attempts", remove_slowly)
    monkeypatch.setattr(garbage, "remove_dead_ray_folders", list)
    monkeypatch.setattr(garbage, "remove_unused_targets", str)
    monkeypatch.setattr(garbage, "find_old_layout", dict)
    assert CliRunner().invoke(gc_command.gc, []).exit_code == 0
    assert events == ["files to be looked at and removed", "removing", "over"]
