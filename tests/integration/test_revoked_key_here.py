"""The store's key is revoked while agents run on this machine: their patches wait here for the resume."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.faults import inflict
from tests.support import buckets
from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, trialfleet
from tests.support.waiting import wait_until
from trialfleet_ledger import keys
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.trial_order import trials

pytestmark = [pytest.mark.needs("s3", "faults"), pytest.mark.slow, pytest.mark.timeout(400)]

NAME = "revoked-here"
AGENT = "echo begun; sleep 20; sed -i 's|discount / 0|discount / 100|' shop/pricing/rules.py"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", os.environ["S3_ENDPOINT"])
    name = f"revoked-{secrets.token_hex(6)}"
    with buckets.bucket(name):
        yield name


def test_agents_finish_and_are_not_asked_again(bucket: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    lab, url = Lab(tmp_path), f"s3://{bucket}/runs"
    agent = {"kind": "command", "timeout_s": 120, "options": {"argv": ["/bin/sh", "-c", AGENT]}}
    file = campaign_file(lab, name=NAME, agent=agent, store=url)
    ledger, access = Ledger(open_store(url), NAME), f"tested{secrets.token_hex(4)}"
    secret = secrets.token_hex(16)
    inflict("key", access, secret)
    controller = subprocess.Popen(
        [sys.executable, "-m", "trialfleet_runner.cli", "run", str(file), "--no-ray", "--no-report"],
        cwd=lab.root,
        env={
            **os.environ,
            "TRIALFLEET_SCRATCH": str(lab.scratch),
            "AWS_ACCESS_KEY_ID": access,
            "AWS_SECRET_ACCESS_KEY": secret,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: ledger.exists() or controller.poll() is not None, within_s=200)
    [trial] = trials(ledger.plan())
    live = keys.attempt_file(NAME, trial.id, 1, "live.log.zst")
    wait_until(lambda: ledger.store.get(live) is not None or controller.poll() is not None, within_s=200)
    inflict("revoke", access)
    printed, _ = controller.communicate(timeout=200)
    assert controller.returncode == 2, printed
    assert "the store refuses the credentials: nothing more starts. Agents that run finish (1)" in printed
    assert "InvalidAccessKeyId" in printed
    assert len(list(lab.attempts.glob("*.patch.json"))) == 1

    trialfleet("resume", str(file), "--no-ray", "--no-report", lab=lab)
    outcome = ledger.attempts.outcome(trial.id)
    assert outcome is not None
    assert outcome.scored is not None
    assert outcome.scored.verdict is Verdict.PASSED
    assert outcome.losses == (LossClass.TERMINATED,)
    assert [attempt.intent.score_only for attempt in ledger.attempts.chain(trial.id)] == [False, True]
    assert list(lab.attempts.glob("*.patch.json")) == []
