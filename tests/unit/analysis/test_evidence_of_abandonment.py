"""An outcome that says abandoned is believed as far as its chain, folded by the plan's budgets, bears it out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import records
from tests.support.ledgers import (
    BEFORE_AGENT,
    MID_RUN,
    NOW,
    ZERO,
    Fate,
    plan,
    put,
    read,
    replaced,
    trials,
    trials_of,
    write,
)
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_ledger import fold
from trialfleet_ledger.abandonment import Link, unfounded
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.lifecycle import TrialPhase
from trialfleet_ledger.records.attempt import End, Quarantine
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_ledger.store.directory import DirectoryStore

PLAN = plan(reps=2)
VICTIM = trials(PLAN)[3]
CANCELLED = Loss(loss=LossClass.CANCELLED, message="", agent_started=True)
STORE = Loss(loss=LossClass.STORE, message="no answer", agent_started=False)


def written(root: Path, **fate: Any) -> Path:
    """The campaign's folder; all but the victim pass."""
    write(root / "store", PLAN, lambda t: Fate(**fate) if t.id == VICTIM.id else Fate())
    return root / "store" / "demo"


def report_of(demo: Path, *, verify: bool = True) -> Report:
    return read(DirectoryStore(demo.parent.absolute()), verify=verify)


def edit(demo: Path, **fields: object) -> None:
    path = demo / "outcomes" / f"{VICTIM.id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def give_up(demo: Path, *, attempts: int = 1, losses: tuple[str, ...] = ("evicted",)) -> None:
    nothing = {"scored": None, "bundle": None, "bundle_sha256": None}
    edit(demo, **nothing, abandoned=losses[-1] if losses else "evicted", attempts=attempts, losses=losses)


def attempt(demo: Path, number: int) -> Path:
    return demo / "attempts" / VICTIM.id / str(number)


def another_loss(demo: Path) -> None:
    end = End.model_validate_json((attempt(demo, 2) / "end.json").read_bytes())
    changed = end.model_copy(update={"loss": BEFORE_AGENT})
    (attempt(demo, 2) / "end.json").write_bytes(canonical_json(changed))


def one_more(demo: Path) -> None:
    shutil.copytree(attempt(demo, 3), attempt(demo, 4))


THREE = {"verdict": None, "losses": (MID_RUN,) * 3}
EDITS: dict[str, tuple[dict[str, Any], Callable[[Path], object], str]] = {
    "a failure called abandoned": (
        {"verdict": Verdict.FAILED},
        give_up,
        "attempt 1 ended with the verdict failed",
    ),
    "a pass called abandoned": ({}, give_up, "attempt 1 ended with the verdict passed"),
    "after a real loss": (
        {"losses": (MID_RUN,)},
        lambda demo: give_up(demo, attempts=2, losses=("evicted", "evicted")),
        "attempt 2 ended with the verdict passed",
    ),
    "cut before the verdict": (
        {"losses": (MID_RUN,)},
        give_up,
        "abandoned after 1 attempt, but another was begun",
    ),
    "cut, its verdict removed": (
        {"losses": (MID_RUN,)},
        lambda demo: (shutil.rmtree(attempt(demo, 2)), give_up(demo)),
        "the plan gives a loss evicted here another attempt",
    ),
    "no loss at all": ({}, lambda demo: give_up(demo, attempts=3, losses=()), "with 0 losses in 3 attempts"),
    "a count nobody could read": (
        {},
        lambda demo: give_up(demo, attempts=10**12),
        "with 1 loss in 1,000,000,000,000 attempts",
    ),
    "called cancelled": (
        THREE,
        lambda demo: edit(demo, abandoned="cancelled"),
        "abandoned by cancelled, but the last loss is evicted",
    ),
    "another class of loss": (THREE, another_loss, "attempt 2 was lost to evicted, its end.json says image_pull"),
    "an end is gone": (THREE, lambda demo: (attempt(demo, 2) / "end.json").unlink(), "attempt 2 has no end.json"),
    "an end of another trial": (
        THREE,
        lambda demo: replaced(attempt(demo, 3) / "end.json", VICTIM.id, trials(PLAN)[0].id),
        "attempt 3 has no end.json of its own",
    ),
    "an attempt after the last": (THREE, one_more, "abandoned after 3 attempts, but another was begun"),
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(("fate", "damage", "reason"), EDITS.values(), ids=EDITS.keys())
def test_an_abandonment_that_the_chain_does_not_bear_out_is_shown_as_damaged(
    tmp_path: Path, fate: dict[str, Any], damage: Callable[[Path], object], reason: str, verify: bool
) -> None:
    demo = written(tmp_path, **fate)
    assert report_of(demo, verify=verify).quarantined == ()
    damage(demo)
    report = report_of(demo, verify=verify)
    [refused] = report.quarantined
    assert refused.trial == VICTIM.id
    assert reason in refused.reason
    row = trials_of(DirectoryStore(demo.parent.absolute()))[VICTIM.id]
    assert (row.missing, row.verdict) == (f"tampered: {refused.reason}", None)
    assert row.losses[-1] == LossClass.QUARANTINED
    assert sum(loss.attempts for loss in report.losses if loss.loss is LossClass.QUARANTINED) == 1
    [line] = [line for line in report.manifest if line.group == "Damaged records"]
    assert (line.name, line.value) == (VICTIM.id, refused.reason)
    assert any(caution.startswith("Tampered: ") for caution in report.cautions)


def test_a_lost_attempt_is_one_loss_also_when_its_outcome_is_damaged(tmp_path: Path) -> None:
    demo = written(tmp_path, verdict=Verdict.FAILED)
    give_up(demo)
    assert [(loss.loss, loss.attempts) for loss in report_of(demo).losses] == [(LossClass.QUARANTINED, 1)]


@pytest.mark.parametrize("losses", [(MID_RUN,) * 3, (CANCELLED,), (BEFORE_AGENT,) * 11, (MID_RUN, CANCELLED)])
def test_what_the_budgets_abandon_is_believed(tmp_path: Path, losses: tuple[Loss, ...]) -> None:
    demo = written(tmp_path, verdict=None, losses=losses)
    report = report_of(demo)
    assert report.quarantined == ()
    row = trials_of(DirectoryStore(demo.parent.absolute()))[VICTIM.id]
    assert row.missing == f"abandoned: {losses[-1].loss}"
    assert not any(line.group == "Damaged records" for line in report.manifest)


def test_a_verdict_that_was_quarantined_is_abandoned_as_its_ledger_says(tmp_path: Path) -> None:
    demo = written(tmp_path)
    give_up(demo, losses=("quarantined",))
    assert len(report_of(demo).quarantined) == 1
    record = Quarantine(trial=VICTIM.id, attempt=1, at=NOW, expected=ZERO, found=None, reason="it was short")
    put(DirectoryStore(demo.parent.absolute()), f"demo/quarantine/{VICTIM.id}/1.json", record)
    assert report_of(demo).quarantined == ()


@pytest.mark.parametrize("losses", [[], ["evicted", "evicted"]])
def test_a_measured_outcome_that_hides_or_adds_losses_is_not_counted(tmp_path: Path, losses: list[str]) -> None:
    demo = written(tmp_path, losses=(MID_RUN,))
    edit(demo, losses=losses)
    [refused] = report_of(demo).quarantined
    assert f"{len(losses)} losses before attempt 2" in refused.reason


AFTER_PATCH = Loss(loss=LossClass.STORE, message="down", agent_started=True, patched=True)


@pytest.mark.parametrize(
    ("fate", "unknown"),
    [
        ({}, 0),
        ({"losses": (BEFORE_AGENT,)}, 0),
        ({"losses": (MID_RUN,)}, 1),
        (
            {"losses": (AFTER_PATCH, AFTER_PATCH)},
            0,
        ),  # the verdict's metrics hold what the one run of the agent cost
        ({"losses": (MID_RUN, AFTER_PATCH)}, 1),
        ({"verdict": None, "losses": (MID_RUN, AFTER_PATCH, *(AFTER_PATCH,) * 3)}, 2),
    ],
)
def test_only_runs_of_the_agent_that_left_no_cost_are_unknown(
    tmp_path: Path, fate: dict[str, Any], unknown: int
) -> None:
    found = {cost.condition: cost.unknown for cost in report_of(written(tmp_path, **fate)).analysis.costs}
    assert found.pop(VICTIM.condition) == unknown
    assert set(found.values()) == {0}


# --- the same rule as the controller's --------------------------------------------------------------------


def chain_of(trial: Trial, fates: list[tuple[Loss, bool]]) -> list[fold.StoredAttempt]:
    """Records as a controller would have written them, whether or not it would have gone on."""
    chain: list[fold.StoredAttempt] = []
    for number, (loss, by_runner) in enumerate(fates, start=1):
        intent = records.intent(
            trial=trial.id,
            attempt=number,
            nonce=str(number),
            previous_end=chain[-1].end_sha256 if chain else None,
            score_only=fold.score_from(chain) is not None,
        )
        by = "runner" if by_runner else "controller"
        end = End.model_validate(
            {
                "trial": trial.id,
                "attempt": number,
                "nonce": str(number),
                "at": 0,
                "by": by,
                "loss": loss.model_dump(),
            }
        )
        patched = loss.patched or intent.score_only
        chain.append(fold.StoredAttempt(intent, patched=patched, end=end, end_sha256=sha256(canonical_json(end))))
    return chain


LOSSES = st.builds(
    lambda loss, started, patched: Loss(loss=loss, message="", agent_started=started or patched, patched=patched),
    st.sampled_from(
        [
            *(LossClass.EVICTED, LossClass.NODE_LOST, LossClass.OVERUSE, LossClass.STORE, LossClass.HOST_FULL),
            *(LossClass.CANCELLED, LossClass.RUNNER),
        ]
    ),
    st.booleans(),
    st.booleans(),
)


@given(fates=st.lists(st.tuples(LOSSES, st.booleans()), min_size=1, max_size=7))
def test_a_chain_is_abandoned_here_when_the_controllers_fold_abandons_it(fates: list[tuple[Loss, bool]]) -> None:
    retries = RetrySpec(before_agent=1, mid_run=1, scoring=1, disruptions=2)
    chain = chain_of(VICTIM, fates)
    try:
        phase = fold.progress(chain, retries).phase
    except fold.BrokenChain:  # it had been given up before: no controller goes on
        return
    losses = tuple(loss.loss for loss, _ in fates)
    outcome = Outcome(trial=VICTIM, attempts=len(chain), abandoned=losses[-1], losses=losses)
    links = [Link(a.end, score_only=a.intent.score_only, patched=a.patched) for a in chain]
    assert (unfounded(outcome, links, retries, followed=False) is None) == (phase is TrialPhase.ABANDONED)
