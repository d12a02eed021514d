"""A store that others write: no edit and no deletion of one record changes the tables without being named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ledgers
from tests.support.ledgers import BEFORE_AGENT, MID_RUN, Fate, plan, read
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.canonical import canonical_json, digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials

PLAN = plan(reps=2, primary=Primary(treatment="intent_layer", control="none"))
FATES = (Fate(Verdict.FAILED), Fate(), Fate(Verdict.FAILED, losses=(MID_RUN,)), Fate(None, losses=(MID_RUN,) * 3))
FATES += (Fate(losses=(BEFORE_AGENT,)), Fate(Verdict.FAILED))
TRIALS = [one.record() for one in trials(PLAN)]


@cache
def honest() -> Path:
    root = Path(mkdtemp(prefix="trialfleet-tampered-"))
    store = ledgers.write_plan(root, PLAN)
    for number, trial in enumerate(TRIALS):
        ledgers.write_trial(store, PLAN, trial, FATES[number % len(FATES)])
    ledgers.write_journal(store, PLAN)
    directives = Ledger(store, PLAN.campaign, clock=lambda: ledgers.NOW).directives
    directives.look(planned=8, terminal=4, complete_blocks=1, by="test")
    directives.amend(reps=None, after_look=False, lifts=(), cost_usd=5.0)
    directives.halt("beta", "broken")
    return root


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The campaign's folder in a store of its own."""
    shutil.copytree(honest(), tmp_path / "store")
    return tmp_path / "store" / PLAN.campaign


def tables_of(folder: Path) -> CampaignTables:
    return open_campaign(DirectoryStore(folder.parent), folder.name, tables=False)


def values_of(tables: CampaignTables) -> list[object]:
    frame = tables.frame
    few = [frame.plan, frame.reps, frame.amendments, frame.halts, frame.cancel, frame.looks, frame.decisions]
    return [*few, tables.blocks, tables.trials.to_pylist(), tables.attempts.to_pylist()]


def names_of(tables: CampaignTables) -> list[str]:
    """What is named as tampered."""
    return [*tables.frame.tampered, *(row["missing"] for row in tables.rows if row["tampered"])]


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*path, number))
    else:
        yield path


def edited(value: Any, path: tuple[str | int, ...]) -> Any:
    """A copy in which one leaf has another value of its type."""
    if not path:
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)):
            return value + 1
        return "passed" if value in ("failed", None) else f"{value}x"
    whole = dict(value) if isinstance(value, dict) else list(value)
    whole[path[0]] = edited(whole[path[0]], path[1:])
    return whole


RECORDS = sorted(
    path.relative_to(honest()) for path in honest().rglob("*") if path.is_file() and "tables" not in path.parts
)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_one_edit_or_deletion_is_harmless_or_named(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(RECORDS))
    root = Path(mkdtemp(prefix="trialfleet-tampered-"))
    try:
        shutil.copytree(honest(), root, dirs_exist_ok=True)
        file = root / name
        if data.draw(st.booleans()) or file.suffix != ".json":
            file.unlink()
        else:
            value = json.loads(file.read_bytes())
            file.write_bytes(
                canonical_json(edited(value, data.draw(st.sampled_from(sorted(leaves(value), key=str)))))
            )
        try:
            tables = tables_of(root / PLAN.campaign)
        except OperatorError as error:
            assert str(name) in f"{error.where}"
            return
        assert names_of(tables) or values_of(tables) == values_of(tables_of(honest() / PLAN.campaign)), name
    finally:
        shutil.rmtree(root)


def test_control_nothing_is_named_of_what_was_written() -> None:
    tables = tables_of(honest() / PLAN.campaign)
    assert names_of(tables) == []
    assert not any("ampered" in caution for caution in read(DirectoryStore(honest())).cautions)


def _as_passed(folder: Path, trial: str, attempt: int) -> None:
    """Edit end and outcome together, and all digests of the end; the bundle is left."""
    end = folder / "attempts" / trial / str(attempt) / "end.json"
    outcome = folder / "outcomes" / f"{trial}.json"
    ended, folded = json.loads(end.read_bytes()), json.loads(outcome.read_bytes())
    for record in (ended, folded):
        record["scored"] |= {"verdict": "passed", "tests_passed": True}
    end.write_bytes(canonical_json(ended))
    folded["ends"] = [*folded["ends"][:-1], sha256(end.read_bytes())]
    outcome.write_bytes(canonical_json(folded))


def _without_journal(folder: Path) -> None:
    shutil.rmtree(folder / "journal")


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "without-journal"])
def test_verdicts_edited_to_passed_do_not_count(copied: Path, *, journal: bool) -> None:
    failed = [row for row in tables_of(copied).rows if row["verdict"] == "failed"]
    for row in failed:
        _as_passed(copied, row["trial"], row["attempts"])
    if not journal:
        _without_journal(copied)
    tables = tables_of(copied)
    rows = {row["trial"]: row for row in tables.rows}
    assert failed
    assert all(rows[row["trial"]]["verdict"] is None and rows[row["trial"]]["tampered"] for row in failed)
    assert sum(row["passed"] is True for row in tables.rows) == sum(
        fate.verdict is Verdict.PASSED for fate in (FATES * 2)[: len(TRIALS)]
    )
    cautions = read(DirectoryStore(copied.parent)).cautions
    assert any(f"Tampered: {len(failed)} trials left out as missing data" in caution for caution in cautions)


def test_treatment_and_control_exchanged_leave_nothing_to_count(copied: Path) -> None:
    file = copied / "campaign.json"
    value = json.loads(file.read_bytes())
    primary = value["primary"]
    primary["treatment"], primary["control"] = primary["control"], primary["treatment"]
    file.write_bytes(canonical_json(value))
    tables = tables_of(copied)
    assert all(row["verdict"] is None for row in tables.rows)
    assert read(DirectoryStore(copied.parent)).cautions[0].startswith("Tampered: campaign.json was changed")


def test_a_trial_whose_records_were_deleted_stays_missing(copied: Path) -> None:
    gone = TRIALS[0]
    shutil.rmtree(copied / "attempts" / gone.id)
    (copied / "outcomes" / f"{gone.id}.json").unlink()
    row = next(row for row in tables_of(copied).rows if row["trial"] == gone.id)
    assert row["tampered"]
    assert row["missing"] == f"tampered: outcomes/{gone.id}.json was deleted after it was written"
    assert not tables_of(copied).interim


def test_a_bundle_that_another_result_made_does_not_count(copied: Path) -> None:
    """Whoever packs the bundle again must also say its digest in end and outcome: the journal names both."""
    trial = TRIALS[0]
    scored = ledgers.records.scored(Verdict.PASSED)
    packed = ledgers.bundle_bytes(PLAN, trial, 1, result=digest(scored))
    (copied / "attempts" / trial.id / "1" / "bundle.tar.zst").write_bytes(packed)
    end, outcome = copied / "attempts" / trial.id / "1" / "end.json", copied / "outcomes" / f"{trial.id}.json"
    for file, name in ((end, "bundle"), (outcome, "bundle_sha256")):
        value = json.loads(file.read_bytes())
        value[name], value["scored"] = sha256(packed), scored.model_dump(mode="json")
        if file == outcome:
            value["ends"] = [sha256(end.read_bytes())]
        file.write_bytes(canonical_json(value))
    row = next(row for row in tables_of(copied).rows if row["trial"] == trial.id)
    assert row["tampered"]
    assert row["fault"] == f"outcomes/{trial.id}.json was changed after it was written"
