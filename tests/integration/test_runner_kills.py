"""`kill -9` of the real runner at each of its records: the trial is counted once, and nobody survives."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from tests.support.attempts import Lab
from tests.support.processes import processes_with, survivors
from tests.support.real_campaign import campaign_file, trialfleet
from tests.support.waiting import wait_until
from trialfleet_analysis.commands.report import report
from trialfleet_ledger.fold import progress
from trialfleet_ledger.kill_points import VARIABLE
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.lifecycle import TrialPhase
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials
from trialfleet_sandbox.scratch import sweep

NAP = "86399"  # seconds: what the agent leaves running is known by it
# Mends the bug and leaves a process of its own session behind.
MENDING = f"""
sed -i 's|discount / 0|discount / 100|' shop/pricing/rules.py
setsid sleep {NAP}.{os.getpid()} >/dev/null 2>&1 &
"""
AGENT = {"kind": "command", "timeout_s": 60, "options": {"argv": ["/bin/sh", "-c", MENDING]}}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("kills")
    root.chmod(0o755)
    return Lab(root)


def nobody_left(lab: Lab) -> None:
    wait_until(
        lambda: not [*processes_with(f"sleep\0{NAP}.{os.getpid()}"), *survivors(lab.scratch)],
        "no process is left",
        within_s=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "attempts", "score_only"),
    [
        ("start.before", 2, False),
        ("start.after", 2, False),
        ("patch.before", 2, False),
        ("patch.after", 2, True),
        ("bundle.before", 2, True),
        ("bundle.after", 2, True),
        ("end.before", 2, True),
        ("end.after", 1, False),
    ],
)
def test_a_runner_killed_at_a_record_is_counted_once(
    lab: Lab, place: str, attempts: int, score_only: bool
) -> None:
    name = place.replace(".", "-")
    file = campaign_file(lab, name=name, agent=AGENT, store=str(lab.root / "store"))
    trialfleet("run", str(file), "--no-ray", "--no-report", lab=lab, env={VARIABLE: f"runner.{place}:1"})
    nobody_left(lab)
    # A runner removes its folder at its end: one that is left proves the kill, also after the last record.
    [left] = sweep(claim_folder(lab.scratch, "scratch"))

    ledger = Ledger(DirectoryStore(lab.root / "store"), name)
    plan = ledger.plan()
    [trial] = trials(plan)
    assert left.name.startswith(f"{trial.id}-1-")
    chain = ledger.attempts.chain(trial.id)
    folded = progress(chain, plan.retries)  # raises for a chain that no controller can have written
    outcome = ledger.attempts.outcome(trial.id)
    assert outcome is not None
    assert (folded.phase, outcome.attempts, len(chain)) == (TrialPhase.MEASURED, attempts, attempts), outcome
    assert outcome.scored == folded.scored
    assert outcome.scored is not None
    assert outcome.scored.verdict is Verdict.PASSED
    assert chain[-1].intent.score_only is score_only
    assert len(outcome.losses) == attempts - 1
    assert sweep(claim_folder(lab.scratch, "scratch")) == []
    again = trialfleet("resume", str(file), "--no-ray", "--no-report", lab=lab)
    assert ledger.attempts.chain(trial.id) == chain, again
    argv = [str(file), "--out", str(lab.root / f"report-{name}"), "--json"]
    said = CliRunner().invoke(report, argv, catch_exceptions=False)
    [cell] = json.loads(said.stdout)["cells"]
    assert (cell["passes"], cell["valid"], cell["lost"]) == (1, 1, 0)
