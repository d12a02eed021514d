"""`kill -9` of the real runner at each of its records: the trial is counted once, and nobody survives."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.integration.campaign_audit import survivors
from tests.integration.lab import Lab
from tests.integration.real_campaign import campaign_file, trialfleet
from trialfleet_controller.fold import progress
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.lifecycle import Budgets, Phase
from trialfleet_controller.plan import trials
from trialfleet_runner.attempt.fault import VARIABLE
from trialfleet_runner.attempt.scratch import sweep
from trialfleet_runner.contract import Verdict
from trialfleet_runner.store.directory import DirectoryStore

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


def sleepers() -> list[int]:
    """What the agents of this test left running."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes() if folder.name.isdecimal() else b""
        except OSError:
            continue
        if words == f"sleep\0{NAP}.{os.getpid()}\0".encode():
            found.append(int(folder.name))
    return found


def nobody_left(lab: Lab) -> None:
    end = time.monotonic() + 60
    while found := [*sleepers(), *survivors(lab.scratch)]:
        assert time.monotonic() < end, f"these are left: {found}"
        time.sleep(0.1)


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
    [left] = sweep(lab.scratch)

    ledger = Ledger(DirectoryStore(lab.root / "store"), name)
    plan = ledger.plan()
    [trial] = trials(plan)
    assert left.name.startswith(f"{trial.id}-1-")
    chain = ledger.chain(trial.id)
    folded = progress(chain, Budgets.of(plan.retries))  # raises for a chain that no controller can have written
    outcome = ledger.outcome(trial.id)
    assert outcome is not None
    assert (folded.phase, outcome.attempts, len(chain)) == (Phase.MEASURED, attempts, attempts), outcome
    assert outcome.scored == folded.scored
    assert outcome.scored is not None
    assert outcome.scored.verdict is Verdict.PASSED
    assert chain[-1].intent.score_only is score_only
    assert len(outcome.losses) == attempts - 1
    assert sweep(lab.scratch) == []
    again = trialfleet("resume", str(file), "--no-ray", "--no-report", lab=lab)
    assert ledger.chain(trial.id) == chain, again
    report = json.loads(trialfleet("report", str(file), "--out", f"report-{name}", "--json", lab=lab))
    [cell] = report["cells"]
    assert (cell["passes"], cell["valid"], cell["lost"]) == (1, 1, 0)
