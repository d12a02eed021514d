"""A store that others write: what differs from what was written is named, and its trial does not count."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import ledgers
from tests.support.ledgers import BEFORE_AGENT, MID_RUN, Fate, plan, read
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_controller.commands import pull as pull_command
from trialfleet_controller.commands.pull import pull
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.journal_check import check_ledger
from trialfleet_controller.status.campaign_status import read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.bundle import pack, unpack
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.pulled_copy import PulledCopy
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import ListedKey
from trialfleet_ledger.trial_order import trials

PLAN = plan(reps=2, primary=Primary(treatment="intent_layer", control="none"))
FATES = (
    Fate(Verdict.FAILED),
    Fate(),
    Fate(Verdict.FAILED, losses=(MID_RUN,)),
    Fate(None, losses=(MID_RUN,) * 3),
    Fate(losses=(BEFORE_AGENT,)),
    Fate(Verdict.FAILED),
)
TRIALS = [one.record() for one in trials(PLAN)]


@cache
def honest() -> Path:
    root = Path(mkdtemp(prefix="trialfleet-tampered-"))
    store = ledgers.write_plan(root, PLAN)
    epochs.claim(store, PLAN.campaign, epochs.HeartbeatConfig()).end()
    for number, trial in enumerate(TRIALS):
        named_plan = sha256(canonical_json(PLAN))
        ledgers.write_trial(store, PLAN, trial, FATES[number % len(FATES)], named_plan=named_plan)
    for number in (0, 5):
        _with_patch(store, TRIALS[number])
    ledgers.write_journal(store, PLAN)
    directives = Ledger(store, PLAN.campaign, clock=lambda: ledgers.NOW).directives
    directives.look(planned=8, terminal=4, complete_blocks=1, by="test")
    directives.amend(reps=None, after_look=False, lifts=(), cost_usd=5.0)
    directives.halt("beta", "broken")
    return root


def _with_patch(store: DirectoryStore, trial: Trial) -> None:
    """Of a trial that failed at once, as its runner would have left it: before the end, which names it."""
    folder = store.root / PLAN.campaign / "attempts" / trial.id / "1"
    patch = canonical_json(ledgers.records.patch(trial=trial.id, attempt=1, at=ledgers.NOW + 40))
    (folder / "patch.json").write_bytes(patch)
    end = json.loads((folder / "end.json").read_bytes())
    (folder / "end.json").write_bytes(canonical_json(end | {"patch": sha256(patch)}))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The campaign's folder in a store of its own."""
    shutil.copytree(honest(), tmp_path / "store")
    return tmp_path / "store" / PLAN.campaign


def tables_of(folder: Path) -> CampaignTables:
    return open_campaign(DirectoryStore(folder.parent), folder.name, tables=False)


def missing_of(tables: CampaignTables) -> dict[str, str]:
    """Trials left out as tampered, and why."""
    return {row["trial"]: row["missing"] for row in tables.rows if row["tampered"]}


# Trial 0 failed at once; trial 2 lost an attempt before it failed; trial 3 was abandoned; trial 4 passed.
OF_TRIALS = {
    "outcome": f"outcomes/{TRIALS[0].id}.json",
    "abandoned outcome": f"outcomes/{TRIALS[3].id}.json",
    "end": f"attempts/{TRIALS[0].id}/1/end.json",
    "end of a loss": f"attempts/{TRIALS[2].id}/1/end.json",
    "start": f"attempts/{TRIALS[0].id}/1/start.json",
    "start of a loss": f"attempts/{TRIALS[2].id}/1/start.json",
    "intent": f"attempts/{TRIALS[2].id}/2/intent.json",
    "intent of a verdict": f"attempts/{TRIALS[0].id}/1/intent.json",
    "patch of a verdict": f"attempts/{TRIALS[0].id}/1/patch.json",
    "intent of a loss": f"attempts/{TRIALS[3].id}/1/intent.json",
    "bundle": f"attempts/{TRIALS[0].id}/1/bundle.tar.zst",
}
OF_CAMPAIGN = (
    "campaign.json",
    "amendments/1.json",
    "halts/1.json",
    "looks/1.json",
    "epochs/1.json",
    "journal/1.json",
    "journal/3.json",
)


def edit(folder: Path, name: str) -> None:
    path = folder / name
    if path.suffix == ".zst":
        path.write_bytes(path.read_bytes() + b"\0")
        return
    value: dict[str, Any] = json.loads(path.read_bytes())
    if name == "campaign.json":
        value["created"] += 1
    elif name.startswith("journal/"):
        value["records"] = dict.fromkeys(value["records"], "0" * 64)
    elif name.startswith("outcomes/"):
        value["trial"]["seed"] += 1
    else:
        value["at"] += 1
    path.write_bytes(canonical_json(value))


def delete(folder: Path, name: str) -> None:
    (folder / name).unlink()


def exchange(folder: Path, name: str) -> None:
    """With the same record of another trial."""
    path, other = folder / name, folder / _of_another(folder, name)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


def duplicate(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / _of_another(folder, name)).read_bytes())


def _of_another(folder: Path, name: str) -> str:
    """The same record of a trial that has one, and other bytes."""
    trial = name.replace(".json", "").split("/")[1]
    there = (name.replace(trial, one.id) for one in TRIALS if one.id != trial)
    return next(one for one in there if (folder / one).exists())


def truncate(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")


CHANGES: tuple[Callable[[Path, str], None], ...] = (edit, delete, exchange, duplicate, truncate, empty)


@pytest.mark.parametrize("change", CHANGES, ids=[change.__name__ for change in CHANGES])
@pytest.mark.parametrize("name", OF_TRIALS.values(), ids=OF_TRIALS.keys())
def test_a_trial_with_a_record_that_was_changed_does_not_count(
    copied: Path, name: str, change: Callable[[Path, str], None]
) -> None:
    trial = next(one.id for one in TRIALS if one.id in name)
    change(copied, name)
    tables = tables_of(copied)
    row = next(row for row in tables.rows if row["trial"] == trial)
    assert row["tampered"]
    assert row["verdict"] is row["passed"] is None
    assert row["missing"].startswith("tampered: ")
    assert not tables.interim
    assert any("Tampered: " in caution for caution in read(DirectoryStore(copied.parent)).cautions)


def copy_of(folder: Path, root: Path) -> Path:
    """With other tags."""
    shutil.copytree(folder.parent, root, copy_function=shutil.copyfile)
    return root / folder.name


BELOW_ATTEMPTS = ("end", "end of a loss", "intent of a verdict", "patch of a verdict", "bundle")


@pytest.mark.parametrize(
    ("change", "place", "record"),
    [
        *((edit, "store", record) for record in BELOW_ATTEMPTS),
        *((delete, "store", record) for record in BELOW_ATTEMPTS[3:]),
        *((edit, "copy", record) for record in BELOW_ATTEMPTS[1:]),
    ],
)
def test_kept_tables_do_not_hide_what_was_changed(
    copied: Path, tmp_path: Path, change: Callable[[Path, str], None], place: str, record: str
) -> None:
    """Bundles of a copy are those that were copied: one that is edited there is seen by `--again` alone."""
    assert open_campaign(DirectoryStore(copied.parent), PLAN.campaign).sealed
    folder = copied if place == "store" else copy_of(copied, tmp_path / "copy")
    change(folder, OF_TRIALS[record])
    tables = open_campaign(DirectoryStore(folder.parent), PLAN.campaign)
    trial = next(one.id for one in TRIALS if one.id in OF_TRIALS[record])
    unseen = place == "copy" and record == "bundle"
    assert (tables.source, trial in missing_of(tables)) == (("tables", False) if unseen else ("records", True))


@pytest.mark.parametrize("place", ["store", "copy"])
def test_control_kept_tables_serve_what_was_not_changed(copied: Path, tmp_path: Path, place: str) -> None:
    open_campaign(DirectoryStore(copied.parent), PLAN.campaign)
    folder = copied if place == "store" else copy_of(copied, tmp_path / "copy")
    assert open_campaign(DirectoryStore(folder.parent), PLAN.campaign).source == "tables"


@pytest.mark.parametrize("change", [edit, delete], ids=["edit", "delete"])
@pytest.mark.parametrize("name", OF_CAMPAIGN[1:])
def test_a_record_of_the_campaign_that_was_changed_is_named(
    copied: Path, name: str, change: Callable[[Path, str], None]
) -> None:
    change(copied, name)
    assert tables_of(copied).frame.tampered or missing_of(tables_of(copied))
    assert read(DirectoryStore(copied.parent)).cautions[0].startswith("Tampered: ")


def test_control_nothing_is_named_of_what_was_written(copied: Path) -> None:
    tables = tables_of(copied)
    assert (missing_of(tables), tables.frame.faults) == ({}, {})
    assert not any("ampered" in caution for caution in read(DirectoryStore(copied.parent)).cautions)


def test_control_a_record_that_the_journal_does_not_name_yet_counts(copied: Path) -> None:
    """A controller was killed before it named them."""
    for number in (4, 5, 6):
        (copied / f"journal/{number}.json").unlink()
    third = copied / "journal/3.json"
    value = json.loads(third.read_bytes())
    value["records"] = {name: one for name, one in value["records"].items() if TRIALS[0].id not in name}
    third.write_bytes(canonical_json(value))
    tables = tables_of(copied)
    assert (missing_of(tables), tables.frame.faults) == ({}, {})


def _as_passed(folder: Path, trial: str, attempt: int) -> None:
    for path in (folder / f"attempts/{trial}/{attempt}/end.json", folder / f"outcomes/{trial}.json"):
        value = json.loads(path.read_bytes())
        value["scored"] |= {"verdict": "passed", "tests_passed": True}
        path.write_bytes(canonical_json(value))


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "without-journal"])
def test_verdicts_edited_to_passed_do_not_count(copied: Path, *, journal: bool) -> None:
    failed = [row for row in tables_of(copied).rows if row["verdict"] == "failed"]
    for row in failed:
        _as_passed(copied, row["trial"], row["attempts"])
    if not journal:
        shutil.rmtree(copied / "journal")
    tables = tables_of(copied)
    rows = {row["trial"]: row for row in tables.rows}
    assert failed
    assert all(rows[row["trial"]]["verdict"] is None and rows[row["trial"]]["tampered"] for row in failed)
    assert all(row["passed"] in (True, None) for row in tables.rows)
    assert journal or tables.frame.tampered == ("journal/1.json was deleted after it was written",)
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
    tables = tables_of(copied)
    assert missing_of(tables)[gone.id] == f"tampered: outcomes/{gone.id}.json was deleted after it was written"
    assert not tables.interim


def test_a_bundle_that_another_result_made_does_not_count(copied: Path) -> None:
    """Someone who packs the bundle again must also edit end and outcome: the journal names both."""
    trial = TRIALS[0]
    scored = ledgers.records.scored(Verdict.PASSED)
    packed = ledgers.bundle_bytes(PLAN, trial, 1, scored=scored)
    (copied / "attempts" / trial.id / "1" / "bundle.tar.zst").write_bytes(packed)
    end, outcome = copied / "attempts" / trial.id / "1" / "end.json", copied / "outcomes" / f"{trial.id}.json"
    for file, name in ((end, "bundle"), (outcome, "bundle_sha256")):
        value = json.loads(file.read_bytes())
        value[name], value["scored"] = sha256(packed), scored.model_dump(mode="json")
        file.write_bytes(canonical_json(value))
    assert missing_of(tables_of(copied))[trial.id] == (
        f"tampered: outcomes/{trial.id}.json was changed after it was written"
    )


def test_a_trial_in_the_place_of_another_does_not_count(copied: Path) -> None:
    """All records of a trial that passed, and of one that failed."""
    failed, passed = TRIALS[0].id, TRIALS[4].id
    for folder, suffix in (("attempts", ""), ("outcomes", ".json")):
        mine, theirs = (copied / folder / f"{trial}{suffix}" for trial in (failed, passed))
        mine.rename(copied / "aside")
        theirs.rename(mine)
        (copied / "aside").rename(theirs)
    assert {failed, passed} <= missing_of(tables_of(copied)).keys()


def test_an_earlier_end_again_does_not_count(copied: Path) -> None:
    trial, chain = TRIALS[2].id, copied / "attempts" / TRIALS[2].id
    (chain / "2/end.json").write_bytes((chain / "1/end.json").read_bytes())
    assert trial in missing_of(tables_of(copied))


def test_a_plan_that_is_edited_together_with_all_that_names_it_does_not_count(copied: Path) -> None:
    """Bundles name their plan, too."""
    before = sha256((copied / "campaign.json").read_bytes())
    test_treatment_and_control_exchanged_leave_nothing_to_count(copied)
    after = sha256((copied / "campaign.json").read_bytes())
    shutil.rmtree(copied / "journal")
    for path in copied.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(before.encode(), after.encode()))
    tables = tables_of(copied)
    assert all(row["verdict"] is None for row in tables.rows)
    assert any("made under another campaign.json" in row["missing"] for row in tables.rows)


@pytest.mark.parametrize("few", [True, False], ids=["metrics", "delivery"])
def test_a_metric_that_its_bundle_does_not_have_does_not_count(copied: Path, *, few: bool) -> None:
    """Where no entry of the journal names the records yet."""
    trial = TRIALS[0].id
    for path in (copied / "attempts" / trial / "1/end.json", copied / "outcomes" / f"{trial}.json"):
        value = json.loads(path.read_bytes())
        value["scored"] |= {"metrics": {"turns": 12345}} if few else {"delivery": {"inline_tokens": 12345}}
        path.write_bytes(canonical_json(value))
    shutil.rmtree(copied / "journal")
    assert missing_of(tables_of(copied))[trial].endswith("but its bundle holds another result")


def test_a_deleted_journal_is_named_in_every_answer(copied: Path) -> None:
    """Also where tables and an answer are kept."""
    store = DirectoryStore(copied.parent)
    assert not any("ampered" in caution for caution in read(store).cautions)
    (copied / "halts/1.json").unlink()
    assert read(store).cautions[0].startswith("Tampered: halts/1.json was deleted")
    shutil.rmtree(copied / "journal")
    caution = read(store).cautions[0]
    assert caution.startswith("Tampered: journal/1.json was deleted after it was written.")
    assert "ampered" in "".join(lines(read_status(store, PLAN.campaign)))


def test_entries_that_an_epoch_counts_are_missed(copied: Path) -> None:
    driver = epochs.claim(DirectoryStore(copied.parent), PLAN.campaign, epochs.HeartbeatConfig())
    assert driver.number == 2
    newest = max((copied / "journal").iterdir(), key=lambda path: int(path.stem))
    for path in (copied / "journal").iterdir():
        if path != copied / "journal/1.json":
            path.unlink()
    named = tables_of(copied).frame.tampered
    assert named == tuple(f"journal/{n}.json was deleted after it was written" for n in range(2, int(newest.stem)))


def test_numbers_of_strangers_cost_nothing(copied: Path) -> None:
    for number in (10**15, 2**53, 10**40):
        (copied / f"journal/{number}.json").write_bytes(b"{}")
    assert tables_of(copied).frame.tampered[0].startswith("journal/")


def test_a_plan_whose_cells_name_another_task_is_refused(copied: Path) -> None:
    file = copied / "campaign.json"
    value = json.loads(file.read_bytes())
    value["tasks"][0]["order"]["id"] = "another"
    file.write_bytes(canonical_json(value))
    with pytest.raises(OperatorError, match="cells name tasks that the plan does not have: alpha"):
        tables_of(copied)


def test_an_entry_that_no_longer_names_a_deleted_trial_is_named(copied: Path) -> None:
    """And the trial is not drawn again: nothing starts."""
    (copied / OF_TRIALS["outcome"]).unlink()
    shutil.rmtree(copied / f"attempts/{TRIALS[0].id}")
    for path in copied.glob("journal/*.json"):
        value = json.loads(path.read_bytes())
        named = {name: digest for name, digest in value["records"].items() if TRIALS[0].id not in name}
        if named != value["records"]:
            path.write_bytes(canonical_json(value | {"records": named}))
            changed = f"journal/{path.name} was changed after it was written"
    assert changed in tables_of(copied).frame.tampered
    assert changed in read(DirectoryStore(copied.parent)).cautions[0]
    assert changed in "\n".join(lines(read_status(DirectoryStore(copied.parent), PLAN.campaign)))
    with pytest.raises(OperatorError, match=changed):
        check_ledger(Ledger(DirectoryStore(copied.parent), PLAN.campaign))


@pytest.mark.parametrize("wrong", [None, b"{}", b"<html>"])
def test_one_wrong_read_of_an_entry_stands_in_no_other(
    copied: Path, monkeypatch: pytest.MonkeyPatch, wrong: bytes | None
) -> None:
    """The next entry has its digest for good."""
    store, read_value, answers = DirectoryStore(copied.parent), DirectoryStore.get, [wrong]

    def get(self: DirectoryStore, key: str) -> bytes | None:
        return answers.pop() if answers and "/journal/" in key else read_value(self, key)

    name = OF_TRIALS["outcome"]
    with monkeypatch.context() as patched:
        patched.setattr(DirectoryStore, "get", get)
        journal = Ledger(store, PLAN.campaign).journal
        journal.note(f"{PLAN.campaign}/{name}", (copied / name).read_bytes())
        journal.flush()
    assert not answers
    newest = max((copied / "journal").iterdir(), key=lambda path: int(path.stem))
    before = newest.with_name(f"{int(newest.stem) - 1}.json")
    assert json.loads(newest.read_bytes())["previous"] == sha256(before.read_bytes())
    assert tables_of(copied).frame.tampered == ()


def test_an_entry_under_the_number_of_another_is_named(copied: Path) -> None:
    (copied / "journal/3.json").write_bytes((copied / "journal/4.json").read_bytes())
    assert tables_of(copied).frame.tampered == ("journal/3.json was changed after it was written",)


@pytest.mark.parametrize("name", ["../../../x.json", "outcomes/\x1b[2J.json", "a" * 99 + ".json", "looks/1.txt"])
def test_an_entry_names_records_alone(copied: Path, name: str) -> None:
    path = copied / "journal/3.json"
    value = json.loads(path.read_bytes())
    path.write_bytes(canonical_json(value | {"records": {**value["records"], name: "0" * 64}}))
    assert tables_of(copied).frame.tampered == ("journal/3.json was changed after it was written",)


def test_a_campaign_of_a_version_without_a_journal_is_accused_of_nothing(copied: Path) -> None:
    """It is said once that nothing would be noticed."""
    shutil.rmtree(copied / "journal")
    for path in copied.rglob("*.json"):
        value = json.loads(path.read_bytes())
        if path.name != "campaign.json":
            new = ("plan", "journal", *(("start", "patch") if path.name == "end.json" else ()))
            path.write_bytes(canonical_json({name: one for name, one in value.items() if name not in new}))
    for trial in TRIALS:
        for path in (copied / "attempts" / trial.id).glob("*/bundle.tar.zst"):
            _without_plan(path, copied / "outcomes" / f"{trial.id}.json")
    tables = tables_of(copied)
    assert (missing_of(tables), tables.frame.faults) == ({}, {})
    [caution] = [one for one in read(DirectoryStore(copied.parent)).cautions if "journal" in one]
    assert "keeps no journal" in caution


def _without_plan(path: Path, outcome: Path) -> None:
    """Pack a bundle as that version did, with end and outcome to fit."""
    opened = unpack(path.read_bytes())
    packed = pack(opened.manifest.model_copy(update={"plan": None}), opened.files)
    path.write_bytes(packed)
    for file, name in ((path.parent / "end.json", "bundle"), (outcome, "bundle_sha256")):
        file.write_bytes(canonical_json(json.loads(file.read_bytes()) | {name: sha256(packed)}))


def test_status_names_what_was_changed_and_counts_it_as_lost(copied: Path) -> None:
    store = DirectoryStore(copied.parent)
    untouched = read_status(store, PLAN.campaign)
    assert untouched.tampered == []
    edit(copied, OF_TRIALS["outcome"])
    status = read_status(store, PLAN.campaign)
    assert status.tampered == [f"{OF_TRIALS['outcome']} was changed after it was written"]
    counts = [sum(one.measured for one in each.conditions.values()) for each in (untouched, status)]
    assert counts[0] == counts[1] + 1
    assert any(line.startswith("tampered: ") for line in lines(status))


NOT_PULLED = "Bundles were not pulled"


def pulled(copied: Path, folder: Path, *options: str) -> DirectoryStore:
    argv = [PLAN.campaign, str(folder), "--store", str(copied.parent), *options]
    assert CliRunner().invoke(pull, argv, catch_exceptions=False).exit_code == 0
    return DirectoryStore(folder)


def test_bundles_that_were_not_pulled_are_not_tampered(copied: Path, tmp_path: Path) -> None:
    """And not verified. A later pull adds them."""
    store = pulled(copied, tmp_path / "pulled", "--no-bundles")
    report = read(store)
    measured = report.progress.measured
    assert (report.verified, report.not_pulled, report.tampered) == (False, measured, ())
    assert report.cautions[0].startswith(f"{NOT_PULLED} (`pull --no-bundles`): {measured} verdicts not checked")
    assert not any("ampered" in caution or "existence" in caution for caution in report.cautions)
    assert measured == sum(fate.verdict is not None for fate in (FATES * 2)[: len(TRIALS)])
    assert read(store, verify=False).not_pulled == measured
    assert "bundles not verified" in to_markdown(report)
    assert open_campaign(store, PLAN.campaign).sealed is None, "nothing is kept that was not verified"
    pulled(copied, tmp_path / "pulled")
    again = read(store)
    assert (again.verified, again.not_pulled) == (True, 0)
    assert not any(NOT_PULLED in caution for caution in again.cautions)


def test_a_copy_of_a_copy_without_bundles_says_so_too(copied: Path, tmp_path: Path) -> None:
    pulled(copied, tmp_path / "pulled", "--no-bundles")
    assert read(pulled(tmp_path / "pulled" / PLAN.campaign, tmp_path / "again")).not_pulled


def test_a_mark_that_somebody_puts_into_a_store_hides_nothing(copied: Path) -> None:
    """Verdicts are edited, and the bundles that say otherwise are deleted."""
    failed = [row for row in tables_of(copied).rows if row["verdict"] == "failed"]
    for row in failed:
        _as_passed(copied, row["trial"], row["attempts"])
        (copied / row["bundle"]).unlink()
    (copied / "pulled.json").write_bytes(canonical_json(PulledCopy(omitted=("bundles",))))
    assert {row["trial"] for row in failed} <= missing_of(tables_of(copied)).keys(), "the journal names them"
    shutil.rmtree(copied / "journal")
    report = read(DirectoryStore(copied.parent))
    assert not report.verified
    assert report.cautions[0].startswith("Tampered: journal/1.json was deleted")
    assert report.cautions[1].startswith(f"{NOT_PULLED} (`pull --no-bundles`): {len(failed)} verdicts not checked")


def test_control_a_mark_does_not_excuse_a_bundle_that_is_there(copied: Path) -> None:
    (copied / "pulled.json").write_bytes(canonical_json(PulledCopy(omitted=("bundles",))))
    edit(copied, OF_TRIALS["bundle"])
    assert TRIALS[0].id in missing_of(tables_of(copied))
    for unreadable in (b"", b"{}x", b"[1]"):
        (copied / "pulled.json").write_bytes(unreadable)
        (copied / OF_TRIALS["bundle"]).unlink(missing_ok=True)
        assert TRIALS[0].id in missing_of(tables_of(copied))


LOOKS_LIKE_A_COPY = "A copy that was made while the campaign ran"
# Of a copy that is made file by file while records are written: a record names what it lacks.
OF_A_SLOW_COPY = [OF_TRIALS["end"], OF_TRIALS["bundle"], OF_TRIALS["outcome"], "journal/3.json"]


@pytest.mark.parametrize("name", OF_A_SLOW_COPY)
def test_what_a_slow_copy_lacks_is_left_out_and_explained(copied: Path, name: str) -> None:
    delete(copied, name)
    report = read(DirectoryStore(copied.parent))
    assert LOOKS_LIKE_A_COPY in report.cautions[0]
    assert "`trialfleet pull` makes a consistent one" in report.cautions[0]
    assert report.tampered or any(one.tampered for one in report.quarantined)


def test_control_no_copy_explains_an_edit(copied: Path) -> None:
    for name in (OF_TRIALS["end"], OF_TRIALS["abandoned outcome"], "looks/1.json"):
        edit(copied, name)
    assert not any(LOOKS_LIKE_A_COPY in caution for caution in read(DirectoryStore(copied.parent)).cautions)


def test_a_pull_while_the_campaign_runs_lacks_nothing_that_it_names(copied: Path, tmp_path: Path) -> None:
    """A trial ends after each listing: its outcome is then in the copy only with all that it rests on."""
    rest = tmp_path / "rest"
    for trial in TRIALS[4:]:
        for name in (f"attempts/{trial.id}", f"outcomes/{trial.id}.json"):
            (rest / name).parent.mkdir(parents=True, exist_ok=True)
            (copied / name).rename(rest / name)
    shutil.rmtree(copied / "journal")
    DirectoryStore(copied.parent).delete(f"{PLAN.campaign}/epochs/1.json")
    epochs.claim(DirectoryStore(copied.parent), PLAN.campaign, epochs.HeartbeatConfig()).end()

    class Growing(DirectoryStore):
        def list(self, prefix: str) -> Iterator[ListedKey]:
            yield from list(super().list(prefix))
            for path in sorted(rest.glob("outcomes/*"))[:1]:
                (rest / "attempts" / path.stem).rename(copied / "attempts" / path.stem)
                path.rename(copied / "outcomes" / path.name)
                ledgers.write_journal(DirectoryStore(copied.parent), PLAN)

    source = Growing(copied.parent)
    target = DirectoryStore(tmp_path / "pulled")
    wanted = list(
        pull_command._wanted(pull_command._listed(source, PLAN.campaign), PLAN.campaign, [], no_bundles=False)
    )
    pull_command._copy(source, target, PLAN.campaign, wanted)
    tables = open_campaign(target, PLAN.campaign)
    assert (missing_of(tables), tables.frame.tampered) == ({}, ())
    assert tables.terminal > 4
