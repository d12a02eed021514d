"""An outcome repeats the end of its last attempt; one that says something else is not counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import records
from tests.support.ledgers import BEFORE_AGENT, NOW, Fate, counts, plan, read, replaced, trials, write
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict

PLAN = plan(reps=2)
VICTIM = trials(PLAN)[3]


def fate(trial: Trial) -> Fate:
    return Fate(verdict=Verdict.FAILED) if trial.id == VICTIM.id else Fate()


def to_passed(demo: Path) -> None:
    outcome = demo / "outcomes" / f"{VICTIM.id}.json"
    replaced(outcome, '"verdict":"failed"', '"verdict":"passed"')
    replaced(outcome, '"tests_passed":false', '"tests_passed":true')


def end_of(demo: Path) -> Path:
    return demo / "attempts" / VICTIM.id / "1" / "end.json"


def to_loss(demo: Path) -> None:
    loss = records.end(BEFORE_AGENT, trial=VICTIM.id, at=NOW)
    end_of(demo).write_bytes(canonical_json(loss))


EDITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "failed to passed": (to_passed, "says passed, but the end.json of attempt 1 says failed"),
    "stopped otherwise": (
        lambda demo: replaced(demo / "outcomes" / f"{VICTIM.id}.json", '"stop":"finished"', '"stop":"timeout"'),
        "something else than the end.json of attempt 1",
    ),
    "the end is gone": (lambda demo: end_of(demo).unlink(), "no end.json"),
    "the end is no record": (lambda demo: end_of(demo).write_text("{}"), "no record of this version"),
    "the end is a loss": (to_loss, "ended in a loss"),
    "the end is another trial's": (
        lambda demo: replaced(end_of(demo), VICTIM.id, trials(PLAN)[0].id),
        "belongs to attempt 1 of trial",
    ),
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(("edit", "reason"), EDITS.values(), ids=EDITS.keys())
def test_an_outcome_that_its_end_does_not_bear_out_is_not_counted(
    tmp_path: Path, edit: Callable[[Path], object], reason: str, verify: bool
) -> None:
    store = write(tmp_path / "store", PLAN, fate)
    assert counts(read(store, verify=verify)) == (7, 8, 0)
    edit(tmp_path / "store/demo")
    report = read(store, verify=verify)
    assert counts(report) == (7, 7, 1)
    [refused] = report.quarantined
    assert refused.trial == VICTIM.id
    assert reason in refused.reason
