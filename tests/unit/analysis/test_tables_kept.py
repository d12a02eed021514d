"""Kept tables are used only while they say what the records say: never a number from a stale or edited one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ledgers as made
from tests.support.ledgers import Fate
from trialfleet_analysis.tables.columns import numbers
from trialfleet_analysis.tables.kept_bytes import NotThese, pack_table, unpack_table
from trialfleet_analysis.tables.kept_tables import CacheManifest, ReadDigests, kept, list_sealed
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.tables.rows import task_rows
from trialfleet_analysis.tables.schema import MOMENT, TRIAL_COLUMNS, Column
from trialfleet_analysis.tables.table import Table, table_of
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.attempt import Quarantine
from trialfleet_ledger.records.directives import Amendment, Halt
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import StoreError

PLAN = made.plan(reps=3)
_OF = {"text": "é", "word": "a", "int64": 1, "int32": 1, "float64": 0.5, "bool": True, "list of text": ["a", "b"]}
ROW = {column.name: _OF[column.type] for column in TRIAL_COLUMNS if column.type in _OF}
FIRST = made.trials(PLAN)[0]


def fate(trial: Trial) -> Fate:
    return Fate(verdict=Verdict.PASSED if trial.rep else Verdict.FAILED)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    """A finished campaign whose tables are kept."""
    store = made.write(tmp_path / "store", PLAN, fate)
    assert open_campaign(store, "demo").source == "records"
    return store


def tables(store: DirectoryStore) -> Path:
    return store.root / "demo" / "tables"


def passes(campaign: CampaignTables) -> float:
    return float(numbers(campaign.trials, "passed").sum())


def same(a: CampaignTables, b: CampaignTables) -> bool:
    tables = a.trials.equals(b.trials) and a.attempts.equals(b.attempts)
    return tables and (a.tasks, a.blocks, a.interim) == (b.tasks, b.blocks, b.interim)


def test_the_second_reading_uses_them_and_says_the_same(store: DirectoryStore) -> None:
    first, second = open_campaign(store, "demo", tables=False), open_campaign(store, "demo")
    assert (first.source, second.source) == ("records", "tables")
    assert same(first, second)
    assert (second.blocks, second.interim, second.verified, second.terminal) == (3, False, True, 12)


def test_lifelike_tables_give_the_ledger_back(tmp_path: Path) -> None:
    store = made.write(tmp_path, made.lifelike_plan(reps=4), made.lifelike(5))
    first, second = (open_campaign(store, "preamble-vs-pull") for _ in range(2))
    assert (first.source, second.source) == ("records", "tables")
    assert same(first, second)


def test_unfinished_or_unverified_is_not_kept(tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: None if trial == FIRST else Fate())
    assert open_campaign(store, "demo").interim
    made.write_trial(store, PLAN, FIRST, Fate())
    assert not open_campaign(store, "demo", verify=False).verified
    assert not tables(store).exists()
    open_campaign(store, "demo")
    assert open_campaign(store, "demo", verify=False).verified, "verified tables serve both"


def rewritten(store: DirectoryStore) -> None:
    """Same length, another verdict, the old time of change."""
    path = store.root / f"demo/outcomes/{FIRST.id}.json"
    before = path.stat()
    raw = path.read_bytes().replace(b'"failed"', b'"passed"').replace(b'sts_passed":false', b'sts_passed": true')
    assert len(raw) == before.st_size
    path.write_bytes(raw)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def quarantine(store: DirectoryStore) -> None:
    record = Quarantine(trial=FIRST.id, attempt=1, at=1.0, expected="0" * 64, found=None, reason="late")
    made.put(store, f"demo/quarantine/{FIRST.id}/1.json", record)


HALT = Halt(number=1, at=1.0, task="alpha", reason="x")
CHANGES: dict[str, Callable[[DirectoryStore], object]] = {
    "an outcome rewritten": rewritten,
    "an outcome gone": lambda store: (store.root / f"demo/outcomes/{FIRST.id}.json").unlink(),
    "more reps": lambda store: made.put(store, "demo/amendments/1.json", Amendment(number=1, at=1.0, reps=4)),
    "a task halted": lambda store: made.put(store, "demo/halts/1.json", HALT),
    "a bundle quarantined": quarantine,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_has_changed_is_read_again(store: DirectoryStore, change: Callable[[DirectoryStore], object]) -> None:
    change(store)
    now = open_campaign(store, "demo")
    assert now.source == "records"
    assert same(now, open_campaign(store, "demo", tables=False))
    assert same(now, open_campaign(store, "demo"))


def edited(store: DirectoryStore) -> None:
    """As somebody does who opens the file and saves it again, with one more pass."""
    path = tables(store) / "trials.table"
    path.write_bytes(pack_table(forged(path), {}))


def forged(path: Path, column: str = "passed", value: object = True, other: str | None = "verdict") -> Table:
    """The table with one value changed, and with it what must agree."""
    rows = read(path).to_pylist()
    row = next(row for row in rows if not row["passed"])
    row[column] = value
    if other:
        row[other] = "passed"
        row["tests_passed"] = True
    return table_of_rows(rows)


def read(path: Path) -> Table:
    return unpack_table(path.read_bytes(), TRIAL_COLUMNS)


def table_of_rows(rows: list[dict[str, Any]]) -> Table:
    def of(column: Column) -> list[Any]:
        values = [row[column.name] for row in rows]
        return [at and round(at.timestamp() * 1e6) for at in values] if column.type == MOMENT else values

    return table_of(TRIAL_COLUMNS, {column.name: of(column) for column in TRIAL_COLUMNS})


def reseal(store: DirectoryStore) -> None:
    """As only a forger does: the digests fit."""
    old = CacheManifest.model_validate_json((tables(store) / "seal.json").read_bytes())
    raw = {name: (tables(store) / f"{name}.table").read_bytes() for name in ("trials", "attempts")}
    seal = old.model_copy(update={name: sha256(data) for name, data in raw.items()})
    (tables(store) / "seal.json").write_bytes(canonical_json(seal))


def sealed(table: Callable[[Path], Table]) -> Callable[[DirectoryStore], None]:
    def damage(store: DirectoryStore) -> None:
        path = tables(store) / "trials.table"
        path.write_bytes(pack_table(table(path), {}))
        reseal(store)

    return damage


def of_another_campaign(store: DirectoryStore) -> None:
    other = made.write(store.root / "other", PLAN.model_copy(update={"uid": "ffffffffff"}), lambda trial: Fate())
    open_campaign(other, "demo")
    shutil.copytree(other.root / "demo" / "tables", tables(store), dirs_exist_ok=True)


DAMAGES: dict[str, Callable[[DirectoryStore], object]] = {
    "edited": edited,
    "truncated": lambda s: os.truncate(tables(s) / "trials.table", 999),
    "empty": lambda s: (tables(s) / "attempts.table").write_bytes(b""),
    "no trials": lambda s: (tables(s) / "trials.table").unlink(),
    "no seal": lambda s: (tables(s) / "seal.json").unlink(),
    "a seal that is none": lambda s: (tables(s) / "seal.json").write_bytes(b"\xff{"),
    "a seal of another version": lambda s: (tables(s) / "seal.json").write_bytes(
        (tables(s) / "seal.json").read_bytes().replace(b'"tables":2', b'"tables":3')
    ),
    "of another campaign": of_another_campaign,
    "no table, sealed": lambda s: ((tables(s) / "trials.table").write_bytes(b"no table"), reseal(s)),
    "other columns, sealed": sealed(lambda path: table_of(TRIAL_COLUMNS[:1], {"trial": ["x"]})),
    "a pass more, sealed": sealed(forged),
    "a pass without its verdict, sealed": sealed(lambda path: forged(path, other=None)),
    "a word that does not exist, sealed": sealed(lambda path: forged(path, "stop", "bored", other=None)),
    "a trial twice, sealed": sealed(lambda path: _doubled(path)),
    "a trial less, sealed": sealed(lambda path: read(path).take(slice(1, None))),
    "outside the blocks, sealed": sealed(lambda path: forged(path, "in_blocks", False, other=None)),
    "a rep that is not planned, sealed": sealed(lambda path: forged(path, "rep", 3, other=None)),
    "a block that is not planned, sealed": sealed(lambda path: forged(path, "block", -1, other=None)),
    "another task, sealed": sealed(lambda path: forged(path, "task", "zeta", other=None)),
    "another task's use, sealed": sealed(lambda path: forged(path, "use", "no_oracle", other=None)),
    "a trial that no one attempted, sealed": sealed(lambda path: forged(path, "trial", "z" * 26, other=None)),
}  # fmt: skip


def _doubled(path: Path) -> Table:
    rows = read(path).to_pylist()
    return table_of_rows([rows[1], *rows[1:]])


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_tables_are_not_believed_and_made_anew(
    store: DirectoryStore, damage: Callable[[DirectoryStore], object]
) -> None:
    whole = {path.name: path.read_bytes() for path in tables(store).iterdir()}
    damage(store)
    campaign = open_campaign(store, "demo")
    assert campaign.source == "records"
    assert passes(campaign) == 8
    assert {path.name: path.read_bytes() for path in tables(store).iterdir()} == whole, "same records, same bytes"
    assert open_campaign(store, "demo").source == "tables"


def test_a_copy_is_checked_by_contents_once(store: DirectoryStore, tmp_path: Path) -> None:
    """Without bundles, too: the tables carry what was found in them."""
    shutil.copytree(
        store.root, tmp_path / "copy", ignore=shutil.ignore_patterns("*.zst"), copy_function=shutil.copyfile
    )
    copy = DirectoryStore(tmp_path / "copy")
    before = (tables(copy) / "seal.json").read_bytes()
    assert open_campaign(copy, "demo").source == "tables"
    after = (tables(copy) / "seal.json").read_bytes()
    assert before != after, "the copy's own listing is sealed"
    assert open_campaign(copy, "demo").source == "tables"
    assert (tables(copy) / "seal.json").read_bytes() == after


def test_a_copy_that_was_changed_is_not_believed(store: DirectoryStore, tmp_path: Path) -> None:
    shutil.copytree(store.root, tmp_path / "copy", copy_function=shutil.copyfile)
    rewritten(DirectoryStore(tmp_path / "copy"))
    campaign = open_campaign(DirectoryStore(tmp_path / "copy"), "demo")
    assert campaign.source == "records"
    assert [row.fault is not None for row in made.rows_of(campaign.trials) if row.trial == FIRST.id] == [True]


def test_a_refused_trial_is_read_again_until_it_holds(tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, fate)
    bundle = store.root / f"demo/attempts/{FIRST.id}/1/bundle.tar.zst"
    whole = bundle.read_bytes()
    bundle.unlink()
    first, second = (open_campaign(store, "demo") for _ in range(2))
    assert (first.source, second.source) == ("records", "tables")
    assert same(first, second)
    assert [row.trial for row in made.rows_of(second.trials) if row.fault] == [FIRST.id]
    bundle.write_bytes(whole)
    third = open_campaign(store, "demo")
    assert third.source == "records"
    assert not [row for row in made.rows_of(third.trials) if row.fault]


def test_a_store_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    class ReadOnly(DirectoryStore):
        def put(self, key: str, data: bytes) -> None:
            raise StoreError("read-only")

    made.write(tmp_path, PLAN, fate)
    campaign = open_campaign(ReadOnly(tmp_path), "demo")
    assert (campaign.source, passes(campaign)) == ("records", 8)
    assert not (tmp_path / "demo/tables").exists()


def test_cancelled_trials_end_the_complete_blocks(tmp_path: Path) -> None:
    """Kept tables find the same blocks as `complete_blocks` does."""
    store = made.write(tmp_path, PLAN, fate)
    late = next(trial for trial in made.trials(PLAN) if trial.block == 1)
    for attempt in (store.root / f"demo/attempts/{late.id}").iterdir():
        shutil.rmtree(attempt)
    (store.root / f"demo/outcomes/{late.id}.json").unlink()
    loss = Loss(loss=LossClass.CANCELLED, message="stop", agent_started=True)
    made.write_trial(store, PLAN, late, Fate(verdict=None, losses=(loss,)))
    first, second = (open_campaign(store, "demo") for _ in range(2))
    assert (first.source, second.source, first.blocks, second.blocks) == ("records", "tables", 1, 1)


def test_a_seal_rests_on_what_was_read(store: DirectoryStore) -> None:
    """The digests are those of the records, whatever the order of the reading."""
    witness = ReadDigests(store, "demo")
    campaign = open_campaign(store, "demo")
    outcomes, _ = list_sealed(witness)
    for key in reversed(outcomes):
        raw = witness.get(key)
        Outcome.model_validate_json(raw)
    witness.get("demo/campaign.json")
    seal = CacheManifest.model_validate_json((tables(store) / "seal.json").read_bytes())
    assert witness.sources() == seal.sources
    assert kept(ReadDigests(store, "demo"), campaign.frame, task_rows(campaign.frame)) is None, (
        "no plan was witnessed"
    )


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_edited_bytes_are_more_than_a_table(data: st.DataObject) -> None:
    """Sealed or not: what is read is a table of these columns, or refused."""
    row = {column.name: None for column in TRIAL_COLUMNS} | ROW
    raw = bytearray(zstd.decompress(pack_table(table_of_rows([row] * 3), {})))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=9))
    with suppress(NotThese):
        read_again = unpack_table(zstd.compress(bytes(raw)), TRIAL_COLUMNS)
        assert len(read_again.to_pylist()) == read_again.num_rows == 3
        assert unpack_table(pack_table(read_again, {}), TRIAL_COLUMNS).equals(read_again)


@pytest.mark.parametrize(
    "change",
    [
        lambda names: names.__setitem__("verdict", ["passed", "passed"]),
        lambda names: names.__setitem__("task", [f"t{n}" for n in range(30_000)]),
        lambda names: names.__setitem__("task", ["\ud800x", *names["task"][1:]]),
    ],
)
def test_names_that_mislead_are_refused(change: Callable[[dict[str, list[str]]], None]) -> None:
    """Names twice, far more of them than rows, and half of a surrogate pair."""
    row = {column.name: None for column in TRIAL_COLUMNS} | ROW
    raw = zstd.decompress(pack_table(table_of_rows([row] * 3), {}))
    end = raw.index(b"\n")
    head = json.loads(raw[:end])
    unpack_table(zstd.compress(json.dumps(head).encode() + raw[end:]), TRIAL_COLUMNS)
    change(head["names"])
    with pytest.raises(NotThese):
        unpack_table(zstd.compress(json.dumps(head).encode() + raw[end:]), TRIAL_COLUMNS)


def test_few_bytes_that_expand_to_many_are_refused_unread() -> None:
    head = b"\x28\xb5\x2f\xfd\xc0\x00" + (2**40).to_bytes(8, "little")
    with pytest.raises(NotThese, match="expands"):
        unpack_table(head + b"\x03\x00\x00\x00", TRIAL_COLUMNS)
