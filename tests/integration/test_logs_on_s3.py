"""What a running attempt has printed is read from the store alone, wherever the reader is."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from tests.unit.controller.test_plan import make_plan
from trialfleet_controller import keys
from trialfleet_controller.commands.logs import logs
from trialfleet_controller.kube import names
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.plan import trials
from trialfleet_runner.campaign import KubernetesPlan
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import Intent
from trialfleet_runner.store.open import open_store
from trialfleet_runner.store.protocol import Store

pytestmark = pytest.mark.needs("s3")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    import boto3
    from botocore.config import Config

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", os.environ["S3_ENDPOINT"])
    client = boto3.client("s3", region_name="us-east-1", config=Config(s3={"addressing_style": "path"}))
    name = f"logs-{secrets.token_hex(6)}"
    client.create_bucket(Bucket=name)
    made = open_store(f"s3://{name}/runs")
    yield made
    for entry in list(made.list("")):
        made.delete(entry.key)
    client.delete_bucket(Bucket=name)


def test_the_live_log_and_before_it_where_the_runners_own_words_are(store: Store, tmp_path: Path) -> None:
    kube = KubernetesPlan(image="r:1", namespaces=("mine",), image_id="sha256:1", network="enforced")
    plan = make_plan().model_copy(update={"kubernetes": kube})
    Ledger(store, "demo").freeze(plan)
    trial = trials(plan)[0]
    intent = Intent(trial=trial.id, attempt=1, nonce="n", epoch=1, at=1.0)
    store.create(keys.attempt_file("demo", trial.id, 1, "intent.json"), canonical_json(intent))

    ran = CliRunner().invoke(logs, [f"{store.url}/demo", trial.id])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == ""
    assert f"kubectl -n mine logs {names.pod(plan.uid, trial.id, 1)} -c runner" in ran.stderr

    text = zstandard.compress(b"turn 1: reading\n")
    store.put(keys.attempt_file("demo", trial.id, 1, "live.log.zst"), text)
    ran = CliRunner().invoke(logs, [f"{store.url}/demo", trial.id])
    assert (ran.stdout, ran.stderr) == ("turn 1: reading\n", "")
