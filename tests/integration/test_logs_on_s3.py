"""What a running attempt has printed is read from the store alone, wherever the reader is."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from backports import zstd
from click.testing import CliRunner

from tests.support import records
from tests.support.buckets import bucket
from tests.support.plans import kube_plan, make_plan
from trialfleet_controller.backends.kube import names
from trialfleet_controller.commands.logs import logs
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import trials

pytestmark = pytest.mark.needs("s3")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", os.environ["S3_ENDPOINT"])
    name = f"logs-{secrets.token_hex(6)}"
    with bucket(name):
        yield open_store(f"s3://{name}/runs")


def test_the_live_log_and_before_it_where_the_runners_own_words_are(store: Store, tmp_path: Path) -> None:
    plan = make_plan(kubernetes=kube_plan(namespaces=("mine",)).kubernetes)
    Ledger(store, "demo").freeze(plan)
    trial = trials(plan)[0]
    intent = records.intent(trial=trial.id)
    store.create(keys.attempt_file("demo", trial.id, 1, "intent.json"), canonical_json(intent))

    ran = CliRunner().invoke(logs, [f"{store.url}/demo", trial.id])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == ""
    assert f"kubectl -n mine logs {names.pod(plan.uid, trial.id, 1)} -c runner" in ran.stderr

    text = zstd.compress(b"turn 1: reading\n")
    store.put(keys.attempt_file("demo", trial.id, 1, "live.log.zst"), text)
    ran = CliRunner().invoke(logs, [f"{store.url}/demo", trial.id])
    assert (ran.stdout, ran.stderr) == ("turn 1: reading\n", "")
