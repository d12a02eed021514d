"""A truncated or edited bundle is quarantined and reported, never counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.ledgers import NOW, ZERO, Fate, bundle_bytes, counts, plan, put, read, trials, trials_of, write
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_ledger.records.attempt import Quarantine
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.directory import DirectoryStore

PLAN = plan(reps=2)
VICTIM = trials(PLAN)[3]


def damaged(tmp_path: Path, damage: Callable[[Path], object], *, verify: bool = True) -> Report:
    store = write(tmp_path / "store", PLAN, lambda trial: Fate())
    damage(tmp_path / "store" / "demo" / "attempts" / VICTIM.id / "1" / "bundle.tar.zst")
    return read(store, verify=verify)


def rows(tmp_path: Path, *, verify: bool = True) -> dict[str, SimpleNamespace]:
    return trials_of(DirectoryStore((tmp_path / "store").absolute()), verify=verify)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "empty": lambda path: path.write_bytes(b""),
    "one bit": flipped,
    "removed": lambda path: path.unlink(),
    "of another trial": lambda path: path.write_bytes(bundle_bytes(PLAN, trials(PLAN)[0], 1)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_bundle_is_missing_data(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    report = damaged(tmp_path, damage)
    assert counts(report) == (7, 7, 1)
    [refused] = report.quarantined
    assert (refused.trial, refused.task, refused.condition) == (VICTIM.id, VICTIM.task, VICTIM.condition)
    [loss] = report.losses
    assert (loss.loss, loss.condition, loss.attempts) == (LossClass.QUARANTINED, VICTIM.condition, 1)
    row = rows(tmp_path)[VICTIM.id]
    assert (row.verdict, row.passed, row.turns) == (None, None, None)
    assert any("bundle" in caution for caution in report.cautions)


def test_whole_bundles_all_count(tmp_path: Path) -> None:
    report = damaged(tmp_path, lambda path: None)
    assert counts(report) == (8, 8, 0)
    assert report.quarantined == ()
    assert all(row.verified for row in rows(tmp_path).values())


def test_a_rewritten_outcome_cannot_point_at_anothers_bundle(tmp_path: Path) -> None:
    """Digest and bundle agree, but the bundle is another trial's and the end names its own."""
    store = write(tmp_path / "store", PLAN, lambda trial: Fate())
    other = trials(PLAN)[0]
    key = tmp_path / "store/demo/outcomes"
    outcome = (key / f"{VICTIM.id}.json").read_text()
    others = (key / f"{other.id}.json").read_text()

    def digest_of(text: str) -> str:
        return text.split('"bundle_sha256":"')[1][:64]

    edited = outcome.replace(digest_of(outcome), digest_of(others)).replace(
        f"attempts/{VICTIM.id}", f"attempts/{other.id}"
    )
    (key / f"{VICTIM.id}.json").write_text(edited)
    report = read(store)
    assert counts(report) == (7, 7, 1)
    assert "names another bundle" in report.quarantined[0].reason


def test_without_verifying_existence_still_counts(tmp_path: Path) -> None:
    removed = damaged(tmp_path, DAMAGES["removed"], verify=False)
    assert counts(removed) == (7, 7, 1)
    assert not any(row.verified for row in rows(tmp_path, verify=False).values())
    assert any("--no-verify" in caution for caution in removed.cautions)


def test_what_the_ledger_quarantined_stays_so(tmp_path: Path) -> None:
    store = write(tmp_path / "store", PLAN, lambda trial: Fate())
    record = Quarantine(trial=VICTIM.id, attempt=1, at=NOW, expected=ZERO, found=None, reason="it was short")
    put(store, f"demo/quarantine/{VICTIM.id}/1.json", record)
    for verify in (True, False):
        report = read(store, verify=verify)
        assert counts(report) == (7, 7, 1)
        assert "it was short" in report.quarantined[0].reason


def test_isolation_and_warnings_come_from_bundles(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        return Fate(warnings=("no bubblewrap",) if trial.rep == 0 else ())

    report = read(write(tmp_path / "store", PLAN, fate))
    lines = {(line.group, line.name): line.value for line in report.manifest}
    assert lines["Isolation", "bubblewrap"] == "8 trials"
    assert lines["Warnings of the bundles", "no bubblewrap"] == "4 trials"
    assert any("no bubblewrap" in caution for caution in report.cautions)
